/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A table from a 64-bit key to a 64-bit value, by open addressing. For numbers of tasks and for
 * hashes; keys are never 0 and trusted (they come from the broker itself). */
#ifndef TASKMQ_STORE_NUMBER_MAP_H
#define TASKMQ_STORE_NUMBER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct number_map {
    struct number_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} number_map_t;

/* An all-zero number_map_t is an empty one. */
void number_map_reserve (number_map_t *self, size_t count); /* room for so many keys at once */
void number_map_clear (number_map_t *self);                 /* frees */
/* The value of the key; a new key gets 0. Valid until the next call. *is_new may be NULL. */
uint64_t *number_map_put (number_map_t *self, uint64_t key, bool *is_new);
/* NULL when the key is not there. */
const uint64_t *number_map_get (const number_map_t *self, uint64_t key);

#endif
