/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker keeps of its work beside the task, for the next attempt. It is a row: memory knows
 * only how long it is (Extra.checkpoint_bytes). It goes with the task's end, unless that failed. */
#ifndef TASKMQ_CORE_CHECKPOINT_H
#define TASKMQ_CORE_CHECKPOINT_H

#include "core/tasks/tasks.h"

/* The row's key. */
void checkpoint_key (row_key_t *out, const char *ns, const tmq_id_t *id);
/* In place of the last one; without bytes there is none any more. */
void checkpoint_put (tasks_t *self, task_t *task, const uint8_t *bytes, size_t length);
/* The task has ended without a failure, or begins afresh. */
void checkpoint_drop (tasks_t *self, task_t *task);
/* The task is removed; fields: its Extra. */
void checkpoint_remove (tasks_t *self, const record_t *record, const Taskmq__Extra *fields);

#endif
