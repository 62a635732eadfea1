/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open-addressing hash table: linear probing, at most three quarters full, removal by moving what
 * follows back, so that no graves slow it down over the months. */
#include "core/map.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/memory.h"

enum { CAPACITY_MIN = 16 };

void map_free (map_t *self)
{
    free (self->slots);
    *self = (map_t){0};
}

static void place (map_t *self, uint32_t hash, void *item)
{
    size_t mask = self->capacity - 1;
    size_t at = hash & mask;
    while (self->slots[at].item != NULL)
        at = (at + 1) & mask;
    self->slots[at] = (map_slot_t){item, hash};
}

static void resize (map_t *self, size_t capacity)
{
    map_slot_t *old = self->slots;
    size_t old_capacity = self->capacity;
    self->slots = memory_zero (capacity, sizeof (*self->slots));
    self->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].item != NULL)
            place (self, old[i].hash, old[i].item);
    free (old);
}

void map_insert (map_t *self, uint32_t hash, void *item)
{
    assert (item != NULL);
    if ((self->count + 1) * 4 > self->capacity * 3)
        resize (self, self->capacity == 0 ? CAPACITY_MIN : self->capacity * 2);
    place (self, hash, item);
    self->count++;
}

void *map_next (const map_t *self, uint32_t hash, size_t *cursor)
{
    if (self->count == 0)
        return NULL;
    size_t mask = self->capacity - 1;
    size_t at = *cursor == MAP_START ? hash & mask : (*cursor + 1) & mask;
    for (; self->slots[at].item != NULL; at = (at + 1) & mask) {
        if (self->slots[at].hash == hash) {
            *cursor = at;
            return self->slots[at].item;
        }
    }
    return NULL;
}

/* Whether the item in slot `at`, whose home is elsewhere, may be moved back to the free slot. */
static bool reaches (size_t home, size_t at, size_t hole, size_t mask)
{
    return ((at - home) & mask) >= ((at - hole) & mask);
}

void map_remove (map_t *self, uint32_t hash, const void *item)
{
    size_t mask = self->capacity - 1;
    assert (self->count > 0);
    size_t hole = hash & mask;
    while (self->slots[hole].item != item) {
        assert (self->slots[hole].item != NULL);
        hole = (hole + 1) & mask;
    }
    for (size_t at = (hole + 1) & mask; self->slots[at].item != NULL; at = (at + 1) & mask) {
        if (reaches (self->slots[at].hash & mask, at, hole, mask)) {
            self->slots[hole] = self->slots[at];
            hole = at;
        }
    }
    self->slots[hole].item = NULL;
    self->count--;
}

void *map_each (const map_t *self, size_t *cursor)
{
    for (; *cursor < self->capacity; (*cursor)++)
        if (self->slots[*cursor].item != NULL)
            return self->slots[(*cursor)++].item;
    return NULL;
}
