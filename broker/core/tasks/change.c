/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One transition with everything that follows from it here: status, version, event, the task's
 * place in the ready order or on a wheel, the end of its lease, and the fact for the rooms
 * above. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/account.h"
#include "core/tasks/artifacts.h"
#include "core/tasks/blobs.h"
#include "core/tasks/change.h"
#include "core/tasks/checkpoint.h"
#include "core/tasks/due.h"
#include "core/tasks/edges.h"
#include "core/tasks/extras.h"
#include "core/tasks/failure.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/lease.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/question.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"
#include "core/tasks/turns.h"
#include "ids.h"
#include "types.h"

static const char *actor_of (const cause_t *cause)
{
    return cause == NULL || cause->actor == NULL ? "taskmqd" : cause->actor;
}

static const char *message_of (const cause_t *cause)
{
    return cause == NULL || cause->message == NULL ? "" : cause->message;
}

static void count_status (const task_t *task, tmq_status_t status, int by)
{
    queue_t *queue = task->queue;
    if (status == TMQ_STATUS_QUEUED) {
        queue->queued += (uint32_t) by;
        uint64_t bytes = extras_payload_bytes (task);
        queue->queued_bytes += by > 0 ? bytes : 0 - bytes;
    } else if (status == TMQ_STATUS_WORKING)
        queue->working += (uint32_t) by;
    else if (status == TMQ_STATUS_INPUT_REQUIRED)
        queue->input_required += (uint32_t) by;
}

static void count_totals (task_t *task, task_input_t input, tmq_status_t from)
{
    queue_totals_t *totals = &task->queue->totals;
    bool lost = input == INPUT_LOSE && from == TMQ_STATUS_WORKING && task->started;
    totals->submitted += input == INPUT_SUBMIT;
    totals->completed += task->status == TMQ_STATUS_COMPLETED && from != TMQ_STATUS_COMPLETED;
    totals->failed += task->status == TMQ_STATUS_FAILED && from != TMQ_STATUS_FAILED;
    totals->attempts_failed +=
        lost || input == INPUT_FAIL || input == INPUT_FAIL_FINALLY || input == INPUT_LOSE_FINALLY;
}

static void note_fact (tasks_t *self, task_t *task, task_input_t input, tmq_status_t from)
{
    self->facts =
        memory_grow (self->facts, &self->facts_capacity, self->facts_count, sizeof (fact_t));
    self->facts[self->facts_count++] = (fact_t){task, input, from, task->status};
}

/* Its image and its event. */
static void tell (tasks_t *self, task_t *task, const transition_t *row, tmq_status_t previous,
                  const cause_t *cause)
{
    journal_touch (self, task);
    task_texts_t texts MEMORY_FILLED_BEFORE_READ;
    if (task->labels_count > 0)
        task_texts (task, &texts);
    event_t event = {.kind = row->event,
                     .id = &task->id,
                     .queue = task->queue->name,
                     .session = session_text (task->session),
                     .status = row->to,
                     .previous = previous,
                     .attempt = task->attempt,
                     .worker = task->detail == NULL ? "" : name_text (task->detail->worker),
                     .actor = actor_of (cause),
                     .message = message_of (cause),
                     .labels = texts.labels,
                     .labels_count = task->labels_count,
                     .previous_seq = task->last_seq,
                     .owner = name_text (task->owner),
                     .trace = task->extra == NULL ? NULL : extras_of (task)->trace};
    if (cause != NULL && cause->attempt > 0) {
        event.attempt = cause->attempt;
        event.worker = cause->worker;
    }
    if (cause != NULL && (cause->number > 0 || cause->name != NULL)) {
        event.name = cause->name;
        event.number = cause->number;
    }
    history_add (self->history, &task->queue->space->log, &event);
    task->last_seq = event.seq;
}

void change_apply (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    const transition_t *row = transition_find (task->status, input);
    assert (row != NULL && row->to != TMQ_STATUS_NONE);
    tmq_status_t previous = task->status;
    task->status = (uint8_t) row->to;
    count_status (task, previous, -1);
    count_status (task, row->to, 1);
    count_totals (task, input, previous);
    if (task_is_terminal (task) && previous < TMQ_STATUS_COMPLETED) {
        self->ended++;
        space_end_task (task);
        account_end_task (self, task);
        session_end_task (self, task);
        needs_end (self, task);
    } else if (!task_is_terminal (task) && previous >= TMQ_STATUS_COMPLETED) {
        self->ended--;
        space_add_task (task);
        account_add_task (self, task);
        session_add_task (self, task);
        needs_begin (self, task);
    }
    task->version++;
    task->updated_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    tell (self, task, row, previous, cause);
    note_fact (self, task, input, previous);
}

void change_imported (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    const transition_t *row = transition_find (TMQ_STATUS_NONE, input);
    assert (row != NULL && row->to == task->status);
    count_status (task, row->to, 1);
    tell (self, task, row, TMQ_STATUS_NONE, cause);
    note_fact (self, task, input, TMQ_STATUS_NONE);
}

void change_write_lazy (tasks_t *self)
{
    for (task_t *task = journal_lazy_next (self); task != NULL; task = journal_lazy_next (self)) {
        const transition_t *row = transition_find (task->status, INPUT_CHANGE);
        if (row != NULL && row->to != TMQ_STATUS_NONE) {
            change_apply (self, task, INPUT_CHANGE, NULL);
        } else {
            task->version++; /* only now: a version that was shown must not be taken back */
            journal_touch (self, task);
        }
        journal_close_full (self);
    }
}

/* Expiry. */

bool task_is_over (const tasks_t *self, const task_t *task)
{
    return task_is_terminal (task) && !task->leased && task->expires_at != 0 &&
           task->expires_at <= clocks_expiry_ms (&self->base->clocks);
}

/* A queued task's place. */

void change_place (tasks_t *self, task_t *task)
{
    assert (task->status == TMQ_STATUS_QUEUED && !task->ready && !task->scheduled && !task->held);
    assert (!task->leased);
    bool due = due_has_come (self, task);
    task->due = false;
    if (due)
        task->ends_first = false;
    task->alarm.kind = ALARM_TASK;
    if (edges_hold (self, task)) {
        due_arm_ready (self, task);
        return;
    }
    if (!due) {
        task->scheduled = true;
        task->queue->scheduled++;
        list_push_back (&self->delayed, &task->place);
        due_arm_scheduled (self, task);
        return;
    }
    if (session_holds (task->session) &&
        self->base->config.planted_bug != ENGINE_BUG_SESSION_UNHELD) {
        session_hold (self, task);
        due_arm_ready (self, task);
        return;
    }
    lanes_push (self, task);
    self->ready++;
    due_arm_ready (self, task);
    queue_changed (self, task->queue);
}

void change_unplace (tasks_t *self, task_t *task)
{
    alarm_disarm (&task->alarm);
    if (task->scheduled) {
        task->scheduled = false;
        task->queue->scheduled--;
        list_unlink (&task->place);
    }
    if (task->ready) {
        lanes_remove (self, task);
        self->ready--;
    }
    if (task->held)
        session_unhold (self, task);
    if (task->blocked)
        edges_drop (self, task);
}

void change_hold (tasks_t *self, task_t *task)
{
    lanes_remove (self, task);
    self->ready--;
    session_hold (self, task);
}

void change_judge_delays (tasks_t *self)
{
    list_append (&self->delays_to_judge, &self->delayed);
}

void change_judge_some (tasks_t *self)
{
    size_t *left = &self->base->round.alarms;
    for (node_t *node = list_first (&self->delays_to_judge); node != NULL && *left > 0;
         node = list_first (&self->delays_to_judge)) {
        task_t *task = LIST_ITEM (node, task_t, place);
        change_unplace (self, task);
        change_place (self, task);
        budget_take (left, 1);
    }
}

void change_extend_expiry (task_t *task, int64_t from_ms)
{
    if (task->ttl_ms == 0)
        return;
    int64_t least = task->ttl_ms < TMQ_RESULT_TTL_MS_MIN ? task->ttl_ms : TMQ_RESULT_TTL_MS_MIN;
    if (task->expires_at < from_ms + least)
        task->expires_at = from_ms + least;
}

static void count_end (tasks_t *self, const task_t *task)
{
    if (task->status == TMQ_STATUS_COMPLETED)
        self->base->counts.completed++;
    else if (task->status == TMQ_STATUS_CANCELLED)
        self->base->counts.cancelled++;
    else
        self->base->counts.failed++;
    if (task->dead)
        self->base->counts.dead++;
}

void change_finish (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
{
    detail_t *detail = task_detail (&self->slab, task);
    if (task->status == TMQ_STATUS_QUEUED && !task->leased)
        change_unplace (self, task);
    if (task->leased && input != INPUT_CANCEL)
        lease_end (self, task);
    detail->finished_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    if (cause != NULL && cause->request_id != NULL)
        memcpy (detail->request_id, cause->request_id, sizeof (detail->request_id));
    change_extend_expiry (task, self->base->clocks.wall_ms);
    if (task->asks)
        asking_end (self, task);
    change_apply (self, task, input, cause);
    if (task->extra != NULL && task->status != TMQ_STATUS_FAILED)
        checkpoint_drop (self, task);
    if (task->status == TMQ_STATUS_COMPLETED)
        kept_drop (self, task->queue->space, &task->id);
    count_end (self, task);
}

void change_fail (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause)
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

/* What the last attempt failed with stays readable in the text. */
static void ending_text (char *out, size_t size, const detail_t *detail, tmq_task_error_t error)
{
    const char *why = error == TMQ_TASK_ERROR_START_MISSED
                          ? "the task was still queued at its start_by"
                          : "the task's time to live ended before it was claimed again";
    if (detail->error_code == 0 && detail->error_message == NULL) {
        snprintf (out, size, "%s", why);
        return;
    }
    snprintf (out, size, "%s; its last error: %" PRId32 " %s", why, detail->error_code,
              detail->error_message == NULL ? "" : detail->error_message);
    size_t length = strlen (out);
    size_t kept = 0;
    size_t character = 1;
    while (kept < length && character > 0) {
        character = utf8_character ((const uint8_t *) out + kept, length - kept);
        kept += character;
    }
    out[kept] = '\0';
}

void change_end_unclaimed (tasks_t *self, task_t *task)
{
    char again[TMQ_ERROR_MESSAGE_BYTES_MAX + 1];
    detail_t *detail = task_detail (&self->slab, task);
    tmq_task_error_t error = due_error (task);
    const char *text = task_error_text (error);
    bool missed = error == TMQ_TASK_ERROR_START_MISSED;
    if (missed)
        self->base->counts.start_missed++;
    else
        self->base->counts.expired++;
    if (task->attempt > 0) {
        ending_text (again, sizeof (again), detail, error);
        text = again;
    }
    failure_set (self, task, error, text, NULL);
    change_fail (self, task, missed ? INPUT_MISS_START : INPUT_EXPIRE, NULL);
}

void change_damaged (tasks_t *self, task_t *task)
{
    task->payload_wanted = false;
    if (task->status != TMQ_STATUS_QUEUED)
        return;
    failure_set (self, task, TMQ_TASK_ERROR_DAMAGED, task_error_text (TMQ_TASK_ERROR_DAMAGED),
                 NULL);
    change_fail (self, task, INPUT_EXPIRE, NULL);
}

void change_remove (tasks_t *self, space_t *space, const record_t *record, task_input_t input,
                    const cause_t *cause)
{
    const transition_t *row = transition_find (record->status, input);
    assert (row != NULL && row->to == TMQ_STATUS_NONE);
    event_t event = {.kind = row->event,
                     .id = &record->id,
                     .queue = record->queue,
                     .session = record->session,
                     .status = TMQ_STATUS_NONE,
                     .previous = record->status,
                     .attempt = record->attempt,
                     .worker = record->worker,
                     .actor = actor_of (cause),
                     .message = message_of (cause),
                     .labels = record->labels,
                     .labels_count = record->labels_count,
                     .previous_seq = record->last_seq,
                     .owner = record->owner};
    if (record->extra != NULL) {
        extra_t *extra = extra_new (record->extra);
        checkpoint_remove (self, record, extra->fields);
        turns_remove (self, space, record, extra->fields);
        artifacts_remove (self, space, record, extra->fields);
        blobs_remove (self, record->owner, extra->fields);
        extra_free (extra);
    }
    kept_drop (self, space, &record->id);
    journal_add_removal (self, space, record, input == INPUT_PURGE ? TMQ_PURGED : TMQ_EXPIRED,
                         cause == NULL ? 0 : cause->why);
    history_add (self->history, &space->log, &event);
    if (input == INPUT_PURGE)
        self->base->counts.purged++;
    else
        self->base->counts.removed++;
}
