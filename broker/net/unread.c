/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/unread.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/base/memory.h"

struct unread {
    unread_t *all; /* NULL: it is that of all */
    size_t bytes_max;
    atomic_size_t bytes;
    atomic_size_t references; /* the owner, messages under way, and the peers' to that of all */
};

unread_t *unread_new (unread_t *all, size_t bytes_max)
{
    unread_t *self = memory_zero (1, sizeof (*self));
    self->all = all;
    self->bytes_max = bytes_max;
    atomic_init (&self->bytes, 0);
    atomic_init (&self->references, 1);
    if (all != NULL)
        atomic_fetch_add (&all->references, 1);
    return self;
}

static void release (unread_t *self)
{
    while (self != NULL && atomic_fetch_sub (&self->references, 1) == 1) {
        unread_t *all = self->all;
        free (self);
        self = all;
    }
}

void unread_drop (unread_t **self_p)
{
    release (*self_p);
    *self_p = NULL;
}

size_t unread_bytes (const unread_t *self)
{
    return atomic_load_explicit (&self->bytes, memory_order_relaxed);
}

bool unread_has_room (const unread_t *self)
{
    size_t bytes = unread_bytes (self);
    return bytes < UNREAD_FAIR_BYTES ||
           (bytes < self->bytes_max && unread_bytes (self->all) < self->all->bytes_max);
}

void unread_add (unread_t *self, size_t bytes)
{
    atomic_fetch_add (&self->references, 1);
    atomic_fetch_add_explicit (&self->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit (&self->all->bytes, bytes, memory_order_relaxed);
}

void unread_remove (unread_t *self, size_t bytes)
{
    atomic_fetch_sub_explicit (&self->bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit (&self->all->bytes, bytes, memory_order_relaxed);
    release (self);
}
