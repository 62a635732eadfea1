/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker's requests beside the outcome: register, credit, started, renew, push, the
 * acknowledgement of a cancel, leave (S9 to S13, S23). */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

enum { REGISTERED_LEASES = 1, RENEWED_LEASES = 1 };

/* Leases. */

bool lease_is_current (const engine_t *self, const task_t *task, const Taskmq__Lease *lease)
{
    if (task == NULL || !task->leased)
        return false;
    if (self->config.planted_bug == ENGINE_BUG_NO_ATTEMPT_CHECK)
        return true;
    return task->attempt == lease->attempt &&
           sodium_memcmp (task->detail->secret, lease->secret.data,
                          sizeof (task->detail->secret)) == 0;
}

static void mark_started (engine_t *self, task_t *task)
{
    if (task->started)
        return;
    task->started = true;
    task->detail->started_at = self->wall;
    task->updated_at = self->wall;
    batch_touch_lazily (self, task);
}

/* The state of a listed or renewed lease; one that is held gets a fresh term. */
static tmq_code_t refresh (engine_t *self, const space_t *space, const worker_t *worker,
                           const Taskmq__Lease *lease, task_t **out)
{
    task_t *task = lookup_task (self, space, lease->task_id.data);
    *out = NULL;
    if (!lease_is_current (self, task, lease) || task->detail->holder != worker)
        return TMQ_STALE_LEASE;
    *out = task;
    lease_arm (self, task, task->lease_ms);
    return task->status == TMQ_STATUS_CANCELLED ? TMQ_CANCELLED : TMQ_OK;
}

/* register. */

static void take_seats (engine_t *self, worker_t *worker, const Taskmq__Register *request)
{
    seat_t *seats = memory_zero (request->n_queues, sizeof (*seats));
    for (size_t i = 0; i < request->n_queues; i++) {
        queue_t *queue = queue_make (self, worker->space, request->queues[i]);
        queue->seats++;
        seats[i] = (seat_t){.worker = worker, .queue = queue};
    }
    worker->seats = seats;
    worker->seats_count = request->n_queues;
}

/* What is assigned to the worker and not listed never reached it, or was lost by it: queued again,
 * not counted (S10). A worker ignores what arrives between its registration and the answer. */
static void return_unlisted (engine_t *self, worker_t *worker)
{
    node_t *next = NULL;
    worker->kept = true;
    for (node_t *node = worker->leases.next; node != &worker->leases; node = next) {
        detail_t *detail = LIST_ITEM (node, detail_t, held);
        next = node->next;
        bool listed = detail->listed;
        detail->listed = false;
        if (listed)
            continue;
        cause_t cause = {.actor = name_text (worker->identity),
                         .message = "the worker does not hold it any more"};
        change_return (self, detail->task, INPUT_RELEASE, 0, &cause);
    }
    worker->kept = false;
}

static void answer_register (call_t *call, worker_t *worker)
{
    engine_t *self = call->engine;
    const Taskmq__Register *request = call->request->register_;
    bytes_mark_t mark;
    bytes_t packed = BYTES_INIT;
    for (size_t i = 0; i < request->n_leases; i++) {
        const Taskmq__Lease *lease = request->leases[i];
        task_t *task = NULL;
        tmq_code_t code = refresh (self, worker->space, worker, lease, &task);
        if (task != NULL)
            task->detail->listed = true;
        if (task != NULL && lease->started)
            mark_started (self, task);
        pack_lease_state (&packed, REGISTERED_LEASES, lease->task_id.data, lease->attempt, code,
                          task == NULL ? 0 : task->lease_ms);
    }
    return_unlisted (self, worker);
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_REGISTERED, packed.data, packed.length);
    reply_close (self, call->link, mark, batch_to_wait_for (self), NULL);
    bytes_free (&packed);
}

void on_register (call_t *call)
{
    engine_t *self = call->engine;
    link_t *link = call->link;
    const Taskmq__Register *request = call->request->register_;
    if (link->workers_count >= LINK_WORKERS_MAX &&
        worker_find (self, link->space, request->worker_id.data) == NULL) {
        reply_code (call, TMQ_LIMIT, "too many workers on this link");
        return;
    }
    worker_t *worker = worker_make (self, link->space, request->worker_id.data);
    if (worker->identity != NULL && worker->identity != link->identity) {
        reply_code (call, TMQ_DENIED, "the worker's id belongs to somebody else");
        return;
    }
    if (link->serial < worker->serial) { /* it came late: the worker is on a newer link */
        reply_code_at_once (call, TMQ_NO_LINK, NULL, 0);
        return;
    }
    worker_detach (self, worker);
    worker->link = link;
    worker->serial = link->serial;
    list_push_back (&link->workers, &worker->of_link);
    link->workers_count++;
    if (worker->identity == NULL)
        worker->identity = names_keep (&self->names, name_text (link->identity));
    names_drop (&self->names, worker->name);
    worker->name = names_keep (&self->names, request->name);
    take_seats (self, worker, request);
    worker->seen = request->seen;
    if (worker->assigned < request->seen)
        worker->assigned = request->seen;
    answer_register (call, worker);
    worker->capacity = request->capacity;
    dispatch_worker_changed (self, worker);
}

/* Credit, leave. */

void on_worker_credit (call_t *call)
{
    engine_t *self = call->engine;
    const Taskmq__WorkerCredit *request = call->request->worker_credit;
    worker_t *worker = worker_find (self, call->link->space, request->worker_id.data);
    if (worker == NULL || worker->link != call->link) {
        reply_code (call, TMQ_NOT_FOUND, "the worker is not registered");
        return;
    }
    worker->seen = request->seen;
    worker->capacity = request->capacity;
    dispatch_worker_changed (self, worker);
}

void on_leave (call_t *call)
{
    engine_t *self = call->engine;
    worker_t *worker = worker_find (self, call->link->space, call->request->leave->worker_id.data);
    if (worker != NULL && worker->link == call->link) {
        worker_detach (self, worker);
        worker_drop_leases (self, worker, false, "the worker left");
        worker_release (self, worker);
        self->open.inputs++;
    }
    reply_code (call, TMQ_OK, NULL);
}

/* started, renew, push. */

/* The task that a report is about, or NULL when it was answered: another attempt took over, or the
 * task was cancelled meanwhile. */
static task_t *reported (call_t *call, const Taskmq__Lease *lease)
{
    engine_t *self = call->engine;
    task_t *task = lookup_task (self, call->link->space, lease->task_id.data);
    if (!lease_is_current (self, task, lease)) {
        self->counts.stale_leases++;
        reply_code (call, TMQ_STALE_LEASE, NULL);
        return NULL;
    }
    if (task->status != TMQ_STATUS_WORKING) {
        reply_code (call, TMQ_WRONG_STATUS, "the task was cancelled");
        return NULL;
    }
    return task;
}

void on_started (call_t *call)
{
    task_t *task = reported (call, call->request->started->lease);
    if (task == NULL)
        return;
    mark_started (call->engine, task);
    reply_code (call, TMQ_OK, NULL);
}

void on_renew (call_t *call)
{
    engine_t *self = call->engine;
    const Taskmq__Renew *request = call->request->renew;
    const worker_t *worker = worker_find (self, call->link->space, request->worker_id.data);
    uint64_t batch = 0; /* a renewal is not stored and need not wait (A8); bad news must be true */
    bytes_mark_t mark;
    bytes_t packed = BYTES_INIT;
    for (size_t i = 0; i < request->n_leases; i++) {
        const Taskmq__Lease *lease = request->leases[i];
        task_t *task = NULL;
        tmq_code_t code = refresh (self, call->link->space, worker, lease, &task);
        if (code != TMQ_OK)
            batch = batch_to_wait_for (self);
        if (task != NULL && lease->started && code == TMQ_OK)
            mark_started (self, task);
        pack_lease_state (&packed, RENEWED_LEASES, lease->task_id.data, lease->attempt, code,
                          task == NULL ? 0 : task->lease_ms);
    }
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_RENEWED, packed.data, packed.length);
    reply_close (self, call->link, mark, batch, NULL);
    bytes_free (&packed);
}

static void take_progress (engine_t *self, task_t *task, const Taskmq__Progress *progress)
{
    detail_t *detail = task->detail;
    detail->progress_done = progress->done;
    detail->progress_total = progress->total;
    detail_set_text (&detail->progress_unit, progress->unit);
    detail_set_text (&detail->progress_message, progress->message);
    task->updated_at = self->wall;
    batch_touch_lazily (self, task);
    if (task->notice)
        return;
    task->notice = true;
    self->noticed = memory_grow (self->noticed, &self->noticed_capacity, self->noticed_count,
                                 sizeof (task_t *));
    self->noticed[self->noticed_count++] = task;
}

void on_push (call_t *call)
{
    engine_t *self = call->engine;
    const Taskmq__Push *push = call->request->push;
    task_t *task = reported (call, push->lease);
    if (task == NULL)
        return;
    detail_t *detail = task->detail;
    const uint8_t *request_id = call->request->request_id.data;
    bool repeated = memcmp (detail->request_id, request_id, sizeof (detail->request_id)) == 0;
    mark_started (self, task);
    if (push->progress != NULL && !repeated)
        take_progress (self, task, push->progress);
    if (push->status_message[0] != '\0' && !repeated) {
        memcpy (detail->request_id, request_id, sizeof (detail->request_id));
        detail_set_text (&detail->status_message, push->status_message);
        cause_t cause = {.actor = name_text (call->link->identity),
                         .message = push->status_message};
        self->open.inputs++;
        change_apply (self, task, INPUT_CHANGE, &cause);
    }
    reply_code (call, TMQ_OK, NULL);
}

/* The acknowledgement of a cancel. */

void on_cancel_ack (call_t *call)
{
    engine_t *self = call->engine;
    const Taskmq__Lease *lease = call->request->cancel_ack->lease;
    found_t found = lookup_id (self, call->link->space, lease->task_id.data);
    task_t *task = found.task;
    if (lease_is_current (self, task, lease)) {
        if (task->status != TMQ_STATUS_CANCELLED) {
            reply_code (call, TMQ_WRONG_STATUS, "the task is not cancelled");
            return;
        }
        cancel_acknowledge (call, task);
        reply_code (call, TMQ_OK, NULL);
        return;
    }
    bool repeated = attempt_of_is (&found, lease) && found_status (&found) == TMQ_STATUS_CANCELLED;
    reply_code (call, repeated ? TMQ_OK : TMQ_STALE_LEASE, NULL);
}
