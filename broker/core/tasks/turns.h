/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Turns: what workers tell of their work, turn by turn. Each is a row; memory knows only how many a
 * task has and how many bytes (Extra.turns), and where its newest attempt began. A turn's place
 * among all of its task is its number here, without gaps, so the rows can be removed unread.
 *
 * They go with their task, as a debt (debts.h). */
#ifndef TASKMQ_CORE_TURNS_H
#define TASKMQ_CORE_TURNS_H

#include "core/data/turn.h"
#include "core/tasks/tasks.h"

/* How many the task's present attempt has told. */
uint32_t turns_of_attempt (const task_t *task);
/* The next one of the task's attempt: gets its place, number and time. The caller tells of it by
 * INPUT_TURN. */
void turn_put (tasks_t *self, task_t *task, turn_t *turn);

/* The next one of a task that comes from elsewhere, as it was told there. extras_changed is to
 * follow the last one. */
void turn_put_as_told (tasks_t *self, task_t *task, const turn_t *turn, bool superseded);

/* The turn counts no more: a retry or a resume went back behind it. */
bool turn_is_superseded (const uint32_t *ranges, size_t count, uint32_t turn);
/* Turns behind `from` can be superseded: there is room for the range. */
bool turns_have_range (const Taskmq__Extra *fields, uint32_t from);
/* … are superseded. The task is about to be written. */
void turns_supersede (tasks_t *self, task_t *task, uint32_t from);

/* The task is removed. */
void turns_remove (tasks_t *self, space_t *space, const record_t *record,
                   const Taskmq__Extra *fields);

#endif
