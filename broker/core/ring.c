/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ring of newest events, and cutting what one message carries out of it or out of a page that a
 * reader brought (A43). Blocks are what commit batches made; a message may need a part of one, or
 * several, and only the events that a filter takes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

enum { WHOLE_BLOCK_BYTES = 4096 }; /* from here on a block is worth a message without a copy */

/* The ring. */

/* Forgets the oldest block; false when there is none. */
static bool drop_oldest (engine_t *self)
{
    node_t *node = list_pop_front (&self->ring);
    if (node == NULL)
        return false;
    ring_block_t *block = LIST_ITEM (node, ring_block_t, in_ring);
    list_unlink (&block->in_space);
    self->ring_bytes -= buf_length (block->list);
    buf_drop (block->list);
    free (block);
    return true;
}

void ring_add (engine_t *self, space_t *space, uint64_t batch, uint64_t first_seq, uint32_t count,
               buf_t *list)
{
    ring_block_t *block = memory_zero (1, sizeof (*block));
    *block = (ring_block_t){.space = space,
                            .batch = batch,
                            .first_seq = first_seq,
                            .count = count,
                            .list = buf_keep (list)};
    list_push_back (&space->blocks, &block->in_space);
    list_push_back (&self->ring, &block->in_ring);
    self->ring_bytes += buf_length (list);
    /* What is not durable yet stays: its subscribers are still to come. */
    while (self->ring_bytes > self->config.ring_bytes &&
           LIST_ITEM (self->ring.next, ring_block_t, in_ring)->batch <= self->durable)
        drop_oldest (self);
}

void ring_clear (engine_t *self)
{
    while (drop_oldest (self))
        continue;
}

static uint64_t block_last (const ring_block_t *block)
{
    return block->first_seq + block->count - 1;
}

/* Cutting events. */

/* Walks one block from the cursor on. */
static void cut_block (cut_t *cut, uint64_t first_seq, uint32_t count, buf_t *list)
{
    const uint8_t *at = buf_bytes (list);
    const uint8_t *end = at + buf_length (list);
    if (cut->hint.first_seq == first_seq)
        at += cut->hint.offset;
    uint64_t last = first_seq + count - 1;
    bool whole = cut->filter->everything && cut->count == 0 && cut->upto + 1 == first_seq &&
                 buf_length (list) <= cut->budget &&
                 (buf_length (list) >= WHOLE_BLOCK_BYTES || last >= cut->durable_seq);
    if (whole) {
        cut->whole = buf_keep (list);
        cut->count = count;
        cut->upto = last;
        cut->full = true;
        return;
    }
    scanned_t event;
    while (!cut->full && scan_event (&at, end, &event)) {
        if (event.seq <= cut->upto)
            continue;
        bool taken = filter_takes_event (cut->filter, &event);
        bool fits = cut->list.length + event.element_bytes <= cut->budget ||
                    (cut->alone && cut->count == 0);
        if (taken && !fits) {
            cut->full = true;
            return;
        }
        if (taken) {
            bytes_append (&cut->list, event.element, event.element_bytes);
            cut->count++;
        }
        cut->upto = event.seq;
        cut->full = event.seq >= cut->stop_seq;
    }
}

uint64_t ring_first_seq (const space_t *space)
{
    const node_t *node = list_first (&space->blocks);
    return node == NULL ? 0 : LIST_ITEM (node, const ring_block_t, in_space)->first_seq;
}

/* The block that the cursor goes on in: most subscribers are at the end of the ring. */
static ring_block_t *ring_find (const space_t *space, uint64_t seq)
{
    for (node_t *node = space->blocks.prev; node != &space->blocks; node = node->prev) {
        ring_block_t *block = LIST_ITEM (node, ring_block_t, in_space);
        if (block->first_seq <= seq)
            return block_last (block) >= seq ? block : NULL;
    }
    return NULL;
}

static void cut_ring (const space_t *space, ring_block_t *block, cut_t *cut)
{
    for (node_t *node = &block->in_space; node != &space->blocks && !cut->full; node = node->next) {
        block = LIST_ITEM (node, ring_block_t, in_space);
        if (block->first_seq > cut->durable_seq)
            break;
        cut_block (cut, block->first_seq, block->count, block->list);
    }
}

/* Subscribers with the same filter and cursor get the same bytes: cut once. */
static slice_t *slice_find (space_t *space, const cut_t *cut)
{
    for (size_t i = 0; i < SLICES; i++) {
        slice_t *slice = &space->slices[i];
        if (slice->upto != 0 && slice->after_seq == cut->after_seq &&
            slice->durable_seq == cut->durable_seq &&
            memcmp (slice->digest, cut->filter->digest, sizeof (slice->digest)) == 0)
            return slice;
    }
    return NULL;
}

static void slice_keep (space_t *space, const cut_t *cut, buf_t *list)
{
    slice_t *slice = &space->slices[space->slice_next++ % SLICES];
    buf_drop (slice->list);
    *slice = (slice_t){.after_seq = cut->after_seq,
                       .upto = cut->upto,
                       .durable_seq = cut->durable_seq,
                       .count = cut->count,
                       .list = buf_keep (list)};
    memcpy (slice->digest, cut->filter->digest, sizeof (slice->digest));
}

/* The list of a finished cut; NULL when nothing matched. */
static buf_t *cut_list (cut_t *cut)
{
    if (cut->whole != NULL)
        return cut->whole;
    if (cut->count == 0)
        return NULL;
    assert (!cut->list.failed);
    buf_t *list = buf_new (cut->list.data, cut->list.length);
    bytes_free (&cut->list);
    return list;
}

bool ring_holds (const space_t *space, uint64_t seq)
{
    return ring_find (space, seq) != NULL;
}

buf_t *cut_from_ring (space_t *space, cut_t *cut)
{
    const slice_t *slice = slice_find (space, cut);
    if (slice != NULL && buf_length (slice->list) <= cut->budget) {
        cut->count = slice->count;
        cut->upto = slice->upto;
        return buf_keep (slice->list);
    }
    cut_ring (space, ring_find (space, cut->after_seq + 1), cut);
    buf_t *list = cut_list (cut);
    if (cut->upto > cut->after_seq) /* a full window cuts nothing, which says nothing to others */
        slice_keep (space, cut, list);
    return list;
}

buf_t *cut_from_page (const event_block_t *page, size_t count, cut_t *cut)
{
    for (size_t i = 0; i < count && !cut->full; i++)
        if (page[i].first_seq + page[i].count - 1 > cut->upto)
            cut_block (cut, page[i].first_seq, page[i].count, page[i].list);
    return cut_list (cut);
}
