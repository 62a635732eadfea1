/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What "durable" and "written back" mean for memory: a task stays until its last change is in the
 * tables, then a terminal one goes and a live one may lose its payload (A11). */
#ifndef TASKMQ_CORE_SETTLE_H
#define TASKMQ_CORE_SETTLE_H

#include "core/tasks/tasks.h"

/* Batches up to this one are durable: they are pending no more. */
void settle_durable (tasks_t *self, uint64_t batch);
void settle_written (tasks_t *self); /* forgets what is written and no longer live */
/* A task that has ended is found no more, though its memory stays until its rows are written. */
void settle_detach (tasks_t *self, task_t *task);
/* The payload of a waiting task came back from the tables. Keeps it once more. */
void settle_drop_payload (tasks_t *self, task_t *task); /* that the tables have too */
void settle_give_payload (tasks_t *self, task_t *task, buf_t *payload);

#endif
