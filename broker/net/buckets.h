/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Token buckets by a name that strangers choose: an address, a principal.
 *
 * The table is bounded: beyond it the one that was used longest ago is forgotten, which means that
 * it is full again. One thread, no clock. */
#ifndef TASKMQ_NET_BUCKETS_H
#define TASKMQ_NET_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUCKETS_KEY_BYTES = 16, BUCKETS_NAME_BYTES_MAX = 96 };

typedef struct buckets buckets_t;

typedef struct buckets_options {
    size_t names_max;
    uint32_t burst;                 /* what a full one holds */
    uint32_t per_second;            /* and how fast it fills again */
    uint8_t key[BUCKETS_KEY_BYTES]; /* secret, for the hash table */
} buckets_options_t;

buckets_t *buckets_new (const buckets_options_t *options);
void buckets_free (buckets_t **self); /* accepts a NULL object */

/* Takes one out of the bucket of this name; false when it is empty. */
bool buckets_take (buckets_t *self, const void *name, size_t bytes, int64_t now_ms);
size_t buckets_count (const buckets_t *self);

#endif
