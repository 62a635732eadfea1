/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bodies with a counted life. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/buf.h"

struct buf {
    atomic_size_t references;
    size_t length;
    uint8_t bytes[];
};

static const uint8_t NO_BYTES[1] = {0};

buf_t *buf_new_uninitialised (size_t length)
{
    buf_t *self = memory_alloc (sizeof (*self) + length);
    atomic_init (&self->references, 1);
    self->length = length;
    return self;
}

buf_t *buf_new (const void *bytes, size_t length)
{
    buf_t *self = buf_new_uninitialised (length);
    if (length > 0)
        memcpy (self->bytes, bytes, length);
    return self;
}

uint8_t *buf_mutable (buf_t *self)
{
    assert (atomic_load_explicit (&self->references, memory_order_relaxed) == 1);
    return self->bytes;
}

buf_t *buf_keep (buf_t *self)
{
    if (self != NULL)
        atomic_fetch_add_explicit (&self->references, 1, memory_order_relaxed);
    return self;
}

void buf_drop (buf_t *self)
{
    if (self == NULL)
        return;
    if (atomic_fetch_sub_explicit (&self->references, 1, memory_order_acq_rel) == 1)
        free (self);
}

const uint8_t *buf_bytes (const buf_t *self)
{
    return self == NULL ? NO_BYTES : self->bytes;
}

size_t buf_length (const buf_t *self)
{
    return self == NULL ? 0 : self->length;
}
