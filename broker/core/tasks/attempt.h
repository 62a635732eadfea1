/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The life of an attempt: it is given, and ends without an end of its task. */
#ifndef TASKMQ_CORE_ATTEMPT_H
#define TASKMQ_CORE_ATTEMPT_H

#include "core/tasks/change.h"
#include "core/tasks/tasks.h"

/* A new attempt of a ready task, held by the worker. */
void attempt_give (tasks_t *self, worker_t *worker, task_t *task);
/* An uncounted return (S4): release, goodbye, undelivered, lost before it was started. */
void attempt_return (tasks_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                     const cause_t *cause);
/* The lease beside a cancelled task ends: nothing else does (S5). One that was queued again since
 * may be claimed now. */
void attempt_end_withdrawn (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* The assignment never reached the worker: back in the queue, and not even an uncounted return. */
void attempt_undelivered (tasks_t *self, task_t *task);
/* The lease ended by itself: counted when the attempt was started. */
void attempt_lose (tasks_t *self, task_t *task, const char *why);
/* What an attempt failed with. */
typedef struct attempt_error {
    int32_t code;
    const char *message; /* NULL: none */
    const char *data;    /* as message: JSON text */
    bool final;          /* not to be tried again */
} attempt_error_t;
/* A started attempt failed: the task is tried again, or fails with what its detail has as outcome.
 */
void attempt_fail (tasks_t *self, task_t *task, const attempt_error_t *error, const cause_t *cause);
/* It ran for longer than its task's max_runtime, which is a failure like a reported one. */
void attempt_overrun (tasks_t *self, task_t *task);
/* The content type of a result; type: empty for the default. */
const char *attempt_result_type (const uint8_t *bytes, uint32_t length, const char *type);
/* What an attempt brought, into the task's detail, which has no result yet. type: as
 * above. */
void attempt_take_result (tasks_t *self, task_t *task, const uint8_t *bytes, uint32_t length,
                          const char *type);
/* The same of a result that is larger than a frame, for which there is room (blobs.h). */
void attempt_take_blob (tasks_t *self, task_t *task, const Taskmq__Blob *blob, const char *type);

#endif
