/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/buckets.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bucket.h"
#include "core/base/list.h"
#include "core/base/map.h"
#include "core/base/memory.h"

typedef struct entry {
    node_t node; /* the one used longest ago is the first */
    bucket_t bucket;
    uint32_t hash;
    uint8_t bytes;
    uint8_t name[];
} entry_t;

struct buckets {
    buckets_options_t options;
    map_t by_name;
    node_t used;
    size_t count;
};

buckets_t *buckets_new (const buckets_options_t *options)
{
    buckets_t *self = memory_zero (1, sizeof (*self));
    assert (options->burst > 0 && options->names_max > 0 && options->per_second > 0);
    self->options = *options;
    list_init (&self->used);
    return self;
}

static void entry_drop (buckets_t *self, entry_t *entry)
{
    map_remove (&self->by_name, entry->hash, entry);
    list_unlink (&entry->node);
    self->count--;
    free (entry);
}

void buckets_free (buckets_t **self_p)
{
    buckets_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    for (node_t *node = list_first (&self->used); node != NULL; node = list_first (&self->used))
        entry_drop (self, LIST_ITEM (node, entry_t, node));
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

static entry_t *find (const buckets_t *self, uint32_t hash, const void *name, size_t bytes)
{
    size_t cursor = MAP_START;
    entry_t *entry;
    while ((entry = map_next (&self->by_name, hash, &cursor)) != NULL)
        if (entry->bytes == bytes && memcmp (entry->name, name, bytes) == 0)
            break;
    return entry;
}

static entry_t *add (buckets_t *self, uint32_t hash, const void *name, size_t bytes)
{
    if (self->count == self->options.names_max)
        entry_drop (self, LIST_ITEM (list_first (&self->used), entry_t, node));
    entry_t *entry = memory_zero (1, sizeof (*entry) + bytes);
    entry->hash = hash;
    entry->bytes = (uint8_t) bytes;
    memcpy (entry->name, name, bytes);
    map_insert (&self->by_name, hash, entry);
    list_push_back (&self->used, &entry->node);
    self->count++;
    return entry;
}

bool buckets_take (buckets_t *self, const void *name, size_t bytes, int64_t now_ms)
{
    assert (bytes <= BUCKETS_NAME_BYTES_MAX);
    uint32_t hash = hash_of (self, name, bytes);
    entry_t *entry = find (self, hash, name, bytes);
    if (entry == NULL)
        entry = add (self, hash, name, bytes);
    list_unlink (&entry->node);
    list_push_back (&self->used, &entry->node);
    return bucket_take (&entry->bucket, self->options.per_second, self->options.burst, now_ms) == 0;
}

size_t buckets_count (const buckets_t *self)
{
    return self->count;
}
