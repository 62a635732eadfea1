/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How an attempt ends: complete, fail, release (S8, S16, S17).
 *
 * A report of the current attempt is applied. Any other may be a repeat, and gets its first answer:
 * the task's record or the attempt's row keeps the secret and the request id that ended it. What is
 * left is stale and changes nothing; but a success is kept, as long as the task has none (S35). */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/requests/again.h"
#include "core/requests/answer.h"
#include "core/requests/naming.h"
#include "core/requests/report.h"
#include "core/tasks/attempt.h"
#include "core/tasks/blobs.h"
#include "core/tasks/change.h"
#include "core/tasks/failure.h"
#include "core/tasks/journal.h"
#include "core/tasks/lease.h"
#include "core/tasks/quarantine.h"
#include "ids.h"
#include "json.h"
#include "types.h"

/* The newest attempt of a task: its number, secret, and the request that ended it. */
static bool newest_attempt (const found_t *found, attempt_note_t *out)
{
    if (found->record != NULL) {
        *out = (attempt_note_t){.number = found->record->number, .attempt = found->record->attempt};
        memcpy (out->secret, found->record->secret, sizeof (out->secret));
        memcpy (out->request_id, found->record->request_id, sizeof (out->request_id));
        return true;
    }
    if (found->task == NULL || found->task->detail == NULL)
        return false;
    *out = (attempt_note_t){.number = found->task->number, .attempt = found->task->attempt};
    memcpy (out->secret, found->task->detail->secret, sizeof (out->secret));
    memcpy (out->request_id, found->task->detail->request_id, sizeof (out->request_id));
    return true;
}

static bool same_secret (const attempt_note_t *note, const Taskmq__Lease *lease)
{
    return note->attempt == lease->attempt &&
           sodium_memcmp (note->secret, lease->secret.data, sizeof (note->secret)) == 0;
}

/* … and this link had it. */
static bool attempt_of_is (const call_t *call, const found_t *found, const Taskmq__Lease *lease)
{
    attempt_note_t newest;
    const char *holder = found->record != NULL ? found->record->holder : "";
    if (found->task != NULL && found->task->detail != NULL)
        holder = name_text (found->task->detail->identity);
    return newest_attempt (found, &newest) && same_secret (&newest, lease) &&
           report_is_of (call->link, holder);
}

/* The row of an attempt that is over, if the lease was of it. */
static bool row_of (const call_t *call, const found_t *found, const Taskmq__Lease *lease,
                    attempt_note_t *out)
{
    int64_t number = found->task != NULL     ? found->task->number
                     : found->record != NULL ? found->record->number
                                             : 0;
    return find_attempt (call->requests->reads, call->link->space, lease->task_id.data, number,
                         lease->attempt, out) &&
           same_secret (out, lease);
}

/* The attempt's own row says that this very request ended it. */
static bool row_says_repeat (const call_t *call, const found_t *found, const Taskmq__Lease *lease)
{
    attempt_note_t row;
    return row_of (call, found, lease, &row) &&
           memcmp (row.request_id, call->request->request_id.data, sizeof (row.request_id)) == 0;
}

/* There is room for a success of this size among those that are kept. */
static bool can_be_kept (const call_t *call, const found_t *found, const Taskmq__Blob *blob)
{
    naming_refusal_t why;
    return !naming_refuses (call, found->owner, blob, "result_blob", &why) &&
           (blob == NULL ||
            blob->bytes <= (uint64_t) call->requests->base->config.space_kept_bytes_max);
}

/* Keeps the success that an attempt brought after its end (S35); false: it is none, or of no use
 * any more. What an attempt brings that was cancelled does not count (S5). */
static bool keep_late (call_t *call, found_t *found, const Taskmq__Lease *lease)
{
    requests_t *self = call->requests;
    const Taskmq__Complete *request = call->request->complete;
    attempt_note_t row;
    if (transition_find (found_status (found), INPUT_LATE) == NULL ||
        !row_of (call, found, lease, &row) || row.how == TMQ_EVENT_CANCELLED ||
        !access_queue (&call->link->access, found->queue, RIGHT_WORK))
        return false;
    const uint8_t *id = lease->task_id.data;
    if (kept_find (self->tasks, call->link->space, id, lease->attempt) == NULL) {
        const Taskmq__Blob *blob = request->result_blob;
        if (!kept_takes (self->tasks, call->link->space, id, lease->attempt) ||
            !can_be_kept (call, found, blob))
            return false;
        const char *type = request->result_type;
        if (blob == NULL)
            type = attempt_result_type (call->body, request->result_bytes, type);
        else if (type[0] == '\0')
            type = BLOB_TYPE;
        const late_t late = {&row, call->body, request->result_bytes, type, blob};
        const cause_t cause = {.actor = name_text (call->link->identity),
                               .worker = row.worker,
                               .attempt = row.attempt};
        journal_input (self->tasks);
        task_t *task = again_task (self, found);
        kept_add (self->tasks, task, &late);
        change_apply (self->tasks, task, INPUT_LATE, &cause);
    }
    return true;
}

/* The answer to a report that is not the current attempt's. ended: the status that the same report
 * would have led to at once, NONE when it leads back to the queue. */
static void answer_late (call_t *call, found_t *found, const Taskmq__Lease *lease,
                         tmq_status_t ended)
{
    requests_t *self = call->requests;
    bool there = found->task != NULL || found->record != NULL;
    if (!there || self->base->config.planted_bug == ENGINE_BUG_REPEAT_NOT_SEEN) {
        reply_stale (call, found, lease, false);
        return;
    }
    tmq_status_t status = found_status (found);
    bool own = attempt_of_is (call, found, lease);
    if (own && status == TMQ_STATUS_CANCELLED)
        reply_code (call, TMQ_WRONG_STATUS, "the task was cancelled");
    else if (own && status == TMQ_STATUS_COMPLETED && ended == TMQ_STATUS_COMPLETED)
        reply_code (call, TMQ_OK, NULL);
    else if (ended != TMQ_STATUS_COMPLETED && row_says_repeat (call, found, lease))
        reply_code (call, TMQ_OK, NULL);
    else if (found_is_seen (call->link, found) &&
             attempt_is_damaged (self->reads, call->link->space, lease->task_id.data,
                                 lease->attempt))
        reply_code (call, TMQ_INTERNAL, "the stored attempt is damaged");
    else if (self->base->full && ended == TMQ_STATUS_COMPLETED)
        reply_code_at_once (call, TMQ_STORE_FULL, NULL, FULL_RETRY_MS); /* it may be kept later */
    else
        reply_stale (call, found, lease,
                     ended == TMQ_STATUS_COMPLETED && keep_late (call, found, lease));
}

static void cancel_acknowledge (call_t *call, task_t *task)
{
    cause_t cause = {.actor = name_text (call->link->identity)};
    WORKER_COUNT (task->detail->holder, cancelled);
    call->requests->tasks->open.inputs++;
    attempt_end_withdrawn (call->requests->tasks, task, INPUT_CANCEL_ACK, &cause);
}

/* The task of a report by its current attempt; NULL when the report was answered. */
static task_t *begin (call_t *call, const Taskmq__Lease *lease, tmq_status_t ended)
{
    requests_t *self = call->requests;
    found_t found = find_unjudged (self->reads, call->link->space, lease->task_id.data);
    if (!lease_is_current (self->tasks, found.task, lease)) {
        answer_late (call, &found, lease, ended);
        return NULL;
    }
    if (report_is_denied (call, found.task))
        return NULL;
    if (found.task->status == TMQ_STATUS_CANCELLED &&
        self->base->config.planted_bug == ENGINE_BUG_CANCEL_FORGOTTEN)
        found.task->status = TMQ_STATUS_WORKING;
    if (task_is_withdrawn (found.task)) {
        cancel_acknowledge (call, found.task);
        reply_code (call, TMQ_WRONG_STATUS, "the task was cancelled");
        return NULL;
    }
    self->tasks->open.inputs++;
    return found.task;
}

static cause_t cause_of (const call_t *call, const char *message)
{
    return (cause_t){.actor = name_text (call->link->identity),
                     .message = message,
                     .request_id = call->request->request_id.data};
}

/* An outcome without a report of `started` shows that the work was done all the same. */
static void ensure_started (const requests_t *self, task_t *task)
{
    if (!task->started)
        task->detail->started_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    task->started = true;
}

/* True: that was answered, and the attempt goes on. */
static bool blob_is_refused (call_t *call, const task_t *task, const Taskmq__Blob *blob)
{
    naming_refusal_t why;
    if (!naming_refuses (call, name_text (task->owner), blob, "result_blob", &why))
        return false;
    naming_answer (call, &why);
    return true;
}

void on_complete (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Complete *request = call->request->complete;
    task_t *task = begin (call, request->lease, TMQ_STATUS_COMPLETED);
    if (task == NULL || blob_is_refused (call, task, request->result_blob))
        return;
    WORKER_COUNT (task->detail->holder, completed);
    ensure_started (self, task);
    if (request->result_blob != NULL)
        attempt_take_blob (self->tasks, task, request->result_blob, request->result_type);
    else
        attempt_take_result (self->tasks, task, call->body, request->result_bytes,
                             request->result_type);
    failure_set (self->tasks, task, 0, NULL, NULL);
    task->detail->outcome = TMQ_OUTCOME_RESULT;
    cause_t cause = cause_of (call, NULL);
    change_finish (self->tasks, task, INPUT_COMPLETE, &cause);
    reply_code (call, TMQ_OK, NULL);
}

void on_fail (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Fail *request = call->request->fail;
    if (task_error_is_reserved (request->code)) {
        reply_code_at_once (call, TMQ_INVALID, "codes -33099..-33001 are the broker's own", 0);
        return;
    }
    const char *long_data = (const char *) call->body + request->result_bytes;
    if (request->data_bytes > 0 && !json_text_is_valid (long_data, request->data_bytes)) {
        reply_code_at_once (call, TMQ_INVALID, "data: must be JSON", 0);
        return;
    }
    task_t *task = begin (call, request->lease, TMQ_STATUS_FAILED);
    if (task == NULL)
        return;
    WORKER_COUNT (task->detail->holder, failed);
    ensure_started (self, task);
    bool last = request->final || task->failures + 1 >= task->max_attempts;
    if (last && request->result_bytes > 0) {
        task->detail->outcome = TMQ_OUTCOME_TOOL_ERROR;
        attempt_take_result (self->tasks, task, call->body, request->result_bytes,
                             request->result_type);
    }
    char *copied = request->data_bytes > 0 ? memory_text_of (long_data, request->data_bytes) : NULL;
    const attempt_error_t error = {request->code, request->message,
                                   copied != NULL ? copied : request->data, request->final};
    cause_t cause = cause_of (call, request->message);
    attempt_fail (self->tasks, task, &error, &cause);
    free (copied);
    reply_code (call, TMQ_OK, NULL);
}

void on_release (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Release *request = call->request->release;
    task_t *task = begin (call, request->lease, TMQ_STATUS_NONE);
    if (task == NULL)
        return;
    WORKER_COUNT (task->detail->holder, released);
    int64_t delay_ms = request->delay_ms;
    if (request->no_delay)
        delay_ms = 0;
    else if (delay_ms == 0)
        delay_ms = TMQ_RELEASE_DELAY_MS_DEFAULT;
    cause_t cause = cause_of (call, NULL);
    attempt_return (self->tasks, task, INPUT_RELEASE, delay_ms, &cause);
    reply_code (call, TMQ_OK, NULL);
}

void on_cancel_ack (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Lease *lease = call->request->cancel_ack->lease;
    found_t found = find_unjudged (self->reads, call->link->space, lease->task_id.data);
    task_t *task = found.task;
    if (lease_is_current (self->tasks, task, lease)) {
        if (report_is_denied (call, task))
            return;
        if (!task_is_withdrawn (task)) {
            reply_code (call, TMQ_WRONG_STATUS, "the task is not cancelled");
            return;
        }
        cancel_acknowledge (call, task);
        reply_code (call, TMQ_OK, NULL);
        return;
    }
    bool repeated =
        attempt_of_is (call, &found, lease) && found_status (&found) == TMQ_STATUS_CANCELLED;
    if (repeated)
        reply_code (call, TMQ_OK, NULL);
    else
        reply_stale (call, &found, lease, false);
}
