/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/dirty.h"

#include <stdlib.h>

#include "core/base/memory.h"

void dirty_add (dirty_t *self, batch_t *batch, int64_t now_ms)
{
    if (self->count == 0)
        self->since_ms = now_ms;
    self->batches = memory_grow (self->batches, &self->capacity, self->count, sizeof (batch_t *));
    self->batches[self->count++] = batch;
    self->bytes += batch->bytes;
    images_add (&self->images, batch);
    row_list_add (&self->rows, batch);
}

void dirty_expect (dirty_t *self, size_t tasks)
{
    number_map_reserve (&self->images.by_number, tasks);
}

void dirty_sort (dirty_t *self)
{
    images_sort (&self->images);
    row_list_sort (&self->rows);
}

size_t dirty_tasks (const dirty_t *self)
{
    return self->images.by_number.count + self->rows.count;
}

bool dirty_has (const dirty_t *self, int64_t number)
{
    return number_map_get (&self->images.by_number, (uint64_t) number) != NULL;
}

void dirty_free (dirty_t *self)
{
    images_free (&self->images);
    row_list_free (&self->rows);
    for (size_t i = 0; i < self->count; i++)
        batch_free (self->batches[i]);
    free (self->batches);
    *self = (dirty_t){0};
}
