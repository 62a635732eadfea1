/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Answers of clients, and the inbox. */
#include <string.h>

#include "base/errors.h"
#include "client/client.h"
#include "codec/questions.h"

static int answer_request (core_request_t **out, const tmq_id_t *id, const tmq_answer_t *in,
                           size_t count, tmq_error_t *error)
{
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    return core_request_answer (out, id, in, count, error);
}

int tmq_answer (tmq_answered_t *out, tmq_client_t *client, const tmq_id_t *id,
                const tmq_answer_t *in, size_t count, uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    int code = answer_request (&request, id, in, count, error);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    for (size_t i = 0; out != NULL && i < count; i++)
        out[i] = (tmq_answered_t){.code = code};
    if (answer == NULL)
        return code;
    size_t answered = answer->completion.answered_count;
    if (out != NULL && code == TMQ_OK && answered == count)
        memcpy (out, answer->completion.answered, count * sizeof *out);
    core_answer_free (answer);
    return code == TMQ_OK && answered != count ? core_error (error, TMQ_PROTOCOL, NULL) : code;
}

int tmq_answer_start (tmq_client_t *client, const tmq_id_t *id, const tmq_answer_t *in,
                      size_t count, uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = answer_request (&request, id, in, count, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}

int tmq_inbox (tmq_inbox_t **out, tmq_client_t *client, const tmq_inbox_query_t *in,
               uint32_t timeout_ms, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_inbox (&request, in, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.inbox), client, request,
                                         timeout_ms, error);
}

int tmq_inbox_start (tmq_client_t *client, const tmq_inbox_query_t *in, uint32_t timeout_ms,
                     void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = core_request_inbox (&request, in, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}
