/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows in order of kind and key, each key once: what a run of commit batches comes to, or what a
 * backend holds in memory. */
#ifndef TASKMQ_CORE_ROW_LIST_H
#define TASKMQ_CORE_ROW_LIST_H

#include "core/data/lookup.h"

/* An all-zero row_list_t is empty. It shares keys and bodies with the rows it was given. */
typedef struct row_list {
    row_t *rows;
    size_t count;
    size_t capacity;
} row_list_t;

/* Appends the changes of a batch; row_list_sort must follow before the list is asked. */
void row_list_add (row_list_t *self, const batch_t *batch);
/* Orders the rows and keeps the change of each key that was added last, also when it says "gone".
 */
void row_list_sort (row_list_t *self);
/* Position of the first row that does not stand before the given one. */
size_t row_list_from (const row_list_t *self, const row_t *least);
/* NULL: the list says nothing about the key. */
const row_t *row_list_find (const row_list_t *self, row_kind_t kind, const buf_t *key);
/* Applies one change to an ordered list that holds no row that is gone. */
void row_list_put (row_list_t *self, const row_t *row);
void row_list_free (row_list_t *self);

/* What a store answers whose rows all stand in such a list. */

void row_list_answer (const row_list_t *self, lookup_t *key); /* a LOOKUP_ROW */
void row_list_page (const row_list_t *self, read_t *read);    /* a READ_ROWS */
/* Appends rows that are due at wall_ms, from this position on, until out has limit of them. Returns
 * the position behind the last one that was looked at. */
size_t row_list_due (const row_list_t *self, size_t from, int64_t wall_ms, size_t limit,
                     due_t *out);

#endif
