/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Why a task does not move. */
#include "base/errors.h"
#include "client/client.h"
#include "codec/encode.h"

static int why_request (core_request_t **out, const tmq_id_t *id, tmq_error_t *error)
{
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    return core_request_get (out, TMQ_OP_WHY, id, error);
}

int tmq_why (tmq_explanation_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
             tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = why_request (&request, id, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.why), client, request,
                                         timeout_ms, error);
}

int tmq_why_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms, void *user,
                   tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = why_request (&request, id, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}
