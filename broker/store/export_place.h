/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where a READ_EXPORT stands in the event blocks, which it walks in the order of their positions.
 *
 * A block may have hundreds of thousands of events, and a transaction lasts 20 ms. So the walk
 * copies each block once and remembers its place in it, from page to page and from read to read. */
#ifndef TASKMQ_STORE_EXPORT_PLACE_H
#define TASKMQ_STORE_EXPORT_PLACE_H

#include "store/events.h"
#include "store/number_map.h"

/* An all-zero object stands nowhere. */
typedef struct export_place {
    uint64_t next_pos; /* of the first event not looked at; 0: nowhere */
    buf_t *list;       /* of the block it stands in; NULL: between blocks */
    event_walk_t events;
    number_map_t superseded; /* sequences that a later event of the block follows */
    int64_t ns;
    uint64_t first_seq;
    uint64_t first_pos;
    uint64_t end_pos; /* behind its last event */
    bool gap;         /* events between two places are not there any more */
} export_place_t;

/* Forgets the place. */
void export_place_clear (export_place_t *self);
/* Begins a read behind this position; the place stays if it is the same. */
void export_place_begin (export_place_t *self, uint64_t after_pos);
/* Enters a block, whose list is copied. */
void export_place_enter (export_place_t *self, int64_t ns, uint64_t first_seq, uint64_t first_pos,
                         uint64_t count, const void *list, size_t list_bytes);

typedef enum export_step {
    EXPORT_PASSED, /* an event that is not its task's newest, or of none, or was looked at before */
    EXPORT_EVENT,  /* one whose task's row may still stand at it */
    EXPORT_LEFT,   /* the block is at its end; the place is behind it */
    EXPORT_DAMAGED, /* … and it is no list of events from somewhere on */
} export_step_t;

/* Goes on by one event of the block that it stands in. *out, for an EVENT, points into the
 * block. */
export_step_t export_place_next (export_place_t *self, packed_event_t *out, uint64_t *pos);

#endif
