/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/buckets.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/list.h"
#include "core/base/map.h"
#include "core/base/memory.h"

enum { MS_PER_S = 1000 };

typedef struct bucket {
    node_t node;     /* the one used longest ago is the first */
    int64_t left_ms; /* what is left, times the time that one takes to come back */
    int64_t filled_ms;
    uint32_t hash;
    uint8_t bytes;
    uint8_t name[];
} bucket_t;

struct buckets {
    buckets_options_t options;
    int64_t one_ms; /* until one has come back */
    map_t by_name;
    node_t used;
    size_t count;
};

buckets_t *buckets_new (const buckets_options_t *options)
{
    buckets_t *self = memory_zero (1, sizeof (*self));
    assert (options->burst > 0 && options->names_max > 0);
    assert (options->per_second > 0 && options->per_second <= MS_PER_S);
    self->options = *options;
    self->one_ms = MS_PER_S / options->per_second;
    list_init (&self->used);
    return self;
}

static void bucket_drop (buckets_t *self, bucket_t *bucket)
{
    map_remove (&self->by_name, bucket->hash, bucket);
    list_unlink (&bucket->node);
    self->count--;
    free (bucket);
}

void buckets_free (buckets_t **self_p)
{
    buckets_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (node_t *node = list_first (&self->used); node != NULL; node = list_first (&self->used))
        bucket_drop (self, LIST_ITEM (node, bucket_t, node));
    map_free (&self->by_name);
    free (self);
}

static uint32_t hash_of (const buckets_t *self, const void *name, size_t bytes)
{
    static_assert ((int) BUCKETS_KEY_BYTES == (int) crypto_shorthash_KEYBYTES, "key of the hash");
    uint8_t out[crypto_shorthash_BYTES];
    uint32_t hash;
    crypto_shorthash (out, name, bytes, self->options.key);
    memcpy (&hash, out, sizeof (hash));
    return hash;
}

static bucket_t *find (const buckets_t *self, uint32_t hash, const void *name, size_t bytes)
{
    size_t cursor = MAP_START;
    bucket_t *bucket;
    while ((bucket = map_next (&self->by_name, hash, &cursor)) != NULL)
        if (bucket->bytes == bytes && memcmp (bucket->name, name, bytes) == 0)
            break;
    return bucket;
}

static int64_t full_ms (const buckets_t *self)
{
    return self->one_ms * self->options.burst;
}

static int64_t left_ms (const buckets_t *self, const bucket_t *bucket, int64_t now_ms)
{
    int64_t left = bucket->left_ms + (now_ms - bucket->filled_ms);
    return left < full_ms (self) ? left : full_ms (self);
}

static bucket_t *add (buckets_t *self, uint32_t hash, const void *name, size_t bytes,
                      int64_t now_ms)
{
    if (self->count == self->options.names_max)
        bucket_drop (self, LIST_ITEM (list_first (&self->used), bucket_t, node));
    bucket_t *bucket = memory_zero (1, sizeof (*bucket) + bytes);
    bucket->left_ms = full_ms (self);
    bucket->filled_ms = now_ms;
    bucket->hash = hash;
    bucket->bytes = (uint8_t) bytes;
    memcpy (bucket->name, name, bytes);
    map_insert (&self->by_name, hash, bucket);
    list_push_back (&self->used, &bucket->node);
    self->count++;
    return bucket;
}

bool buckets_take (buckets_t *self, const void *name, size_t bytes, int64_t now_ms)
{
    assert (bytes <= BUCKETS_NAME_BYTES_MAX);
    uint32_t hash = hash_of (self, name, bytes);
    bucket_t *bucket = find (self, hash, name, bytes);
    if (bucket == NULL)
        bucket = add (self, hash, name, bytes, now_ms);
    bucket->left_ms = left_ms (self, bucket, now_ms);
    bucket->filled_ms = now_ms;
    list_unlink (&bucket->node);
    list_push_back (&self->used, &bucket->node);
    if (bucket->left_ms < self->one_ms)
        return false;
    bucket->left_ms -= self->one_ms;
    return true;
}

size_t buckets_count (const buckets_t *self)
{
    return self->count;
}
