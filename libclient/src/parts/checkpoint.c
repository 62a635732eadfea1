/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker keeps of its work at the broker. */
#include "base/errors.h"
#include "link/link.h"
#include "link/requests.h"
#include "parts/attempts.h"
#include "parts/workers.h"

int core_worker_checkpoint (core_worker_t *self, tmq_op_t op, const tmq_assignment_t *of,
                            const void *state, size_t bytes, core_target_t target,
                            int64_t deadline_ms, int64_t now_ms, tmq_error_t *error)
{
    bytes_mark_t mark = 0;
    core_link_hear_time (self->all->link, now_ms);
    if (state == NULL && bytes > 0)
        return core_error (error, TMQ_INVALID, "the state is NULL");
    if (bytes > TMQ_CHECKPOINT_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "the state has %zu bytes, at most %d", bytes,
                           TMQ_CHECKPOINT_BYTES_MAX);
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL)
        return core_attempt_stale (error);
    attempt->started = attempt->started || op == TMQ_OP_CHECKPOINT; /* what keeps is at work */
    core_request_t *request = core_attempt_about (core_request_new (op), attempt, &mark);
    if (request != NULL) {
        bytes_append_uint (&request->fields, 2, bytes);
        bytes_close (&request->fields, mark);
        bytes_append (&request->body, state, bytes);
    }
    if (request == NULL || request->fields.failed || request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    return core_request_start (self->all->requests, request, target, deadline_ms, error);
}
