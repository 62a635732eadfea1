/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How much a namespace keeps beside its tasks. The counts are one row of the namespace, which goes
 * with each batch that changed them. */
#ifndef TASKMQ_CORE_ENTRIES_H
#define TASKMQ_CORE_ENTRIES_H

#include "core/tasks/tasks.h"

/* The counts of the namespace have changed, and a row of it stands in the open batch. */
void entries_changed (tasks_t *self, space_t *space);
/* What was removed by this request among the newest PUTS_MAX removals, as it was noted; 0: it is
 * not among them. So a repeat gets the first answer. */
uint64_t entries_removed_by (const space_t *space, const uint8_t *request_id);
void entries_note_removal (tasks_t *self, space_t *space, const uint8_t *request_id,
                           uint64_t number);
/* Adds the rows of the counts to the batch that is being closed. */
void entries_close (tasks_t *self);
/* Takes such a row at a start. */
void entries_load (tasks_t *self, const row_t *row);

#endif
