/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The commit batch that grows: what changed goes with it as an image when it is closed. */
#ifndef TASKMQ_CORE_JOURNAL_H
#define TASKMQ_CORE_JOURNAL_H

#include "core/tasks/tasks.h"

bool journal_is_empty (const tasks_t *self);
/* The batch that what is computed now must wait for (A7). */
uint64_t journal_batch (const tasks_t *self);
/* The task has changed: its image goes with the open batch. */
void journal_touch (tasks_t *self, task_t *task);
/* … but that may wait up to 5 s (S4, S19). */
void journal_touch_lazily (tasks_t *self, task_t *task);
void journal_add_attempt (tasks_t *self, const task_t *task, tmq_event_kind_t how,
                          int32_t error_code, const char *error_message, const uint8_t *request_id);
/* … that is as it was elsewhere. */
void journal_put_attempt (tasks_t *self, const attempt_t *attempt);
void journal_add_removal (tasks_t *self, space_t *space, const record_t *record, tmq_code_t code,
                          uint8_t why);
task_t *journal_lazy_next (const tasks_t *self);   /* that has waited long enough, or NULL */
int64_t journal_lazy_due_ms (const tasks_t *self); /* mono, INT64_MAX for none */
enum {
    BATCH_CHANGES_MAX = 1000,         /* tasks and rows that changed or went, … */
    BATCH_INPUTS_MAX = 1000,          /* inputs of … */
    BATCH_BYTES_MAX = 4 * 1024 * 1024 /* … and bytes in one commit batch, before its last change */
};
/* Closes the open batch when it has all it may hold. To be called between two changes, wherever one
 * input makes many of them. */
void journal_close_full (tasks_t *self);
/* One input of the open batch, which is about to change something; a full batch is closed. */
void journal_input (tasks_t *self);
/* The next batch to be committed: the oldest full one, else what is open; NULL if nothing
 * changed. */
batch_t *journal_take (tasks_t *self);
/* Inputs in batches that were not taken yet. */
size_t journal_inputs (const tasks_t *self);
void journal_clear (tasks_t *self); /* everything that was applied and not kept (A21) */

/* What is not durable yet (A19). */
size_t journal_pending_inputs (const tasks_t *self);
size_t journal_pending_bytes (const tasks_t *self);
/* What is not written back yet, durable or not (A12). */
size_t journal_dirty_bytes (const tasks_t *self);
bool journal_is_dirty (const tasks_t *self); /* too much is not written back */
bool journal_is_overloaded (const tasks_t *self);

#endif
