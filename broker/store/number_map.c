/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open addressing with linear probing, at most two thirds full; entries are never
 * removed singly. */
#include "store/number_map.h"

#include <stdlib.h>

#include "core/memory.h"

typedef struct number_slot {
    uint64_t key;
    uint64_t value;
    bool used;
} number_slot_t;

enum { CAPACITY_MIN = 64 };

static size_t home (const number_map_t *self, uint64_t key)
{
    /* Fibonacci hashing: numbers come in runs, their products do not. */
    return (size_t) ((key * UINT64_C (0x9e3779b97f4a7c15)) >> 20) & (self->capacity - 1);
}

static number_slot_t *find (const number_map_t *self, uint64_t key)
{
    size_t i = home (self, key);
    while (self->slots[i].used && self->slots[i].key != key)
        i = (i + 1) & (self->capacity - 1);
    return &self->slots[i];
}

static void grow (number_map_t *self)
{
    number_map_t old = *self;
    self->capacity = old.capacity == 0 ? CAPACITY_MIN : old.capacity * 2;
    self->slots = memory_zero (self->capacity, sizeof (number_slot_t));
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].used)
            *find (self, old.slots[i].key) = old.slots[i];
    free (old.slots);
}

void number_map_clear (number_map_t *self)
{
    free (self->slots);
    *self = (number_map_t){NULL, 0, 0};
}

uint64_t *number_map_put (number_map_t *self, uint64_t key, bool *is_new)
{
    if ((self->count + 1) * 3 > self->capacity * 2)
        grow (self);
    number_slot_t *slot = find (self, key);
    if (is_new != NULL)
        *is_new = !slot->used;
    if (!slot->used) {
        *slot = (number_slot_t){key, 0, true};
        self->count++;
    }
    return &slot->value;
}

const uint64_t *number_map_get (const number_map_t *self, uint64_t key)
{
    if (self->count == 0)
        return NULL;
    const number_slot_t *slot = find (self, key);
    return slot->used ? &slot->value : NULL;
}
