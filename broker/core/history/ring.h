/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The newest events in memory, by blocks: one block is what a batch brought to a namespace. */
#ifndef TASKMQ_CORE_RING_H
#define TASKMQ_CORE_RING_H

#include "core/history/history.h"

/* A block of the ring: the events of one batch. */
typedef struct ring_block {
    node_t in_log;  /* rising sequences */
    node_t in_ring; /* of all namespaces, by age */
    event_log_t *log;
    uint64_t batch;
    uint64_t first_seq;
    uint32_t count;
    bool mixed; /* as that of the block */
    buf_t *list;
} ring_block_t;

void ring_add (history_t *self, event_log_t *log, uint64_t batch, const event_block_t *from);
void ring_clear (history_t *self);
void ring_forget (history_t *self, event_log_t *log); /* its blocks */
uint64_t ring_first_seq (const event_log_t *log);     /* 0: nothing is in memory */
bool ring_holds (const event_log_t *log, uint64_t seq);
/* The block that has this sequence, or NULL. */
ring_block_t *ring_find (const event_log_t *log, uint64_t seq);

#endif
