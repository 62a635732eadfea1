/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One transition of a task with all that follows from it in this room. */
#ifndef TASKMQ_CORE_CHANGE_H
#define TASKMQ_CORE_CHANGE_H

#include "core/tasks/tasks.h"

/* Why a task changes, for its event. */
typedef struct cause {
    const char *actor;         /* NULL: the broker itself */
    const char *message;       /* NULL: none */
    const uint8_t *request_id; /* NULL: none */
    const char *worker;        /* of another attempt than the newest, … */
    uint32_t attempt;          /* … which this is; 0: of the newest */
    const char *name;          /* of a turn: its agent, … */
    uint64_t number;           /* … and its place */
    uint8_t why;               /* of a removal: removal_t.why */
} cause_t;

/* Applies one transition that must be permitted: status, version, event, image, fact. The lease and
 * the place in the queue are the caller's. */
void change_apply (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* A new task that is as it was elsewhere (imports.h): its event, image and fact. */
void change_imported (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* What changed without an event and has waited long enough, such as progress, becomes an event
 * `changed` without a message, so that whoever follows the events sees it. */
void change_write_lazy (tasks_t *self);
/* It does not expire before from_ms and the smaller of its ttl and 24 h: so long it can be claimed
 * again after a return (S11), and read after its end (S10). */
void change_extend_expiry (task_t *task, int64_t from_ms);
/* A queued task goes to where it belongs: ready order or the wheel. */
void change_place (tasks_t *self, task_t *task);
void change_unplace (tasks_t *self, task_t *task);
/* One that is ready is held back by its session: it leaves the order. */
void change_hold (tasks_t *self, task_t *task);
/* The wall clock moved: tasks that wait for not_before are judged anew … */
void change_judge_delays (tasks_t *self);
/* … as far as this round's allowance of alarms goes. */
void change_judge_some (tasks_t *self);
/* The end of a task: times, expiry. */
void change_finish (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* … as failed, with the error that its detail has. */
void change_fail (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* A queued task that is over (due_is_over). */
void change_end_unclaimed (tasks_t *self, task_t *task);
/* The payload that a queued task waited for is lost: nobody can work on it, so it fails instead of
 * standing before the others. */
void change_damaged (tasks_t *self, task_t *task);
/* Leaves a tombstone of a task that has ended; input: REMOVE or PURGE. The task is not in memory,
 * or settle_detach follows. */
void change_remove (tasks_t *self, space_t *space, const record_t *record, task_input_t input,
                    const cause_t *cause);
/* Past its time to live a terminal task is answered like one that was removed (S12). */
bool task_is_over (const tasks_t *self, const task_t *task);

#endif
