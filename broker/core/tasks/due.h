/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* When something is due for a task: the end of its wait, its start deadline, its time to live, the
 * end of an attempt's max_runtime. A task has one alarm; it is armed for the earliest. */
#ifndef TASKMQ_CORE_DUE_H
#define TASKMQ_CORE_DUE_H

#include "core/tasks/tasks.h"

/* With which error a queued task ends by the time of expiry. */
tmq_task_error_t due_error (const task_t *task);
/* A queued task has come to the end that time sets it: it must not be claimed. */
bool due_is_over (const tasks_t *self, const task_t *task);
/* It may be claimed as far as not_before goes. */
bool due_has_come (const tasks_t *self, const task_t *task);
/* Arms a queued task's alarm: one that is ready, and one that waits for not_before. */
void due_arm_ready (tasks_t *self, task_t *task);
void due_arm_scheduled (tasks_t *self, task_t *task);
/* The alarm for its end was early, because the wall clock stood still: the wait goes on. */
void due_go_on (tasks_t *self, task_t *task);

/* The attempt's work has begun at started_at: its max_runtime counts from there, and ends it while
 * it is working. Nothing happens when it has none. */
void due_arm_runtime (tasks_t *self, task_t *task);
/* Its worker goes on after an answer: the time that it waited for it does not count. */
void due_arm_runtime_anew (tasks_t *self, task_t *task);
/* A leased task: when its alarm is to be looked at, for its lease due at lease_due_ms (mono). */
int64_t due_attempt_ms (const task_t *task, int64_t lease_due_ms);
/* The attempt has run for longer than allowed, and everything that had arrived by then was read. */
bool due_is_overrun (const tasks_t *self, const task_t *task);

#endif
