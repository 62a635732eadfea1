/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The life of an attempt. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/tasks/attempt.h"
#include "core/tasks/blobs.h"
#include "core/tasks/extras.h"
#include "core/tasks/failure.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/lease.h"
#include "core/tasks/question.h"
#include "core/tasks/settings.h"
#include "ids.h"
#include "types.h"

void attempt_give (tasks_t *self, worker_t *worker, task_t *task)
{
    detail_t *detail = task_detail (&self->slab, task);
    lanes_serve (task);
    lanes_hold (self, task);
    change_unplace (self, task);
    if (self->base->config.planted_bug != ENGINE_BUG_ATTEMPT_REUSED || task->attempt == 0)
        task->attempt++;
    task->started = false;
    detail->started_at = 0;
    detail->runtime_due_ms = 0;
    detail->assignment = ++worker->assigned;
    secrets_take (&self->base->secrets, detail->secret, sizeof (detail->secret));
    memcpy (detail->worker_id, worker->id, sizeof (detail->worker_id));
    names_drop (&self->base->names, detail->worker);
    detail->worker = names_share (worker->name);
    names_drop (&self->base->names, detail->identity);
    detail->identity = names_share (worker->identity);
    lease_hold (self, worker, task);
    lease_arm (self, task, task->lease_ms);
    if (task->asks)
        asking_begin_attempt (self, task);
    if (task->queue->settings != NULL)
        settings_given (self, task->queue);
    cause_t cause = {.actor = name_text (worker->identity)};
    change_apply (self, task, INPUT_CLAIM, &cause);
    self->base->counts.claimed++;
}

static int64_t attempt_backoff_ms (tasks_t *self, const task_t *task, uint32_t times)
{
    int64_t delay_ms = task->backoff_ms;
    for (uint32_t i = 1; i < times && delay_ms < TMQ_BACKOFF_MS_MAX; i++)
        delay_ms *= 2;
    if (delay_ms > TMQ_BACKOFF_MS_MAX)
        delay_ms = TMQ_BACKOFF_MS_MAX;
    int64_t jitter_ms = delay_ms * TMQ_BACKOFF_JITTER_PERCENT / 100;
    return delay_ms - jitter_ms +
           (int64_t) secrets_below (&self->base->secrets, (uint64_t) (2 * jitter_ms + 1));
}

/* A task whose attempt ended without an end of the task goes back to its queue. */
static void attempt_requeue (tasks_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                             const cause_t *cause)
{
    detail_t *detail = task->detail;
    lease_end (self, task);
    detail_set_text (&detail->status_message, NULL);
    detail_set_text (&detail->progress_message, NULL);
    detail_set_text (&detail->progress_unit, NULL);
    detail->progress_done = detail->progress_total = 0;
    int64_t now_ms = clocks_wall_ms (&self->base->clocks, task->updated_at);
    task->not_before = delay_ms > 0 ? now_ms + delay_ms : 0;
    task->by_wall = false;
    change_extend_expiry (task, now_ms);
    change_apply (self, task, input, cause);
    if (task->status == TMQ_STATUS_QUEUED)
        change_place (self, task);
}

/* The lease beside open questions ends: nothing else does (S22). The last answer queues the
 * task. */
static void end_asking (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    tmq_event_kind_t how = input == INPUT_RELEASE ? TMQ_EVENT_RELEASED : TMQ_EVENT_LEASE_LOST;
    journal_add_attempt (self, task, how, 0, NULL, cause == NULL ? NULL : cause->request_id);
    lease_end (self, task);
    task->not_before = 0;
    task->by_wall = false;
    change_apply (self, task, input, cause);
}

void attempt_end_withdrawn (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    lease_end (self, task);
    change_apply (self, task, input, cause);
    if (task->status == TMQ_STATUS_QUEUED)
        change_place (self, task);
}

static void fail_dead (tasks_t *self, task_t *task, const char *text, const cause_t *cause)
{
    const uint8_t *request_id = cause == NULL ? NULL : cause->request_id;
    task->dead = true;
    journal_add_attempt (self, task, TMQ_EVENT_FAILED, TMQ_TASK_ERROR_LEASE_LOST, text, request_id);
    failure_set (self, task, TMQ_TASK_ERROR_LEASE_LOST, text, NULL);
    change_fail (self, task, INPUT_LOSE_FINALLY, cause);
}

void attempt_return (tasks_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                     const cause_t *cause)
{
    if (task_is_withdrawn (task)) {
        attempt_end_withdrawn (self, task, input, cause);
        return;
    }
    self->base->counts.released++;
    if (task->status == TMQ_STATUS_INPUT_REQUIRED) {
        end_asking (self, task, input, cause);
        return;
    }
    if (task->returns < RETURNS_MAX)
        task->returns++;
    if (task->returns >= TMQ_UNCOUNTED_COUNT_FROM && ++task->failures >= task->max_attempts) {
        char text[96];
        snprintf (text, sizeof (text),
                  "the task came back %" PRIu32 " times in a row without an outcome",
                  task->returns);
        cause_t with_text = {0};
        if (cause != NULL)
            with_text = *cause;
        with_text.message = text;
        fail_dead (self, task, text, &with_text);
        return;
    }
    if (task->returns >= TMQ_UNCOUNTED_BACKOFF_FROM) {
        int64_t backoff_ms =
            attempt_backoff_ms (self, task, task->returns - TMQ_UNCOUNTED_BACKOFF_FROM + 1);
        if (delay_ms < backoff_ms)
            delay_ms = backoff_ms;
    }
    journal_add_attempt (self, task,
                         input == INPUT_RELEASE ? TMQ_EVENT_RELEASED : TMQ_EVENT_LEASE_LOST, 0,
                         NULL, cause == NULL ? NULL : cause->request_id);
    attempt_requeue (self, task, input, delay_ms, cause);
}

void attempt_undelivered (tasks_t *self, task_t *task)
{
    cause_t cause = {.message = "the assignment could not be delivered"};
    if (task_is_withdrawn (task)) {
        attempt_end_withdrawn (self, task, INPUT_RELEASE, &cause);
        return;
    }
    self->base->counts.released++;
    journal_add_attempt (self, task, TMQ_EVENT_RELEASED, 0, NULL, NULL);
    attempt_requeue (self, task, INPUT_RELEASE, 0, &cause);
}

void attempt_lose (tasks_t *self, task_t *task, const char *why)
{
    cause_t cause = {.message = why};
    self->base->counts.leases_lost++;
    task->detail->holder->lost = true;
    WORKER_COUNT (task->detail->holder, lost);
    if (task_is_withdrawn (task)) {
        attempt_end_withdrawn (self, task, INPUT_LOSE, &cause);
        return;
    }
    if (task->status == TMQ_STATUS_INPUT_REQUIRED) {
        end_asking (self, task, INPUT_LOSE, &cause);
        return;
    }
    if (!task->started) {
        attempt_return (self, task, INPUT_LOSE, 0, &cause);
        return;
    }
    task->returns = 0;
    if (++task->failures >= task->max_attempts) {
        fail_dead (self, task, task_error_text (TMQ_TASK_ERROR_LEASE_LOST), NULL);
        return;
    }
    journal_add_attempt (self, task, TMQ_EVENT_LEASE_LOST, TMQ_TASK_ERROR_LEASE_LOST, why, NULL);
    failure_set (self, task, TMQ_TASK_ERROR_LEASE_LOST, why, NULL);
    attempt_requeue (self, task, INPUT_LOSE, attempt_backoff_ms (self, task, task->failures),
                     &cause);
}

/* Of a task that is tried again, its data stays in memory: there may be no room for it. */
static void keep_error (tasks_t *self, task_t *task, const attempt_error_t *error, bool last)
{
    char noted[TMQ_ERROR_MESSAGE_BYTES_MAX + 1];
    size_t bytes = error->data == NULL ? 0 : strlen (error->data);
    if (last || failure_fits (self, task, bytes)) {
        failure_set (self, task, error->code, error->message, error->data);
        return;
    }
    failure_note (noted, error->message == NULL ? "" : error->message, bytes);
    failure_set (self, task, error->code, noted, NULL);
}

void attempt_fail (tasks_t *self, task_t *task, const attempt_error_t *error, const cause_t *cause)
{
    const uint8_t *request_id = cause == NULL ? NULL : cause->request_id;
    bool dead = ++task->failures >= task->max_attempts;
    task->returns = 0;
    keep_error (self, task, error, error->final || dead);
    journal_add_attempt (self, task,
                         error->final || dead ? TMQ_EVENT_FAILED : TMQ_EVENT_ATTEMPT_FAILED,
                         error->code, error->message, request_id);
    if (error->final || dead) {
        task->dead = !error->final;
        change_fail (self, task, INPUT_FAIL_FINALLY, cause);
        return;
    }
    self->base->counts.attempts_failed++;
    attempt_requeue (self, task, INPUT_FAIL, attempt_backoff_ms (self, task, task->failures),
                     cause);
}

void attempt_overrun (tasks_t *self, task_t *task)
{
    const char *text = task_error_text (TMQ_TASK_ERROR_MAX_RUNTIME);
    const attempt_error_t error = {.code = TMQ_TASK_ERROR_MAX_RUNTIME, .message = text};
    const cause_t cause = {.message = text};
    self->base->counts.overran++;
    attempt_fail (self, task, &error, &cause);
}

const char *attempt_result_type (const uint8_t *bytes, uint32_t length, const char *type)
{
    if (type[0] != '\0')
        return type;
    return utf8_is_valid (bytes, length) ? "text/plain" : "application/octet-stream";
}

void attempt_take_result (tasks_t *self, task_t *task, const uint8_t *bytes, uint32_t length,
                          const char *type)
{
    detail_t *detail = task->detail;
    detail->result_bytes = length;
    if (length > 0)
        detail->result = buf_new (bytes, length);
    names_drop (&self->base->names, detail->result_type);
    detail->result_type =
        names_keep (&self->base->names, attempt_result_type (bytes, length, type));
    self->open.bytes += length;
}

void attempt_take_blob (tasks_t *self, task_t *task, const Taskmq__Blob *blob, const char *type)
{
    extra_set_blob (&extras_edit (task)->result_blob, blob);
    extras_changed (self, task);
    if (self->base->config.planted_bug != ENGINE_BUG_BLOB_RESULT_UNCOUNTED)
        blob_take (self, name_text (task->owner), blob);
    attempt_take_result (self, task, NULL, 0, type[0] != '\0' ? type : BLOB_TYPE);
}
