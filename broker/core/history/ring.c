/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ring of newest events. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/history/ring.h"

static void drop (history_t *self, ring_block_t *block)
{
    list_remove (&block->in_ring);
    list_remove (&block->in_log);
    self->ring_bytes -= buf_length (block->list);
    buf_drop (block->list);
    free (block);
}

/* Forgets the oldest block; false when there is none. */
static bool drop_oldest (history_t *self)
{
    node_t *node = list_pop_front (&self->ring);
    if (node == NULL)
        return false;
    drop (self, LIST_ITEM (node, ring_block_t, in_ring));
    return true;
}

void ring_add (history_t *self, event_log_t *log, uint64_t batch, const event_block_t *from)
{
    ring_block_t *block = memory_zero (1, sizeof (*block));
    *block = (ring_block_t){.log = log,
                            .batch = batch,
                            .first_seq = from->first_seq,
                            .count = from->count,
                            .mixed = from->mixed,
                            .list = buf_keep (from->list)};
    list_push_back (&log->blocks, &block->in_log);
    list_push_back (&self->ring, &block->in_ring);
    self->ring_bytes += buf_length (from->list);
    /* What is not durable yet stays: its subscribers are still to come. */
    while (self->ring_bytes > self->base->config.ring_bytes &&
           LIST_ITEM (self->ring.next, ring_block_t, in_ring)->batch <= self->base->durable)
        drop_oldest (self);
}

void ring_clear (history_t *self)
{
    while (drop_oldest (self))
        continue;
}

void ring_forget (history_t *self, event_log_t *log)
{
    node_t *blocks = &log->blocks;
    for (node_t *node = list_pop_front (blocks); node != NULL; node = list_pop_front (blocks))
        drop (self, LIST_ITEM (node, ring_block_t, in_log));
}

static uint64_t block_last (const ring_block_t *block)
{
    return block->first_seq + block->count - 1;
}

uint64_t ring_first_seq (const event_log_t *log)
{
    const node_t *node = list_first (&log->blocks);
    return node == NULL ? 0 : LIST_ITEM (node, const ring_block_t, in_log)->first_seq;
}

/* The block that the cursor goes on in: most subscribers are at the end of the ring. */
ring_block_t *ring_find (const event_log_t *log, uint64_t seq)
{
    for (node_t *node = log->blocks.prev; node != &log->blocks; node = node->prev) {
        ring_block_t *block = LIST_ITEM (node, ring_block_t, in_log);
        if (block->first_seq <= seq)
            return block_last (block) >= seq ? block : NULL;
    }
    return NULL;
}

bool ring_holds (const event_log_t *log, uint64_t seq)
{
    return ring_find (log, seq) != NULL;
}
