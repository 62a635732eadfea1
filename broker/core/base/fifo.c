/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* First in, first out. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fifo.h"
#include "core/base/memory.h"

void fifo_push (fifo_t *self, void *item)
{
    if (self->first > 32 && self->first > self->count) {
        memmove (self->items, self->items + self->first, self->count * sizeof (*self->items));
        self->first = 0;
    }
    self->items = memory_grow (self->items, &self->capacity, self->first + self->count,
                               sizeof (*self->items));
    self->items[self->first + self->count++] = item;
}

void *fifo_first (const fifo_t *self)
{
    return self->count == 0 ? NULL : self->items[self->first];
}

void *fifo_at (const fifo_t *self, size_t index)
{
    assert (index < self->count);
    return self->items[self->first + index];
}

void *fifo_pop (fifo_t *self)
{
    if (self->count == 0)
        return NULL;
    self->count--;
    return self->items[self->first++];
}

void fifo_free (fifo_t *self)
{
    free (self->items);
    *self = (fifo_t){0};
}
