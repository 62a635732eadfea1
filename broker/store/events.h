/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads packed event lists without unpacking them: a history touches one event of a block of
 * thousands, and what is stored is what is sent. */
#ifndef TASKMQ_STORE_EVENTS_H
#define TASKMQ_STORE_EVENTS_H

#include "core/data/lookup.h"

/* One event inside a packed taskmq.EventList, pointing into it. */
typedef struct packed_event {
    const uint8_t *packed; /* with its tag and length, ready to be copied to another list */
    size_t packed_bytes;
    uint64_t seq;
    int64_t at;
    uint64_t previous_seq;
    uint64_t subject;       /* 0: a task */
    const uint8_t *task_id; /* 16 bytes, or NULL */
} packed_event_t;

typedef struct event_walk {
    const uint8_t *next;
    const uint8_t *end;
    bool damaged; /* the bytes are no event list */
} event_walk_t;

event_walk_t event_walk (const uint8_t *list, size_t list_bytes);
/* The next event, oldest first; false at the end, or when damaged is set. */
bool event_walk_next (event_walk_t *walk, packed_event_t *event);
/* Some of its events are of no task. */
bool event_list_is_mixed (const buf_t *list);
/* Sequence of the first event at or after since_ms, 0 if there is none in the list. */
uint64_t event_first_since (const uint8_t *list, size_t list_bytes, int64_t since_ms);

/* Looks by halves for the first block that was committed at or after a time: while there is a
 * middle, the newest block that begins at or before it is judged. At the end low is where the block
 * begins, or one behind the newest sequence. */
typedef struct event_bisect {
    uint64_t low;
    uint64_t high; /* at the beginning: the retained sequences, from low to before high */
} event_bisect_t;
static inline bool event_bisect_middle (const event_bisect_t *self, uint64_t *middle)
{
    *middle = self->low + (self->high - self->low) / 2;
    return self->low < self->high;
}
/* found false: there is no such block. end_seq: one after its last sequence. */
void event_bisect_judge (event_bisect_t *self, uint64_t middle, bool found, uint64_t first_seq,
                         uint64_t end_seq, bool is_since);

/* Where a history finds its blocks. Sets *list, valid until the next call; false when the block
 * of the sequence is not there (any more). */
typedef struct event_source {
    bool (*find) (void *context, uint64_t seq, const uint8_t **list, size_t *list_bytes);
    bool (*enough) (void *context); /* true ends the collection early; may be NULL */
    void *context;
} event_source_t;

/* Follows a task's chain of events from newest to oldest, over any number of calls, until limit
 * events before the wanted sequence are there. */
typedef struct event_chain {
    uint64_t next_seq;   /* the next event of the chain, 0: the chain has ended */
    uint64_t before_seq; /* only events before it, 0: all */
    tmq_id_t task_id;    /* zero: not known */
    bool begun;
    size_t limit;
    size_t count;
    uint8_t *bytes; /* packed events, newest first */
    size_t bytes_count;
    size_t bytes_capacity;
    size_t *ends; /* where each event ends in bytes */
    size_t ends_capacity;
} event_chain_t;

void event_chain_start (event_chain_t *self, const read_t *read);
/* True when done: the limit is reached or the chain has ended. */
bool event_chain_follow (event_chain_t *self, const event_source_t *source);
/* Fills the read's answers and frees what the history holds. */
void event_chain_finish (event_chain_t *self, read_t *read);

#endif
