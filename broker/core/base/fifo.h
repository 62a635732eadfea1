/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* First in, first out, of pointers. Zeroed memory is an empty one. */
#ifndef TASKMQ_CORE_FIFO_H
#define TASKMQ_CORE_FIFO_H

#include <stddef.h>

typedef struct fifo {
    void **items;
    size_t first;
    size_t count;
    size_t capacity;
} fifo_t;

void fifo_push (fifo_t *self, void *item);
void *fifo_pop (fifo_t *self);         /* NULL when empty */
void *fifo_first (const fifo_t *self); /* as fifo_pop, and it stays */
void *fifo_at (const fifo_t *self, size_t index);
void fifo_free (fifo_t *self); /* the places, not the items */

#endif
