/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "parts/logs.h"

#include "base/errors.h"

enum { LARGE_BYTES = 32 * 1024 /* so much goes on as soon as the piece before it was taken */ };

void core_logs_reply (core_workers_t *all, const core_request_t *request,
                      const Taskmq__Reply *reply)
{
    core_attempt_t *attempt = core_attempt_find (all, &request->task_id, request->attempt);
    if (attempt == NULL)
        return;
    if (reply->code != TMQ_OK) {
        core_log_end (attempt->log);
        core_attempt_refused (attempt, reply->code);
        return;
    }
    core_log_taken (attempt->log, request->log_stream, request->log_end);
    if (core_log_bytes (attempt->log) >= LARGE_BYTES)
        core_attempt_send_log (attempt, false);
    else
        core_push_due (attempt);
}

/* The application's side. */

int core_worker_log (core_worker_t *self, const tmq_assignment_t *of, tmq_log_stream_t stream,
                     const void *bytes, size_t length, int64_t now_ms, tmq_error_t *error)
{
    core_link_hear_time (self->all->link, now_ms);
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (stream != TMQ_LOG_OUT && stream != TMQ_LOG_ERR)
        return core_error (error, TMQ_INVALID, "stream: must be TMQ_LOG_OUT or TMQ_LOG_ERR");
    if (attempt == NULL)
        return core_attempt_stale (error);
    if (attempt->log == NULL)
        attempt->log = core_log_new ();
    if (attempt->log == NULL || !core_log_keep (attempt->log, stream, bytes, length))
        return core_error (error, TMQ_NO_MEMORY, NULL);
    core_push_due (attempt);
    return core_error (error, TMQ_OK, NULL);
}

size_t core_worker_log_pending (const core_worker_t *self, const tmq_assignment_t *of)
{
    const core_attempt_t *attempt = core_attempt_of (self, of);
    return attempt == NULL ? 0 : core_log_bytes (attempt->log);
}
