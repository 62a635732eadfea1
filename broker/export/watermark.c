/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
#include "export/watermark.h"

void watermark_init (watermark_t *self, store_t *store)
{
    self->store = store;
    for (int i = 0; i < WATERMARK_FOLLOWERS; i++)
        atomic_store (&self->pos[i], 0);
}

void watermark_move (watermark_t *self, watermark_who_t who, uint64_t pos)
{
    uint64_t least = pos;
    atomic_store (&self->pos[who], pos);
    for (int i = 0; i < WATERMARK_FOLLOWERS; i++) {
        uint64_t other = atomic_load (&self->pos[i]);
        least = other < least ? other : least;
    }
    store_exported (self->store, least);
}
