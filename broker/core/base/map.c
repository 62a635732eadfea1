/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open-addressing hash table: linear probing, at most three quarters full, removal by moving what
 * follows back, so that no graves slow it down over the months. Only an old table, which ends soon,
 * has graves: of what has moved or was removed meanwhile. */
#include "core/base/map.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/memory.h"

enum { CAPACITY_MIN = 16 };

static char grave; /* its address is an item that nobody has */

void map_free (map_t *self)
{
    free (self->now.slots);
    free (self->old.slots);
    *self = (map_t){0};
}

static void place (map_table_t *table, uint32_t hash, void *item)
{
    size_t mask = table->capacity - 1;
    size_t at = hash & mask;
    while (table->slots[at].item != NULL)
        at = (at + 1) & mask;
    table->slots[at] = (map_slot_t){item, hash};
}

static bool is_held (const map_slot_t *slot)
{
    return slot->item != NULL && slot->item != &grave;
}

/* Moves the next slots of the old table, and frees it behind the last one. */
static void move (map_t *self, size_t slots)
{
    map_table_t *old = &self->old;
    for (; slots > 0 && self->moved < old->capacity; slots--) {
        map_slot_t *slot = &old->slots[self->moved++];
        if (!is_held (slot))
            continue;
        place (&self->now, slot->hash, slot->item);
        slot->item = &grave;
    }
    if (old->capacity == 0 || self->moved < old->capacity)
        return;
    free (old->slots);
    *old = (map_table_t){0};
}

/* The table before has moved wholly long ago: it takes an eighth of its capacity in inserts, and
 * the next growth comes after three quarters. */
static void grow (map_t *self)
{
    assert (self->old.capacity == 0);
    self->old = self->now;
    self->moved = 0;
    self->now.capacity = self->old.capacity == 0 ? CAPACITY_MIN : self->old.capacity * 2;
    self->now.slots = memory_zero (self->now.capacity, sizeof (map_slot_t));
}

void map_insert (map_t *self, uint32_t hash, void *item)
{
    assert (item != NULL);
    if ((self->count + 1) * 4 > self->now.capacity * 3)
        grow (self);
    move (self, MAP_MOVES);
    place (&self->now, hash, item);
    self->count++;
}

/* The next slot of the table with this hash, from `at` on, or its capacity. */
static size_t find (const map_table_t *table, uint32_t hash, size_t at)
{
    size_t mask = table->capacity - 1;
    for (at &= mask; table->slots[at].item != NULL; at = (at + 1) & mask) {
        if (table->slots[at].hash == hash && table->slots[at].item != &grave)
            return at;
    }
    return table->capacity;
}

/* A cursor is a slot of the new table, or, behind those, one of the old. */
void *map_next (const map_t *self, uint32_t hash, size_t *cursor)
{
    size_t capacity = self->now.capacity;
    if (self->count == 0)
        return NULL;
    size_t at = *cursor == MAP_START ? hash : *cursor + 1;
    if (*cursor == MAP_START || *cursor < capacity) {
        at = find (&self->now, hash, at);
        if (at < capacity) {
            *cursor = at;
            return self->now.slots[at].item;
        }
        at = hash;
    } else {
        at -= capacity;
    }
    if (self->old.capacity == 0)
        return NULL;
    at = find (&self->old, hash, at);
    if (at == self->old.capacity)
        return NULL;
    *cursor = capacity + at;
    return self->old.slots[at].item;
}

/* Whether the item in slot `at`, whose home is elsewhere, may be moved back to the free slot. */
static bool reaches (size_t home, size_t at, size_t hole, size_t mask)
{
    return ((at - home) & mask) >= ((at - hole) & mask);
}

/* The slot of an item, or the table's capacity. */
static size_t locate (const map_table_t *table, uint32_t hash, const void *item)
{
    size_t mask = table->capacity - 1;
    for (size_t at = hash & mask; table->slots[at].item != NULL; at = (at + 1) & mask) {
        if (table->slots[at].item == item)
            return at;
    }
    return table->capacity;
}

static void remove_at (map_table_t *table, size_t hole)
{
    size_t mask = table->capacity - 1;
    for (size_t at = (hole + 1) & mask; table->slots[at].item != NULL; at = (at + 1) & mask) {
        if (reaches (table->slots[at].hash & mask, at, hole, mask)) {
            table->slots[hole] = table->slots[at];
            hole = at;
        }
    }
    table->slots[hole].item = NULL;
}

void map_remove (map_t *self, uint32_t hash, const void *item)
{
    assert (self->count > 0);
    size_t at = locate (&self->now, hash, item);
    if (at < self->now.capacity) {
        remove_at (&self->now, at);
    } else {
        assert (self->old.capacity > 0);
        at = locate (&self->old, hash, item);
        assert (at < self->old.capacity);
        self->old.slots[at].item = &grave;
    }
    self->count--;
    move (self, MAP_MOVES);
}

static void *each_of (const map_table_t *table, size_t *at)
{
    for (; *at < table->capacity; (*at)++)
        if (is_held (&table->slots[*at]))
            return table->slots[(*at)++].item;
    return NULL;
}

void *map_each (const map_t *self, size_t *cursor)
{
    void *item = NULL;
    if (*cursor < self->now.capacity)
        item = each_of (&self->now, cursor);
    if (item != NULL)
        return item;
    size_t at = *cursor - self->now.capacity;
    item = each_of (&self->old, &at);
    *cursor = self->now.capacity + at;
    return item;
}
