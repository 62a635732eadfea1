/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ready tasks to waiting workers, and the leases that come of it.
 *
 * A worker with credit left stands in the list of waiting seats of each of its queues; whoever is
 * first in a queue's list gets the next task, and goes to the end of it. Queues that changed are
 * noted and looked at when an input has been applied, so nothing here is re-entrant. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

/* Leases. */

void lease_arm (engine_t *self, task_t *task, int64_t lease_ms)
{
    detail_t *detail = task->detail;
    detail->lease_due = self->mono + lease_ms;
    /* A longer term is noticed when the alarm fires: a renewal costs nothing here. */
    if (!alarm_is_armed (&task->alarm) || task->alarm.due > detail->lease_due) {
        task->alarm.kind = ALARM_TASK;
        wheel_arm (&self->fine, &task->alarm, detail->lease_due);
    }
}

static void hold (engine_t *self, worker_t *worker, task_t *task)
{
    task->detail->holder = worker;
    list_push_back (&worker->leases, &task->detail->held);
    worker->held++;
    task->leased = true;
    self->leases++;
}

void lease_end (engine_t *self, task_t *task)
{
    assert (task->leased);
    detail_t *detail = task->detail;
    worker_t *worker = detail->holder;
    list_remove (&detail->held);
    detail->holder = NULL;
    task->leased = false;
    worker->held--;
    self->leases--;
    alarm_disarm (&task->alarm);
    dispatch_worker_changed (self, worker);
    worker_release (self, worker);
}

void lease_restore (engine_t *self, worker_t *worker, task_t *task, int64_t lease_ms)
{
    hold (self, worker, task);
    lease_arm (self, task, lease_ms);
}

void lease_give (engine_t *self, worker_t *worker, task_t *task)
{
    detail_t *detail = task_detail (&self->slab, task);
    change_unplace (self, task);
    if (self->config.planted_bug != ENGINE_BUG_ATTEMPT_REUSED || task->attempt == 0)
        task->attempt++;
    task->started = false;
    detail->started_at = 0;
    detail->assignment = ++worker->assigned;
    secrets_take (&self->secrets, detail->secret, sizeof (detail->secret));
    memcpy (detail->worker_id, worker->id, sizeof (detail->worker_id));
    names_drop (&self->names, detail->worker);
    detail->worker = names_share (worker->name);
    hold (self, worker, task);
    lease_arm (self, task, task->lease_ms);
    cause_t cause = {.actor = name_text (worker->identity)};
    change_apply (self, task, INPUT_CLAIM, &cause);
    self->counts.claimed++;
}

/* Workers. */

worker_t *worker_find (const engine_t *self, const space_t *space, const uint8_t *id)
{
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    worker_t *worker = map_next (&self->workers, hash, &cursor);
    while (worker != NULL &&
           (worker->space != space || memcmp (worker->id, id, sizeof (worker->id)) != 0))
        worker = map_next (&self->workers, hash, &cursor);
    return worker;
}

worker_t *worker_make (engine_t *self, space_t *space, const uint8_t *id)
{
    worker_t *worker = worker_find (self, space, id);
    if (worker != NULL)
        return worker;
    worker = memory_zero (1, sizeof (*worker));
    memcpy (worker->id, id, sizeof (worker->id));
    worker->hash = task_hash (self, space, id);
    worker->space = space;
    space->workers++;
    list_init (&worker->leases);
    map_insert (&self->workers, worker->hash, worker);
    return worker;
}

static void set_waiting (engine_t *self, worker_t *worker, bool waiting)
{
    if (worker->waiting == waiting)
        return;
    worker->waiting = waiting;
    for (size_t i = 0; i < worker->seats_count; i++) {
        seat_t *seat = &worker->seats[i];
        if (!waiting) {
            list_remove (&seat->node);
            continue;
        }
        list_push_back (&seat->queue->waiting, &seat->node);
        if (seat->queue->ready > 0)
            dispatch_queue_changed (self, seat->queue);
    }
}

/* Who is silent, suspected to be gone (A39) or does not take messages gets nothing new. */
static bool can_take (const worker_t *worker)
{
    const link_t *link = worker->link;
    return link != NULL && !link->silent && !link->suspect && !link->stalled && !link->lost &&
           link->gone_due == 0 && worker->held < worker->capacity;
}

void dispatch_worker_changed (engine_t *self, worker_t *worker)
{
    set_waiting (self, worker, can_take (worker));
}

void worker_detach (engine_t *self, worker_t *worker)
{
    if (worker->link != NULL)
        worker->link->workers_count--;
    list_remove (&worker->of_link);
    worker->link = NULL;
    worker->capacity = 0;
    set_waiting (self, worker, false);
    for (size_t i = 0; i < worker->seats_count; i++) {
        worker->seats[i].queue->seats--;
        queue_release (self, worker->seats[i].queue);
    }
    free (worker->seats);
    worker->seats = NULL;
    worker->seats_count = 0;
}

void worker_release (engine_t *self, worker_t *worker)
{
    if (worker->link != NULL || worker->held > 0 || worker->kept)
        return;
    assert (worker->seats_count == 0);
    map_remove (&self->workers, worker->hash, worker);
    names_drop (&self->names, worker->name);
    names_drop (&self->names, worker->identity);
    space_t *space = worker->space;
    space->workers--;
    free (worker);
    space_release (self, space);
}

void worker_drop_leases (engine_t *self, worker_t *worker, bool lost, const char *why)
{
    worker->kept = true;
    for (node_t *node = list_first (&worker->leases); node != NULL;
         node = list_first (&worker->leases)) {
        task_t *task = LIST_ITEM (node, detail_t, held)->task;
        cause_t cause = {.actor = name_text (worker->identity), .message = why};
        if (lost)
            change_lose (self, task, why);
        else
            change_return (self, task, INPUT_RELEASE, 0, &cause);
    }
    worker->kept = false;
}

/* Dispatch. */

void dispatch_queue_changed (engine_t *self, queue_t *queue)
{
    if (self->config.planted_bug == ENGINE_BUG_LOST_WAKE_UP && queue->ready == 1)
        return;
    if (!node_is_linked (&queue->dispatch))
        list_push_back (&self->dispatch, &queue->dispatch);
}

/* The queue's next task that can be given away at once. One whose payload is only in the tables
 * stops the queue until it has been looked up (engine_want_payloads). */
static task_t *next_task (engine_t *self, queue_t *queue)
{
    task_t *task = queue_first (queue);
    while (task != NULL && task_is_expired (self, task)) {
        change_expire (self, task);
        task = queue_first (queue);
    }
    if (task != NULL && task->payload_bytes > 0 && task->payload == NULL) {
        if (!node_is_linked (&queue->fetch))
            list_push_back (&self->fetch, &queue->fetch);
        return NULL;
    }
    return task;
}

/* By priority over the worker's queues, then by acceptance. */
static task_t *next_for (engine_t *self, worker_t *worker)
{
    task_t *best = NULL;
    for (size_t i = 0; i < worker->seats_count; i++) {
        task_t *task = next_task (self, worker->seats[i].queue);
        if (task != NULL && (best == NULL || queue_before (task, best)))
            best = task;
    }
    return best;
}

static void send_assignment (engine_t *self, const worker_t *worker, task_t *task)
{
    bytes_clear (&self->scratch);
    pack_assignment (&self->scratch, worker, task);
    item_t *item = release_item (self, worker->link, ITEM_ASSIGNMENT, batch_to_wait_for (self),
                                 &self->scratch, task->payload);
    item->id = task->id;
    item->attempt = task->attempt;
}

static void assign (engine_t *self, seat_t *seat, task_t *task)
{
    worker_t *worker = seat->worker;
    lease_give (self, worker, task);
    send_assignment (self, worker, task);
    dispatch_worker_changed (self, worker);
    if (worker->waiting) { /* its turn is over */
        list_remove (&seat->node);
        list_push_back (&seat->queue->waiting, &seat->node);
    }
}

static void dispatch_queue (engine_t *self, queue_t *queue)
{
    while (queue->ready > 0 && !list_is_empty (&queue->waiting)) {
        seat_t *seat = LIST_ITEM (queue->waiting.next, seat_t, node);
        task_t *task = next_for (self, seat->worker);
        if (task == NULL)
            return;
        assign (self, seat, task);
    }
}

void dispatch_run (engine_t *self)
{
    if (self->stopping)
        return;
    for (node_t *node = list_pop_front (&self->dispatch); node != NULL;
         node = list_pop_front (&self->dispatch))
        dispatch_queue (self, LIST_ITEM (node, queue_t, dispatch));
}
