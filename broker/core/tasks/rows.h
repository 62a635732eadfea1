/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows (core/data/row.h) as the engine changes them, and what the tables do not show of that
 * yet. */
#ifndef TASKMQ_CORE_ROWS_H
#define TASKMQ_CORE_ROWS_H

#include "core/tasks/tasks.h"

/* The row, or its removal, goes with the open batch. Takes it. Its kind has checked its lengths. */
void rows_put (tasks_t *self, row_t row);
/* The newest change of the key that is not written back; NULL: the tables know. Borrowed until the
 * next put. */
const row_t *rows_find (const tasks_t *self, row_kind_t kind, const void *key, size_t key_bytes);
/* For maps of rows by kind and key. */
uint32_t rows_hash (const tasks_t *self, row_kind_t kind, const void *key, size_t key_bytes);
void rows_settle (tasks_t *self, uint64_t written); /* the tables show these batches */
void rows_clear (tasks_t *self);

#endif
