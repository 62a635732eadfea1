/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "backup/named.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backup/pack.h"
#include "core/base/memory.h"

typedef struct name {
    pack_blob_t blob;
    bool there;
} name_t;

struct named {
    name_t *names; /* by hash */
    size_t count;
    size_t capacity;
};

static void note (void *context, const uint8_t *hash, uint64_t bytes)
{
    named_t *self = context;
    self->names = memory_grow (self->names, &self->capacity, self->count, sizeof (name_t));
    name_t *name = &self->names[self->count++];
    *name = (name_t){.blob = {.bytes = bytes}};
    memcpy (name->blob.hash, hash, PACK_HASH_BYTES);
}

static int by_hash (const void *a, const void *b)
{
    const name_t *x = a;
    const name_t *y = b;
    return memcmp (x->blob.hash, y->blob.hash, PACK_HASH_BYTES);
}

store_code_t named_read (named_t **out, const char *directory, store_error_t *error)
{
    named_t *self = memory_zero (1, sizeof (*self));
    *out = self;
    store_code_t code = store_look_blobs (directory, note, self, error);
    if (self->count > 0)
        qsort (self->names, self->count, sizeof (name_t), by_hash);
    return code;
}

void named_free (named_t **self)
{
    if (*self != NULL)
        free ((*self)->names);
    free (*self);
    *self = NULL;
}

void named_have (named_t *self, const uint8_t *hash)
{
    name_t key = {0};
    memcpy (key.blob.hash, hash, PACK_HASH_BYTES);
    name_t *name = self->count == 0
                       ? NULL
                       : bsearch (&key, self->names, self->count, sizeof (name_t), by_hash);
    if (name != NULL)
        name->there = true;
}

void named_look (named_t *self, const char *blobs)
{
    for (size_t i = 0; i < self->count; i++) {
        const int fd = pack_open (blobs, &self->names[i].blob);
        self->names[i].there = fd >= 0;
        if (fd >= 0)
            close (fd);
    }
}

uint64_t named_missing (const named_t *self)
{
    uint64_t missing = 0;
    for (size_t i = 0; i < self->count; i++)
        missing += !self->names[i].there;
    return missing;
}
