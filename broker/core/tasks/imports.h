/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task that was elsewhere, and goes on here as it was: with its times, its attempts and its
 * turns, in one input and one commit; with its open questions, where it waits for answers
 * (asking_bring). What other brokers know of it besides does not come: its events, its lease, its
 * checkpoint, the answers that it was given. */
#ifndef TASKMQ_CORE_IMPORTS_H
#define TASKMQ_CORE_IMPORTS_H

#include "core/tasks/change.h"
#include "core/tasks/turns.h"

/* record: queued, input_required or ended, with its bodies; its number and its newest event are
 * given here. */
task_t *import_task (tasks_t *self, const record_t *record);
/* One of the task's attempts; its secret is made here. */
void import_attempt (tasks_t *self, const task_t *task, attempt_t *attempt);
/* The task has all its attempts, turns and questions: it waits in its queue, or leaves memory. */
void import_end (tasks_t *self, task_t *task, const cause_t *cause);

#endif
