/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Logs: what a worker sends, and whoever reads it. */
#include "base/errors.h"
#include "client/client.h"
#include "codec/request.h"
#include "ids.h"

enum { READ_TASK_ID = 1, READ_ATTEMPT = 2, READ_STREAM = 3, READ_OFFSET = 4, READ_LIMIT = 5 };

static int read_request (core_request_t **out, const tmq_id_t *id, uint32_t attempt,
                         tmq_log_stream_t stream, uint64_t offset, uint32_t limit,
                         tmq_error_t *error)
{
    if (id == NULL)
        return core_error (error, TMQ_INVALID, "the id is NULL");
    if (limit > TMQ_LOG_BYTES_MAX)
        return core_error (error, TMQ_INVALID, "limit: at most %d", TMQ_LOG_BYTES_MAX);
    core_request_t *request = core_request_new (TMQ_OP_READ_LOG);
    if (request == NULL)
        return core_error (error, TMQ_NO_MEMORY, NULL);
    request->task_id = *id;
    request->answer.completion.task_id = *id;
    bytes_mark_t mark = core_request_begin (request);
    bytes_append_blob (&request->fields, READ_TASK_ID, id->bytes, ID_BYTES);
    bytes_append_uint (&request->fields, READ_ATTEMPT, attempt);
    bytes_append_uint (&request->fields, READ_STREAM, stream);
    bytes_append_uint (&request->fields, READ_OFFSET, offset);
    bytes_append_uint (&request->fields, READ_LIMIT, limit);
    bytes_close (&request->fields, mark);
    return core_request_finish (out, request, error);
}

int tmq_log_read (tmq_part_t **out, tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                  tmq_log_stream_t stream, uint64_t offset, uint32_t limit, uint32_t timeout_ms,
                  tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = read_request (&request, id, attempt, stream, offset, limit, error);
    return code != TMQ_OK ? code
                          : client_take (out, CLIENT_MEMBER (completion.part), client, request,
                                         timeout_ms, error);
}

int tmq_log_read_start (tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                        tmq_log_stream_t stream, uint64_t offset, uint32_t limit,
                        uint32_t timeout_ms, void *user, tmq_error_t *error)
{
    core_request_t *request = NULL;
    int code = read_request (&request, id, attempt, stream, offset, limit, error);
    return code == TMQ_OK ? client_begin (client, request, timeout_ms, user, error) : code;
}
