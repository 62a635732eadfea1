/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open addressing with linear probing, at most two thirds full; entries are never
 * removed singly. */
#include "store/number_map.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/memory.h"

typedef struct number_slot {
    uint64_t key; /* 0: empty */
    uint64_t value;
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
    while (self->slots[i].key != 0 && self->slots[i].key != key)
        i = (i + 1) & (self->capacity - 1);
    return &self->slots[i];
}

static void grow (number_map_t *self, size_t capacity)
{
    number_map_t old = *self;
    self->capacity = capacity;
    self->slots = memory_zero (self->capacity, sizeof (number_slot_t));
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].key != 0)
            *find (self, old.slots[i].key) = old.slots[i];
    free (old.slots);
}

void number_map_clear (number_map_t *self)
{
    free (self->slots);
    *self = (number_map_t){NULL, 0, 0};
}

void number_map_reserve (number_map_t *self, size_t count)
{
    size_t capacity = self->capacity == 0 ? CAPACITY_MIN : self->capacity;
    while (count * 3 > capacity * 2)
        capacity *= 2;
    if (capacity > self->capacity)
        grow (self, capacity);
}

uint64_t *number_map_put (number_map_t *self, uint64_t key, bool *is_new)
{
    assert (key != 0);
    if ((self->count + 1) * 3 > self->capacity * 2)
        number_map_reserve (self, self->count + 1);
    number_slot_t *slot = find (self, key);
    if (is_new != NULL)
        *is_new = slot->key == 0;
    if (slot->key == 0) {
        *slot = (number_slot_t){key, 0};
        self->count++;
    }
    return &slot->value;
}

const uint64_t *number_map_get (const number_map_t *self, uint64_t key)
{
    if (self->count == 0)
        return NULL;
    const number_slot_t *slot = find (self, key);
    return slot->key != 0 ? &slot->value : NULL;
}
