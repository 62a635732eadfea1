/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker attaches to its task. */
#include "codec/artifacts.h"

#include "base/errors.h"
#include "link/link.h"
#include "link/requests.h"
#include "parts/attempts.h"
#include "parts/workers.h"

int core_worker_artifact (core_worker_t *self, const tmq_assignment_t *of,
                          const tmq_artifact_t *given, core_target_t target, int64_t deadline_ms,
                          int64_t now_ms, tmq_error_t *error)
{
    tmq_artifact_t artifact;
    bytes_mark_t mark = 0;
    core_link_hear_time (self->all->link, now_ms);
    tmq_artifact_init (&artifact);
    int code = core_take_artifact (&artifact, given, error);
    if (code != TMQ_OK)
        return code;
    if (artifact.blob.bytes == 0 && artifact.length > TMQ_FRAME_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "artifact: %zu bytes, at most %d without a blob",
                           artifact.length, TMQ_FRAME_BYTES_MAX);
    core_attempt_t *attempt = core_attempt_of (self, of);
    if (attempt == NULL)
        return core_attempt_stale (error);
    attempt->started = true; /* what has something to attach is at work */
    core_request_t *request =
        core_attempt_about (core_request_new (TMQ_OP_ARTIFACT), attempt, &mark);
    if (request != NULL) {
        core_encode_artifact (&request->fields, &request->body, &artifact);
        bytes_close (&request->fields, mark);
    }
    if (request == NULL || request->fields.failed || request->body.failed) {
        core_request_free (request);
        return core_error (error, TMQ_NO_MEMORY, NULL);
    }
    return core_request_start (self->all->requests, request, target, deadline_ms, error);
}
