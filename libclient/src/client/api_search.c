/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches. */
#include <stdlib.h>

#include "base/errors.h"
#include "base/sized.h"
#include "client/client.h"
#include "codec/encode.h"

void (tmq_search_init) (tmq_search_t *search, size_t size)
{
    static const tmq_search_t defaults = {0};
    core_sized_init (search, size, &defaults, sizeof defaults);
}

void tmq_found_list_free (tmq_found_list_t *list)
{
    if (list != NULL)
        tmq_task_list_free ((tmq_task_list_t *) (uintptr_t) list->tasks);
    free (list);
}

int tmq_search (tmq_found_list_t **out, tmq_client_t *client, const tmq_search_t *search,
                uint32_t timeout_ms, tmq_error_t *error)
{
    tmq_search_t query;
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    if (search == NULL || !core_sized_take (&query, sizeof query, search, sizeof query.size))
        return core_error (error, TMQ_INVALID, "the search was not initialised by tmq_search_init");
    int code = core_request_search (&request, &query, error);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    if (code == TMQ_OK) {
        tmq_found_list_t *found = answer->shared;
        found->tasks = answer->completion.list;
        answer->shared = NULL;
        answer->completion.list = NULL;
        *out = found;
    }
    core_answer_free (answer);
    return code;
}

int tmq_search_reindex (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error)
{
    Taskmq__Reindex message = TASKMQ__REINDEX__INIT;
    core_request_t *request = NULL;
    core_answer_t *answer = NULL;
    int code = core_request_message (&request, TMQ_OP_REINDEX, &message.base, error);
    if (code == TMQ_OK)
        code = client_call (&answer, client, request, timeout_ms, error);
    core_answer_free (answer);
    return code;
}
