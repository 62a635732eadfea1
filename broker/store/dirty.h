/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Committed batches whose rows are not written yet, and what they come to. */
#ifndef TASKMQ_STORE_DIRTY_H
#define TASKMQ_STORE_DIRTY_H

#include "core/data/row_list.h"
#include "store/images.h"

/* An all-zero dirty_t is empty. */
typedef struct dirty {
    batch_t **batches; /* oldest first */
    size_t count;
    size_t capacity;
    images_t images;
    row_list_t rows;
    size_t bytes;
    int64_t since_ms; /* when the oldest came */
} dirty_t;

/* Takes the batch, which came at now_ms. */
void dirty_add (dirty_t *self, batch_t *batch, int64_t now_ms);
/* Makes room for about so many tasks, so that it does not grow step by step. */
void dirty_expect (dirty_t *self, size_t tasks);
/* After the last batch: orders images and rows, for those who write or copy them. */
void dirty_sort (dirty_t *self);
/* Tasks that changed or were removed, and changed rows. */
size_t dirty_tasks (const dirty_t *self);
bool dirty_has (const dirty_t *self, int64_t number);
/* Frees the batches and makes it empty. */
void dirty_free (dirty_t *self);

#endif
