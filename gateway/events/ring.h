/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The last pieces of a stream of events, as they were sent: what several readers share, each at a
 * place of its own. Pure.
 *
 * A piece has a number that is never used again. Those that are dropped are the oldest; a reader
 * whose place is gone goes elsewhere, by the sequence of what it read last. */
#ifndef TASKMQ_GATEWAY_EVENTS_RING_H
#define TASKMQ_GATEWAY_EVENTS_RING_H

#include "bytes.h"

enum {
    RING_NOTICE = 1, /* has no sequence: for who wants it */
    RING_LAST = 2,   /* a task has ended: nothing follows in a stream of that task alone */
    RING_TURN = 4,   /* another history: sequences begin anew */
    RING_WORD = 8    /* of the gateway itself; has no sequence, and is for all */
};

typedef struct ring_piece {
    uint64_t at;         /* of its first byte, in all that ever was */
    uint64_t seq;        /* of it, or of the event before it */
    uint64_t generation; /* of the history that seq belongs to */
    unsigned flags;
} ring_piece_t;

/* All zero: empty. */
typedef struct ring {
    bytes_t bytes;
    uint64_t base; /* of bytes */
    ring_piece_t *pieces;
    size_t count;
    size_t capacity;
    uint64_t first;     /* number of the oldest piece */
    uint64_t floor_seq; /* every event behind it, of this generation, is here or is still to come */
    uint64_t generation;
} ring_t;

void ring_clear (ring_t *self);
/* Begins behind a cursor: nothing that follows it is missed. Of an empty ring. */
void ring_begin (ring_t *self, uint64_t generation, uint64_t seq);
/* False: memory is exhausted, and the piece is not there. */
bool ring_add (ring_t *self, const ring_piece_t *piece, const void *data, size_t length);
/* Drops the oldest until it has at most so many bytes; when it drops, it makes room for more than
 * one, so that not every piece moves all the others. */
void ring_trim (ring_t *self, size_t bytes_max);
/* The number behind the newest. */
uint64_t ring_end (const ring_t *self);
/* A piece with its bytes; NULL: it was dropped, or is not there yet. */
const ring_piece_t *ring_piece (const ring_t *self, uint64_t number, const uint8_t **data,
                                size_t *length);
/* The number of the first piece behind a cursor (perhaps ring_end). False: events behind it are no
 * longer here, or it is of another history. */
bool ring_find (const ring_t *self, uint64_t generation, uint64_t seq, uint64_t *number);

#endif
