/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where a live task is found, and what happened to tasks since the tables were last written. */
#ifndef TASKMQ_CORE_INDEX_H
#define TASKMQ_CORE_INDEX_H

#include "core/tasks/tasks.h"

uint32_t task_hash (const tasks_t *self, const space_t *space, const uint8_t *id);
uint32_t task_key_hash (const tasks_t *self, const space_t *space, const char *owner,
                        const char *key);
/* The live task, or NULL. id: 16 bytes. */
task_t *task_find (const tasks_t *self, const space_t *space, const uint8_t *id);
task_t *task_find_by_key (const tasks_t *self, const space_t *space, const char *owner,
                          const char *key);

attempt_note_t *attempt_note_find (const tasks_t *self, int64_t number, uint32_t attempt);
void attempt_note_add (tasks_t *self, const attempt_t *attempt);
removal_note_t *removal_note_find (const tasks_t *self, const space_t *space, const uint8_t *id);
void removal_note_add (tasks_t *self, space_t *space, const record_t *record, tmq_code_t code,
                       uint8_t why);
/* Forgets so many of each, the oldest first. */
void notes_forget (tasks_t *self, size_t attempts, size_t removals);
/* Some live task is of this owner. Without accounts it looks at all of them if the name is known at
 * all: for what operators do now and then. */
bool task_owner_has_some (tasks_t *self, const char *owner);

#endif
