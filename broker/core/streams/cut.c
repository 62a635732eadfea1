/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Cutting messages out of events. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/streams/cut.h"
#include "core/wire/scan.h"

enum { WHOLE_BLOCK_BYTES = 4096 }; /* from here on a block is worth a message without a copy */

/* Walks one block from the cursor on. */
static void cut_block (cut_t *cut, uint64_t first_seq, uint32_t count, bool mixed, buf_t *list)
{
    const uint8_t *at = buf_bytes (list);
    const uint8_t *end = at + buf_length (list);
    if (cut->hint.first_seq == first_seq)
        at += cut->hint.offset;
    uint64_t last = first_seq + count - 1;
    bool whole = cut->filter->everything && !mixed && cut->count == 0 &&
                 cut->upto + 1 == first_seq && last <= cut->stop_seq &&
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

static void cut_ring (const event_log_t *log, ring_block_t *block, cut_t *cut)
{
    for (node_t *node = &block->in_log; node != &log->blocks && !cut->full; node = node->next) {
        block = LIST_ITEM (node, ring_block_t, in_log);
        if (block->first_seq > cut->durable_seq)
            break;
        cut_block (cut, block->first_seq, block->count, block->mixed, block->list);
    }
}

/* Subscribers with the same filter and cursor get the same bytes: cut once. */
static slice_t *slice_find (event_log_t *log, const cut_t *cut)
{
    for (size_t i = 0; i < SLICES; i++) {
        slice_t *slice = &log->audience->slices[i];
        if (slice->upto != 0 && slice->after_seq == cut->after_seq &&
            slice->durable_seq == cut->durable_seq &&
            memcmp (slice->digest, cut->filter->digest, sizeof (slice->digest)) == 0)
            return slice;
    }
    return NULL;
}

static void slice_keep (event_log_t *log, const cut_t *cut, buf_t *list)
{
    slice_t *slice = &log->audience->slices[log->audience->slice_next++ % SLICES];
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

buf_t *cut_from_ring (event_log_t *log, cut_t *cut)
{
    const slice_t *slice = slice_find (log, cut);
    if (slice != NULL && buf_length (slice->list) <= cut->budget) {
        cut->count = slice->count;
        cut->upto = slice->upto;
        return buf_keep (slice->list);
    }
    cut_ring (log, ring_find (log, cut->after_seq + 1), cut);
    buf_t *list = cut_list (cut);
    if (cut->upto > cut->after_seq) /* a full window cuts nothing, which says nothing to others */
        slice_keep (log, cut, list);
    return list;
}

buf_t *cut_from_page (const event_block_t *page, size_t count, cut_t *cut)
{
    for (size_t i = 0; i < count && !cut->full; i++)
        if (page[i].first_seq + page[i].count - 1 > cut->upto)
            cut_block (cut, page[i].first_seq, page[i].count, page[i].mixed, page[i].list);
    return cut_list (cut);
}
