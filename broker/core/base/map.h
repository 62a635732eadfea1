/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open-addressing hash table of pointers. The caller hashes (with a secret key, see secrets.h) and
 * compares; equal hashes stand beside each other and are walked with a cursor.
 *
 * It grows in steps: the slots of a full table move into one of twice the size a few at a time,
 * with the inserts and removals that follow, so that a million items never move at once. Until then
 * both are looked through.
 *
 *     size_t cursor = MAP_START;
 *     while ((item = map_next (&map, hash, &cursor)) != NULL)
 *         if (item is the one) ...
 */
#ifndef TASKMQ_CORE_MAP_H
#define TASKMQ_CORE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Without padding: a quarter less for each of a million tasks. */
typedef struct __attribute__ ((packed, aligned (4))) map_slot {
    void *item; /* NULL: free */
    uint32_t hash;
} map_slot_t;

typedef struct map_table {
    map_slot_t *slots;
    size_t capacity; /* a power of two, or 0 */
} map_table_t;

typedef struct map {
    map_table_t now;
    map_table_t old; /* what is still to move, or no slots */
    size_t moved;    /* so many of old's slots, from the first, have moved */
    size_t count;
} map_t; /* zeroed memory is an empty map */

enum { MAP_MOVES = 8 }; /* slots that move with one insert or removal */

#define MAP_START SIZE_MAX

void map_free (map_t *self); /* the slots, not the items; the map is empty afterwards */
void map_insert (map_t *self, uint32_t hash, void *item);
/* The next item with this hash, or NULL. */
void *map_next (const map_t *self, uint32_t hash, size_t *cursor);
/* item must be in the map. */
void map_remove (map_t *self, uint32_t hash, const void *item);
/* Any item at or after *cursor (from 0), or NULL: walks all of them if the map is not changed. */
void *map_each (const map_t *self, size_t *cursor);

#endif
