/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One transition with everything that follows from it: status, version, event, the task's place in
 * the ready order or on a wheel, the end of its lease, and those who wait for its end. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"
#include "types.h"

/* Events. */

static void add_event (engine_t *self, space_t *space, event_t *event)
{
    event->seq = ++space->last_seq;
    event->at = self->wall;
    if (event->seq == 1)
        self->spaces_used++;
    if (space->open_count++ == 0)
        list_push_back (&self->open.spaces, &space->opened);
    pack_event (&space->open, event);
    self->counts.events++;
}

static const char *actor_of (const cause_t *cause)
{
    return cause == NULL || cause->actor == NULL ? "taskmqd" : cause->actor;
}

static const char *message_of (const cause_t *cause)
{
    return cause == NULL || cause->message == NULL ? "" : cause->message;
}

static void count_status (queue_t *queue, tmq_status_t status, int by)
{
    if (status == TMQ_STATUS_WORKING)
        queue->working += (uint32_t) by;
    else if (status == TMQ_STATUS_INPUT_REQUIRED)
        queue->input_required += (uint32_t) by;
}

void change_apply (engine_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    const transition_t *row = transition_find (task->status, input);
    assert (row != NULL && row->to != TMQ_STATUS_NONE);
    tmq_status_t previous = task->status;
    task->status = (uint8_t) row->to;
    count_status (task->queue, previous, -1);
    count_status (task->queue, row->to, 1);
    task->version++;
    task->updated_at = self->wall;
    batch_touch (self, task);
    task_texts_t texts;
    if (task->labels_count > 0)
        task_texts (task, &texts);
    event_t event = {.kind = row->event,
                     .id = &task->id,
                     .queue = task->queue->name,
                     .session = name_text (task->session),
                     .status = row->to,
                     .previous = previous,
                     .attempt = task->attempt,
                     .worker = task->detail == NULL ? "" : name_text (task->detail->worker),
                     .actor = actor_of (cause),
                     .message = message_of (cause),
                     .labels = texts.labels,
                     .labels_count = task->labels_count,
                     .previous_seq = task->last_seq};
    add_event (self, task->queue->space, &event);
    task->last_seq = event.seq;
}

/* A queued task's place. */

bool task_is_expired (const engine_t *self, const task_t *task)
{
    return task->expires_at != 0 && task->expires_at <= engine_expiry_ms (self);
}

/* not_before is a wall time, but the wait for it runs on the monotonic clock, so that a wall clock
 * set back cannot hold a retry up. */
static void schedule (engine_t *self, task_t *task)
{
    int64_t wait_ms = task->not_before - self->wall;
    if (task->expires_at != 0 && task->expires_at - engine_expiry_ms (self) < wait_ms)
        wait_ms = task->expires_at - engine_expiry_ms (self);
    task->scheduled = true;
    task->queue->scheduled++;
    wheel_arm (&self->fine, &task->alarm, self->mono + wait_ms);
}

void change_place (engine_t *self, task_t *task)
{
    assert (task->status == TMQ_STATUS_QUEUED && !task->ready && !task->scheduled);
    bool due = task->due || task->not_before <= self->wall;
    task->due = false;
    task->alarm.kind = ALARM_TASK;
    if (!due) {
        schedule (self, task);
        return;
    }
    queue_push (task->queue, task);
    self->ready++;
    if (task->expires_at != 0)
        wheel_arm (&self->coarse, &task->alarm, task->expires_at);
    dispatch_queue_changed (self, task->queue);
}

void change_unplace (engine_t *self, task_t *task)
{
    alarm_disarm (&task->alarm);
    if (task->scheduled) {
        task->scheduled = false;
        task->queue->scheduled--;
    }
    if (task->ready) {
        queue_remove (task->queue, task);
        self->ready--;
    }
}

/* The end of a task. */

/* S14: readable for at least the smaller of its ttl and 24 h after its end. */
static void extend_expiry (task_t *task, int64_t finished_at)
{
    if (task->ttl_ms == 0)
        return;
    int64_t least = task->ttl_ms < TMQ_RESULT_TTL_MS_MIN ? task->ttl_ms : TMQ_RESULT_TTL_MS_MIN;
    if (task->expires_at < finished_at + least)
        task->expires_at = finished_at + least;
}

static void count_end (engine_t *self, const task_t *task)
{
    if (task->status == TMQ_STATUS_COMPLETED)
        self->counts.completed++;
    else if (task->status == TMQ_STATUS_CANCELLED)
        self->counts.cancelled++;
    else
        self->counts.failed++;
    if (task->dead)
        self->counts.dead++;
}

void change_finish (engine_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    detail_t *detail = task_detail (&self->slab, task);
    if (task->status == TMQ_STATUS_QUEUED)
        change_unplace (self, task);
    if (task->leased && input != INPUT_CANCEL)
        lease_end (self, task);
    detail->finished_at = self->wall;
    if (cause != NULL && cause->request_id != NULL)
        memcpy (detail->request_id, cause->request_id, sizeof (detail->request_id));
    extend_expiry (task, self->wall);
    change_apply (self, task, input, cause);
    count_end (self, task);
    wait_task_ended (self, task);
}

void change_fail (engine_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    detail_t *detail = task_detail (&self->slab, task);
    if (detail->outcome == TMQ_OUTCOME_NONE)
        detail->outcome = TMQ_OUTCOME_PROTOCOL_ERROR;
    cause_t with_text = {0};
    if (cause != NULL)
        with_text = *cause;
    if (with_text.message == NULL)
        with_text.message = detail->error_message;
    change_finish (self, task, input, &with_text);
}

void change_expire (engine_t *self, task_t *task)
{
    self->counts.expired++;
    detail_set_error (task_detail (&self->slab, task), TMQ_TASK_ERROR_EXPIRED,
                      task_error_text (TMQ_TASK_ERROR_EXPIRED), NULL);
    change_fail (self, task, INPUT_EXPIRE, NULL);
}

/* The end of an attempt. */

int64_t change_backoff_ms (engine_t *self, const task_t *task, uint32_t times)
{
    int64_t delay_ms = task->backoff_ms;
    for (uint32_t i = 1; i < times && delay_ms < TMQ_BACKOFF_MS_MAX; i++)
        delay_ms *= 2;
    if (delay_ms > TMQ_BACKOFF_MS_MAX)
        delay_ms = TMQ_BACKOFF_MS_MAX;
    int64_t jitter_ms = delay_ms * TMQ_BACKOFF_JITTER_PERCENT / 100;
    return delay_ms - jitter_ms +
           (int64_t) secrets_below (&self->secrets, (uint64_t) (2 * jitter_ms + 1));
}

void change_requeue (engine_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                     const cause_t *cause)
{
    detail_t *detail = task->detail;
    lease_end (self, task);
    detail_set_text (&detail->status_message, NULL);
    detail_set_text (&detail->progress_message, NULL);
    detail_set_text (&detail->progress_unit, NULL);
    detail->progress_done = detail->progress_total = 0;
    task->not_before = delay_ms > 0 ? self->wall + delay_ms : 0;
    change_apply (self, task, input, cause);
    change_place (self, task);
}

/* The lease beside a cancelled task ends: nothing else does (S7). */
static void end_cancelled (engine_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    lease_end (self, task);
    change_apply (self, task, input, cause);
}

static void fail_dead (engine_t *self, task_t *task, const uint8_t *request_id,
                       const cause_t *cause)
{
    const char *text = task_error_text (TMQ_TASK_ERROR_LEASE_LOST);
    task->dead = true;
    batch_add_attempt (self, task, TMQ_EVENT_FAILED, TMQ_TASK_ERROR_LEASE_LOST, text, request_id);
    detail_set_error (task->detail, TMQ_TASK_ERROR_LEASE_LOST, text, NULL);
    change_fail (self, task, INPUT_LOSE_FINALLY, cause);
}

void change_return (engine_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                    const cause_t *cause)
{
    const uint8_t *request_id = cause == NULL ? NULL : cause->request_id;
    if (task->status == TMQ_STATUS_CANCELLED) {
        end_cancelled (self, task, input, cause);
        return;
    }
    self->counts.released++;
    task->returns++;
    if (task->returns >= TMQ_UNCOUNTED_COUNT_FROM && ++task->failures >= task->max_attempts) {
        fail_dead (self, task, request_id, cause);
        return;
    }
    if (task->returns >= TMQ_UNCOUNTED_BACKOFF_FROM) {
        int64_t backoff_ms =
            change_backoff_ms (self, task, task->returns - TMQ_UNCOUNTED_BACKOFF_FROM + 1);
        if (delay_ms < backoff_ms)
            delay_ms = backoff_ms;
    }
    batch_add_attempt (self, task,
                       input == INPUT_RELEASE ? TMQ_EVENT_RELEASED : TMQ_EVENT_LEASE_LOST, 0, NULL,
                       request_id);
    change_requeue (self, task, input, delay_ms, cause);
}

void change_lose (engine_t *self, task_t *task, const char *why)
{
    cause_t cause = {.message = why};
    /* A worker whose leases are being dropped is kept: that loop would not end. */
    if (self->config.planted_bug == ENGINE_BUG_LEASE_NEVER_ENDS && !task->detail->holder->kept)
        return;
    self->counts.leases_lost++;
    if (task->detail->holder->link != NULL)
        task->detail->holder->link->suspect = true;
    if (task->status == TMQ_STATUS_CANCELLED) {
        end_cancelled (self, task, INPUT_LOSE, &cause);
        return;
    }
    if (!task->started) {
        change_return (self, task, INPUT_LOSE, 0, &cause);
        return;
    }
    task->returns = 0;
    if (++task->failures >= task->max_attempts) {
        fail_dead (self, task, NULL, NULL);
        return;
    }
    batch_add_attempt (self, task, TMQ_EVENT_LEASE_LOST, TMQ_TASK_ERROR_LEASE_LOST, why, NULL);
    detail_set_error (task->detail, TMQ_TASK_ERROR_LEASE_LOST, why, NULL);
    change_requeue (self, task, INPUT_LOSE, change_backoff_ms (self, task, task->failures), &cause);
}

/* Removal (S16). */

void change_remove (engine_t *self, space_t *space, const record_t *record)
{
    const transition_t *row = transition_find (record->status, INPUT_REMOVE);
    assert (row != NULL && row->to == TMQ_STATUS_NONE);
    event_t event = {.kind = row->event,
                     .id = &record->id,
                     .queue = record->queue,
                     .session = record->session,
                     .status = TMQ_STATUS_NONE,
                     .previous = record->status,
                     .attempt = record->attempt,
                     .worker = record->worker,
                     .actor = "taskmqd",
                     .message = "",
                     .labels = record->labels,
                     .labels_count = record->labels_count,
                     .previous_seq = record->last_seq};
    batch_add_removal (self, space, record->number, &record->id, TMQ_EXPIRED);
    add_event (self, space, &event);
    self->counts.removed++;
}
