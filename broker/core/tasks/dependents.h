/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the end of a task means for those that depend on it. An end is a fact (A27), and dependents
 * are told in its input, as far as the round's allowance goes. The rest is a debt that later rounds
 * go on with, and a start finds again (edges.h). */
#ifndef TASKMQ_CORE_DEPENDENTS_H
#define TASKMQ_CORE_DEPENDENTS_H

#include "core/tasks/edges.h"

/* A new task is judged by the dependencies that ended before it came; it may fail. */
void dependents_judge (tasks_t *self, task_t *task);
/* An end: dependents are told. A way back from one: those that were not told wait on, and the task
 * is judged by its own dependencies anew. */
void dependents_follow (tasks_t *self, const fact_t *fact);
/* Pays debts, as far as the round goes, unless the journal has too much to do. */
void dependents_run (tasks_t *self);
bool dependents_are_owed (const tasks_t *self);
/* After a start: which awaited tasks live. What became of the others is to be looked up. */
void dependents_ready (tasks_t *self);
/* What became of one that was looked up. */
void dependents_known (tasks_t *self, awaited_t *awaited, tmq_status_t status);

#endif
