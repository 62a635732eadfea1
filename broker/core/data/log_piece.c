/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/data/log_piece.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

bool log_key_equals (const log_key_t *self, const log_key_t *other)
{
    return self->number == other->number && self->attempt == other->attempt &&
           self->stream == other->stream &&
           memcmp (&self->id, &other->id, sizeof (self->id)) == 0 &&
           strcmp (self->ns, other->ns) == 0;
}

log_piece_t *log_piece_new (const log_key_t *key, uint64_t offset, const void *bytes, size_t length)
{
    log_piece_t *self = memory_zero (1, sizeof (*self));
    self->key = *key;
    self->offset = offset;
    self->bytes = buf_new (bytes, length);
    return self;
}

size_t log_piece_memory (size_t length)
{
    enum { LINE_BYTES = 192 }; /* the buffer's head, and what the writer keeps with it */
    return sizeof (log_piece_t) + LINE_BYTES + length;
}

void log_piece_free (log_piece_t *self)
{
    buf_drop (self->bytes);
    free (self);
}
