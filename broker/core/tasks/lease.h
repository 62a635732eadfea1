/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Leases: who holds a task, until when. */
#ifndef TASKMQ_CORE_LEASE_H
#define TASKMQ_CORE_LEASE_H

#include "core/tasks/tasks.h"
#include "taskmq.pb-c.h"

/* The lease is the one under which the task is held now. task may be NULL. */
bool lease_is_current (const tasks_t *self, const task_t *task, const Taskmq__Lease *lease);
/* The holder has it for lease_ms from now on. */
void lease_arm (tasks_t *self, task_t *task, int64_t lease_ms);
void lease_hold (tasks_t *self, worker_t *worker, task_t *task);
/* Ends the lease's record; the holder's credit is free again. */
void lease_end (tasks_t *self, task_t *task);

worker_t *worker_find (const tasks_t *self, const space_t *space, const uint8_t *id);
worker_t *worker_make (tasks_t *self, space_t *space, const uint8_t *id); /* found or made */
/* Frees it when it has no link and holds nothing. Its seats must be gone. */
void worker_release (tasks_t *self, worker_t *worker);

/* What requirements of tasks are met with. */
void worker_set_labels (tasks_t *self, worker_t *worker, Taskmq__Label *const *labels,
                        size_t count);

#endif
