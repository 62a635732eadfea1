/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker's places at its queues. */
#include <assert.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/match/roster.h"
#include "core/match/worker.h"
#include "core/tasks/account.h"
#include "core/tasks/attempt.h"
#include "core/tasks/journal.h"
#include "core/tasks/lease.h"
#include "core/tasks/members.h"
#include "core/tasks/space.h"

size_t worker_seats_bytes (size_t count)
{
    return count == 0 ? 0 : sizeof (worker_t) + count * (sizeof (seat_t) + sizeof (queue_t));
}

void worker_sit (match_t *self, worker_t *worker, char *const *queues, size_t count)
{
    seat_t *seats = memory_zero (count, sizeof (*seats));
    for (size_t i = 0; i < count; i++) {
        queue_t *queue = queue_make (self->tasks, worker->space, queues[i]);
        queue->seats++;
        seats[i] = (seat_t){.worker = worker, .queue = queue};
    }
    worker->seats = seats;
    worker->seats_count = count;
    self->seats_bytes += worker_seats_bytes (count);
}

static void set_waiting (match_t *self, worker_t *worker, bool waiting)
{
    if (worker->waiting == waiting)
        return;
    worker->waiting = waiting;
    for (size_t i = 0; i < worker->seats_count; i++) {
        seat_t *seat = &worker->seats[i];
        if (!waiting) {
            if (seat->queue->look == &seat->node)
                seat->queue->look = seat->node.next;
            list_remove (&seat->node);
            continue;
        }
        list_push_back (&seat->queue->waiting, &seat->node);
        if (seat->queue->ready > 0 && gate_is_open (&seat->queue->gate))
            queue_changed (self->tasks, seat->queue);
    }
}

static bool can_take (worker_t *worker)
{
    return worker->link != NULL && gate_is_open (&worker->link->gate) &&
           gate_is_open (&worker->gate) && worker->held < worker->capacity &&
           account_has_lease (worker);
}

void worker_update (match_t *self, worker_t *worker)
{
    set_waiting (self, worker, can_take (worker));
}

void worker_detach (match_t *self, worker_t *worker)
{
    if (worker->link != NULL) {
        worker->link->workers_count--;
        roster_part (self, worker);
    }
    list_remove (&worker->of_link);
    alarm_disarm (&worker->alarm);
    worker->link = NULL;
    worker->capacity = 0;
    set_waiting (self, worker, false);
    for (size_t i = 0; i < worker->seats_count; i++) {
        worker->seats[i].queue->seats--;
        queue_release (self->tasks, worker->seats[i].queue);
    }
    self->seats_bytes -= worker_seats_bytes (worker->seats_count);
    free (worker->seats);
    worker->seats = NULL;
    worker->seats_count = 0;
}

void worker_update_link (match_t *self, link_t *link)
{
    for (node_t *node = link->workers.next; node != &link->workers; node = node->next)
        worker_update (self, LIST_ITEM (node, worker_t, of_link));
}

static void owe (match_t *self, worker_t *worker, worker_drop_t how, const char *why)
{
    worker->drops_lost = how == WORKER_LOSES;
    worker->why = why;
    if (!list_is_empty (&worker->dropped) && !node_is_linked (&worker->owing))
        list_push_back (&self->owing, &worker->owing);
}

void worker_drop_leases (match_t *self, worker_t *worker, worker_drop_t how, const char *why)
{
    list_append (&worker->dropped, &worker->leases);
    owe (self, worker, how, why);
}

void worker_drop_unlisted (match_t *self, worker_t *worker, const char *why)
{
    node_t *next = NULL;
    for (node_t *node = worker->leases.next; node != &worker->leases; node = next) {
        detail_t *detail = LIST_ITEM (node, detail_t, held);
        next = node->next;
        if (!detail->listed) {
            members_remove (self->tasks, detail);
            list_unlink (node);
            list_push_back (&worker->dropped, node);
        }
        detail->listed = false;
    }
    owe (self, worker, WORKER_RETURNS, why);
}

void worker_take_back (worker_t *worker)
{
    list_append (&worker->leases, &worker->dropped);
    list_remove (&worker->owing);
}

static void give_back (match_t *self, const worker_t *worker, task_t *task)
{
    cause_t cause = {.actor = name_text (worker->identity), .message = worker->why};
    if (worker->drops_lost)
        attempt_lose (self->tasks, task, worker->why);
    else
        attempt_return (self->tasks, task, INPUT_RELEASE, 0, &cause);
    journal_close_full (self->tasks);
}

void workers_give_back (match_t *self)
{
    size_t *left = &self->base->round.debts;
    for (node_t *node = list_first (&self->owing); node != NULL && *left > 0;
         node = list_first (&self->owing)) {
        worker_t *worker = LIST_ITEM (node, worker_t, owing);
        for (node_t *held = list_first (&worker->dropped); held != NULL && *left > 0;
             held = list_first (&worker->dropped)) {
            give_back (self, worker, LIST_ITEM (held, detail_t, held)->task);
            budget_take (left, 1);
        }
        if (list_is_empty (&worker->dropped))
            list_remove (node);
    }
}

void workers_follow (match_t *self)
{
    node_t *changed = &self->tasks->changed_workers;
    for (node_t *node = list_pop_front (changed); node != NULL; node = list_pop_front (changed)) {
        worker_t *worker = LIST_ITEM (node, worker_t, changed);
        if (worker->lost && worker->link != NULL) {
            gate_close (&worker->link->gate, GATE_SUSPECT);
            worker_update_link (self, worker->link);
        }
        worker->lost = false;
        worker_update (self, worker);
        roster_release (self, worker);
    }
}

void workers_clear (match_t *self)
{
    size_t cursor = 0;
    for (worker_t *worker = map_each (&self->tasks->workers, &cursor); worker != NULL;
         worker = map_each (&self->tasks->workers, &cursor)) {
        list_remove (&worker->hungry); /* its account is freed later */
        free (worker->seats);
        free (worker->labels);
        free (worker);
    }
    map_free (&self->tasks->workers);
    self->seats_bytes = 0;
}
