/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Batches that several hold. */
#include <stdlib.h>
#include <string.h>

#include "cluster.h"

parcel_t *parcel_new (const host_t *host, batch_t *batch, int64_t started_ms)
{
    parcel_t *self = malloc (sizeof *self);
    *self = (parcel_t){.batch = batch,
                       .epoch = host->epoch,
                       .generation = host->generation,
                       .previous = host->last,
                       .host = host->index,
                       .started_ms = started_ms,
                       .refs = 1};
    return self;
}

parcel_t *parcel_keep (parcel_t *self)
{
    if (self != NULL) {
        self->refs++;
    }
    return self;
}

void parcel_drop (parcel_t *self)
{
    if (self != NULL && --self->refs == 0) {
        batch_free (self->batch);
        free (self);
    }
}

void parcels_add (parcels_t *self, parcel_t *parcel)
{
    if (self->count == self->capacity) {
        self->capacity = self->capacity == 0 ? 8 : 2 * self->capacity;
        self->list = realloc (self->list, self->capacity * sizeof *self->list);
    }
    self->list[self->count++] = parcel_keep (parcel);
}

void parcels_copy (parcels_t *self, const parcels_t *from)
{
    for (size_t i = 0; from != NULL && i < from->count; i++) {
        parcels_add (self, from->list[i]);
    }
}

void parcels_shift (parcels_t *self, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        parcel_drop (self->list[i]);
    }
    self->count -= count;
    if (count > 0) {
        memmove (self->list, self->list + count, self->count * sizeof (parcel_t *));
    }
}

void parcels_free (parcels_t *self)
{
    parcels_shift (self, self->count);
    free (self->list);
    *self = (parcels_t){0};
}
