/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a task that was removed leaves behind: rows with the numbers 1 to n behind its key, turns
 * and artifacts. They are removed unread in later rounds, also after a restart, because a debt is a
 * row itself (TURNS_LEFT, ARTIFACTS_LEFT) until it is paid. */
#ifndef TASKMQ_CORE_DEBTS_H
#define TASKMQ_CORE_DEBTS_H

#include "core/tasks/tasks.h"

/* kind: TURN or ARTIFACT. The key of such a row is the task's, and a number. */
void debt_key (row_key_t *out, const char *ns, const uint8_t *id);
/* The task has rows 1 to count of the kind, and is removed. */
void debt_owe (tasks_t *self, row_kind_t kind, const record_t *record, uint64_t count);
/* Pays, as far as the round allows. */
void debts_run (tasks_t *self);
bool debts_are_owed (const tasks_t *self);
void debts_load (tasks_t *self, const row_t *row); /* such a row, at a start */
void debts_clear (tasks_t *self);

#endif
