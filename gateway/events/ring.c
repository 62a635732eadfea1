/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "events/ring.h"

#include <stdlib.h>

enum { PIECES_FIRST = 64 };

void ring_clear (ring_t *self)
{
    bytes_free (&self->bytes);
    free (self->pieces);
    *self = (ring_t){.bytes = BYTES_INIT};
}

void ring_begin (ring_t *self, uint64_t generation, uint64_t seq)
{
    self->generation = generation;
    self->floor_seq = seq;
}

static bool more_pieces (ring_t *self)
{
    const size_t capacity = self->capacity == 0 ? PIECES_FIRST : self->capacity * 2;
    ring_piece_t *pieces = realloc (self->pieces, capacity * sizeof *pieces);
    if (pieces == NULL)
        return false;
    self->pieces = pieces;
    self->capacity = capacity;
    return true;
}

bool ring_add (ring_t *self, const ring_piece_t *piece, const void *data, size_t length)
{
    const size_t before = self->bytes.length;
    if (self->count == self->capacity && !more_pieces (self))
        return false;
    bytes_append (&self->bytes, data, length);
    if (self->bytes.failed) {
        self->bytes.failed = false;
        return false;
    }
    if ((piece->flags & RING_TURN) != 0) {
        self->generation = piece->generation;
        self->floor_seq = piece->seq;
    }
    self->pieces[self->count] = *piece;
    self->pieces[self->count++].at = self->base + before;
    return true;
}

void ring_trim (ring_t *self, size_t bytes_max)
{
    size_t drop = 0;
    size_t bytes = 0;
    if (self->bytes.length <= bytes_max)
        return;
    const size_t wanted = self->bytes.length - bytes_max + bytes_max / 4;
    while (drop < self->count && bytes < wanted) {
        const ring_piece_t *piece = &self->pieces[drop++];
        const uint64_t end =
            drop < self->count ? self->pieces[drop].at : self->base + self->bytes.length;
        bytes = (size_t) (end - self->base);
        if (piece->generation == self->generation && piece->seq > self->floor_seq)
            self->floor_seq = piece->seq;
    }
    self->bytes.length -= bytes;
    memmove (self->bytes.data, self->bytes.data + bytes, self->bytes.length);
    self->base += bytes;
    self->count -= drop;
    memmove (self->pieces, self->pieces + drop, self->count * sizeof *self->pieces);
    self->first += drop;
}

uint64_t ring_end (const ring_t *self)
{
    return self->first + self->count;
}

const ring_piece_t *ring_piece (const ring_t *self, uint64_t number, const uint8_t **data,
                                size_t *length)
{
    if (number < self->first || number >= ring_end (self))
        return NULL;
    const size_t index = (size_t) (number - self->first);
    const ring_piece_t *piece = &self->pieces[index];
    const uint64_t end =
        index + 1 < self->count ? self->pieces[index + 1].at : self->base + self->bytes.length;
    *data = self->bytes.data + (piece->at - self->base);
    *length = (size_t) (end - piece->at);
    return piece;
}

/* True if the piece is behind the cursor: sequences of this history only rise. */
static bool is_behind (const ring_t *self, const ring_piece_t *piece, uint64_t seq)
{
    return piece->generation == self->generation && piece->seq > seq;
}

bool ring_find (const ring_t *self, uint64_t generation, uint64_t seq, uint64_t *number)
{
    size_t low = 0;
    size_t high = self->count;
    if (generation != self->generation || seq < self->floor_seq)
        return false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_behind (self, &self->pieces[middle], seq))
            high = middle;
        else
            low = middle + 1;
    }
    *number = self->first + low;
    return true;
}
