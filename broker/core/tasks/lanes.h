/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ready order of queues whose tasks have fair keys or requirements. One without any has the
 * plain order of queue.h alone, and costs nothing more.
 *
 * Each set of requirements has an *order*, and each priority of it *lanes*, one for each fair key;
 * tasks without a key have one together. Lanes are served in turn by weight: every lane has a
 * virtual time that goes on by 1/weight with each task, and the one that is furthest behind is
 * next. One that comes goes to the end of the turn. Orders share their virtual time, so a worker
 * that may take from several takes by priority, turn, number.
 *
 * A lane is what a queue has without lanes: a list and a heap. One whose key has as many running
 * as may is parked at its key until a lease of that key ends. */
#ifndef TASKMQ_CORE_LANES_H
#define TASKMQ_CORE_LANES_H

#include "core/tasks/session.h"
#include "core/tasks/tasks.h"
#include "taskmq.pb-c.h"

enum {
    LANE_WEIGHT = 100, /* of a lane that nobody gave another one; 1..1000 */
    LANES_LOOKED_MAX = 4096,
    LANES_PEEKED_MAX = 1024, /* for payloads to be read ahead, in one look at a queue */
    ORDERS_MAX = 128,        /* of a queue; those of new tasks are limited before (A74) */
    ORDER_WORDS = ORDERS_MAX / 64
};

/* The orders of a queue from which a worker may take, a bit each; the first one is that without
 * requirements. */
typedef struct order_set {
    uint64_t bits[ORDER_WORDS];
    uint64_t judged; /* sets of requirements that were made by then */
} order_set_t;

/* Into the order, and out of it wherever it stands. */
void lanes_push (tasks_t *self, task_t *task);
void lanes_remove (tasks_t *self, task_t *task);
/* The next one that may be given to somebody who may take from these orders; NULL: none. */
task_t *lanes_first (tasks_t *self, queue_t *queue, const order_set_t *orders);
/* It is given away: its lane's turn goes on. Before lanes_remove. */
void lanes_serve (const task_t *task);
/* As queue_peek_cold; the head of every order is among them. limit: at least ORDERS_MAX. */
size_t lanes_peek_cold (tasks_t *self, queue_t *queue, task_t **out, size_t limit);
/* The ready task that was accepted first, or NULL. Of more than LANES_LOOKED_MAX lanes it is that
 * of those looked at. */
const task_t *lanes_oldest (queue_t *queue);
/* For so long it could have been claimed; 0: there is none. */
uint64_t lanes_oldest_ms (queue_t *queue, int64_t wall_ms);
/* There is more than one order: what is too much for one worker may be right for another. */
bool lanes_are_split (const queue_t *queue);

/* A lease of the task began or ended, which its key counts. */
void lanes_hold (tasks_t *self, task_t *task);
void lanes_release (tasks_t *self, task_t *task);
/* The cap of a key (queue->key_cap) has changed. */
void lanes_judge (tasks_t *self, queue_t *queue);
/* How many of a ready task's key are running. False: it may run, as far as its key goes. */
typedef struct key_use {
    const char *key;
    uint32_t running;
} key_use_t;
bool lanes_key_is_full (tasks_t *self, const task_t *task, key_use_t *out);
/* By what lanes are told apart, from now on. Not while tasks of an earlier change are moving. */
void lanes_change_key (tasks_t *self, queue_t *queue, tmq_weight_of_t weight_of);
/* Some of its ready tasks are not in their new lanes yet. What is given away meanwhile is right by
 * priority, requirements and caps; only the turns and numbers of what is left are those of
 * before. */
static inline bool lanes_are_moving (const queue_t *queue)
{
    return node_is_linked (&queue->moving);
}
/* The salience of the session has changed, which is the weight of its lanes. */
void lanes_weigh (tasks_t *self, session_t *session);
/* What is left of both, as far as the round allows. */
void lanes_run (tasks_t *self);
bool lanes_are_owed (const tasks_t *self);

/* A task with requirements came to life, or ended. */
void needs_begin (tasks_t *self, task_t *task);
void needs_end (tasks_t *self, task_t *task);
/* There is room for one with these. */
bool needs_fit (tasks_t *self, const queue_t *queue, const Taskmq__Extra *extra);
/* Sets of requirements that live tasks of the queue have. */
size_t needs_count (const queue_t *queue);
/* Brings the set up to date for somebody with these labels ("key=value"). */
void needs_judge (const tasks_t *self, const queue_t *queue, order_set_t *orders,
                  name_t *const *labels, size_t count);
/* The interned "key=value". */
name_t *needs_name (tasks_t *self, const Taskmq__Label *label);

void lanes_reset (tasks_t *self); /* frees everything; the tasks go, too */

#endif
