/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ready tasks to waiting workers, and the leases that come of it.
 *
 * A worker with credit left stands in the list of waiting seats of each of its queues; whoever is
 * first in a queue's list gets the next task, and goes to the end of it. Queues that changed are
 * noted and looked at when an input has been applied, so nothing here is re-entrant. */
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/match/dispatch.h"
#include "core/match/fetch.h"
#include "core/match/roster.h"
#include "core/match/worker.h"
#include "core/peers/outbox.h"
#include "core/tasks/account.h"
#include "core/tasks/attempt.h"
#include "core/tasks/change.h"
#include "core/tasks/due.h"
#include "core/tasks/journal.h"
#include "core/tasks/question.h"
#include "core/tasks/session.h"
#include "core/tasks/space.h"
#include "core/wire/pack.h"

enum {
    ASSIGNMENT_WORKER_ID = 1,
    ASSIGNMENT_NUMBER = 2,
    ASSIGNMENT_TASK_ID = 3,
    ASSIGNMENT_ATTEMPT = 4,
    ASSIGNMENT_SECRET = 5,
    ASSIGNMENT_LEASE_MS = 6,
    ASSIGNMENT_PAYLOAD_BYTES = 7,
    ASSIGNMENT_QUEUE = 8,
    ASSIGNMENT_SESSION = 9,
    ASSIGNMENT_METHOD = 10,
    ASSIGNMENT_CONTENT_TYPE = 11,
    ASSIGNMENT_MAX_ATTEMPTS = 12,
    ASSIGNMENT_LABELS = 13,
    ASSIGNMENT_META = 14,
    ASSIGNMENT_CREATED_AT = 15,
    ASSIGNMENT_PRIORITY = 16,
    ASSIGNMENT_EXTRA = 17,
    ASSIGNMENT_ANSWERS = 18
};

static void pack_assignment (bytes_t *out, const worker_t *worker, const task_t *task,
                             uint32_t answers)
{
    const detail_t *detail = task->detail;
    task_texts_t texts MEMORY_FILLED_BEFORE_READ;
    task_texts (task, &texts);
    bytes_mark_t mark = bytes_open (out, BROKER_ASSIGNMENTS);
    bytes_append_blob (out, ASSIGNMENT_WORKER_ID, worker->id, sizeof (worker->id));
    bytes_append_uint (out, ASSIGNMENT_NUMBER, detail->assignment);
    bytes_append_blob (out, ASSIGNMENT_TASK_ID, task->id.bytes, sizeof (task->id.bytes));
    bytes_append_uint (out, ASSIGNMENT_ATTEMPT, task->attempt);
    bytes_append_blob (out, ASSIGNMENT_SECRET, detail->secret, sizeof (detail->secret));
    bytes_append_uint (out, ASSIGNMENT_LEASE_MS, task->lease_ms);
    bytes_append_uint (out, ASSIGNMENT_PAYLOAD_BYTES, task->payload_bytes);
    bytes_append_string (out, ASSIGNMENT_QUEUE, task->queue->name);
    bytes_append_string (out, ASSIGNMENT_SESSION, session_text (task->session));
    bytes_append_string (out, ASSIGNMENT_METHOD, texts.method);
    bytes_append_string (out, ASSIGNMENT_CONTENT_TYPE, texts.content_type);
    bytes_append_uint (out, ASSIGNMENT_MAX_ATTEMPTS, task->max_attempts);
    pack_labels (out, ASSIGNMENT_LABELS, texts.labels, task->labels_count);
    bytes_append_string (out, ASSIGNMENT_META, texts.meta);
    bytes_append_uint (out, ASSIGNMENT_CREATED_AT, (uint64_t) task->created_at);
    bytes_append_uint (out, ASSIGNMENT_PRIORITY, task->priority);
    const buf_t *extra = extra_packed (task->extra);
    bytes_append_blob (out, ASSIGNMENT_EXTRA, buf_bytes (extra), extra_sent_bytes (extra));
    bytes_append_uint (out, ASSIGNMENT_ANSWERS, answers);
    bytes_close (out, mark);
}

/* The first task of the queue is none to be given away, and has left the order. */
static bool pass_over (match_t *self, task_t *task)
{
    if (due_is_over (self->tasks, task))
        change_end_unclaimed (self->tasks, task);
    else if (session_holds (task->session) &&
             self->base->config.planted_bug != ENGINE_BUG_SESSION_UNHELD)
        change_hold (self->tasks, task);
    else
        return false;
    journal_close_full (self->tasks);
    return true;
}

/* The queue's next task that can be given away at once. One whose payload is only in the tables
 * stops the queue until it has been looked up (engine_want_payloads). */
static task_t *next_task (match_t *self, seat_t *seat)
{
    queue_t *queue = seat->queue;
    const worker_t *worker = seat->worker;
    needs_judge (self->tasks, queue, &seat->orders, worker->labels, worker->labels_count);
    size_t *left = &self->base->round.assignments;
    task_t *task = lanes_first (self->tasks, queue, &seat->orders);
    for (; task != NULL && pass_over (self, task);
         task = lanes_first (self->tasks, queue, &seat->orders)) {
        budget_take (left, 1);
        if (*left == 0) { /* the next round goes on */
            queue_changed (self->tasks, queue);
            return NULL;
        }
    }
    if (task != NULL && task->payload_bytes > 0 && task->payload == NULL) {
        fetch_later (self, queue);
        return NULL;
    }
    return task;
}

/* The task of this seat, or one of the worker's other queues that comes before it: by priority,
 * then by acceptance. */
static task_t *best_for (match_t *self, const seat_t *own, task_t *task)
{
    const worker_t *worker = own->worker;
    task_t *best = task;
    for (size_t i = 0; i < worker->seats_count; i++) {
        seat_t *seat = &worker->seats[i];
        if (seat == own || seat->queue->ready == 0 || !gate_is_open (&seat->queue->gate))
            continue;
        budget_take (&self->base->round.seats, 1);
        task_t *other = next_task (self, seat);
        if (other != NULL && queue_before (other, best))
            best = other;
    }
    return best;
}

static void send_assignment (match_t *self, const worker_t *worker, task_t *task)
{
    bytes_clear (&self->peers->scratch);
    uint32_t answers = task->asks ? asking_news (self->tasks, task) : 0;
    pack_assignment (&self->peers->scratch, worker, task, answers);
    item_t *item = outbox_add (self->peers, worker->link, ITEM_ASSIGNMENT,
                               journal_batch (self->tasks), &self->peers->scratch, task->payload);
    item->id = task->id;
    item->attempt = task->attempt;
}

static void assign (match_t *self, seat_t *seat, task_t *task)
{
    worker_t *worker = seat->worker;
    attempt_give (self->tasks, worker, task);
    send_assignment (self, worker, task);
    worker_update (self, worker);
    if (worker->waiting) { /* its turn is over */
        list_remove (&seat->node);
        list_push_back (&seat->queue->waiting, &seat->node);
    }
}

/* The walk of a queue through its waiting seats (queue->look). Whoever is first gets the next task
 * that is right for him. Where tasks have requirements he is passed over when there is none, and
 * keeps his place. False: the walk is over. */
static bool serve_next (match_t *self, queue_t *queue)
{
    const node_t *end = &queue->waiting;
    if (queue->ready == 0 || !gate_is_open (&queue->gate) || queue->look == end)
        return false;
    seat_t *seat = LIST_ITEM (queue->look, seat_t, node);
    queue->look = queue->look->next;
    budget_take (&self->base->round.seats, 1);
    if (!account_has_lease (seat->worker)) { /* others of its principal took the last ones */
        worker_update (self, seat->worker);
        return true;
    }
    task_t *task = next_task (self, seat);
    if (task == NULL)
        return lanes_are_split (queue);
    assign (self, seat, best_for (self, seat, task));
    budget_take (&self->base->round.assignments, 1);
    journal_close_full (self->tasks);
    if (queue->look == end) /* he stands at the end now */
        queue->look = end->prev;
    return true;
}

static bool may_go_on (const match_t *self)
{
    return self->base->round.assignments > 0 && self->base->round.seats > 0;
}

/* A walk that the round does not finish goes on in the next one where it was, and if the queue has
 * changed meanwhile another follows. So nobody at the end of the list waits for ever. */
static void dispatch_queue (match_t *self, queue_t *queue)
{
    bool more = true;
    if (queue->look == NULL) {
        queue->look = queue->waiting.next;
        queue->look_again = false;
    }
    while (more && may_go_on (self))
        more = serve_next (self, queue);
    bool again = queue->look_again || node_is_linked (&queue->changed);
    if (!more)
        queue->look = NULL;
    if (more || again)
        queue_changed (self->tasks, queue);
    queue->look_again = more && again;
}

void dispatch_run (match_t *self)
{
    workers_follow (self);
    if (self->base->stopping)
        return;
    node_t *changed = &self->tasks->changed_queues;
    while (may_go_on (self)) {
        node_t *node = list_pop_front (changed);
        if (node == NULL)
            return;
        dispatch_queue (self, LIST_ITEM (node, queue_t, changed));
    }
}

/* Life. */

void match_init (match_t *self, base_t *base, tasks_t *tasks, links_t *peers, reads_t *reads)
{
    *self = (match_t){.base = base, .tasks = tasks, .peers = peers, .reads = reads};
    list_init (&self->roster);
    match_reset (self);
}

void match_reset (match_t *self)
{
    workers_clear (self);
    roster_clear (self);
    fetch_clear (self);
    list_init (&self->owing);
}
