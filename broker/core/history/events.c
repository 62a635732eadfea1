/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbering of events, and the open batch's blocks. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/history/history.h"
#include "core/history/ring.h"

/* Life. */

void history_init (history_t *self, base_t *base)
{
    *self = (history_t){.base = base};
    list_init (&self->opened);
    list_init (&self->ring);
}

void history_boot (history_t *self, const boot_t *boot)
{
    self->generation = boot->generation;
    self->epoch = boot->epoch;
    self->last_pos = boot->last_pos; /* behind a reset, too: what was dropped has no place */
}

void history_reset (history_t *self)
{
    ring_clear (self);
    list_init (&self->opened);
    self->logs_used = 0;
}

void event_log_init (event_log_t *self, const char *name, uint64_t floor_seq)
{
    *self = (event_log_t){
        .name = name, .base_seq = floor_seq, .last_seq = floor_seq, .durable_seq = floor_seq};
    list_init (&self->blocks);
}

void event_log_clear (event_log_t *self)
{
    bytes_free (&self->open);
}

void history_restore (history_t *self, event_log_t *log, uint64_t last_seq)
{
    if (last_seq == 0)
        return;
    log->base_seq = 0;
    log->last_seq = log->durable_seq = last_seq;
    self->logs_used++;
}

bool event_log_is_used (const event_log_t *self)
{
    return self->last_seq > self->base_seq;
}

void history_raise_floor (history_t *self, uint64_t seq)
{
    if (self->floor_seq < seq)
        self->floor_seq = seq;
}

void history_forget (history_t *self, event_log_t *log, uint64_t upto_seq)
{
    history_raise_floor (self, upto_seq);
    if (!event_log_is_used (log) || log->last_seq != upto_seq)
        return; /* it has gone on meanwhile */
    log->base_seq = upto_seq;
    self->logs_used--;
    ring_forget (self, log);
}

/* Events. */

void history_add (history_t *self, event_log_t *log, event_t *event)
{
    if (!event_log_is_used (log))
        self->logs_used++;
    event->seq = ++log->last_seq;
    event->at = self->base->clocks.wall_ms;
    if (log->open_count++ == 0)
        list_push_back (&self->opened, &log->opened);
    log->open_mixed = log->open_mixed || event->subject != TMQ_SUBJECT_NONE;
    pack_event (&log->open, event);
    self->base->counts.events++;
}

void history_close (history_t *self, batch_t *batch)
{
    size_t capacity = 0;
    for (node_t *node = list_pop_front (&self->opened); node != NULL;
         node = list_pop_front (&self->opened)) {
        event_log_t *log = LIST_ITEM (node, event_log_t, opened);
        batch->blocks =
            memory_grow (batch->blocks, &capacity, batch->blocks_count, sizeof (*batch->blocks));
        event_block_t *block = &batch->blocks[batch->blocks_count++];
        *block = (event_block_t){.ns = memory_text (log->name),
                                 .first_seq = log->last_seq - log->open_count + 1,
                                 .first_pos = self->last_pos + 1,
                                 .count = log->open_count,
                                 .mixed = log->open_mixed,
                                 .list = buf_new (log->open.data, log->open.length)};
        self->last_pos += block->count;
        batch->bytes += log->open.length;
        ring_add (self, log, batch->no, block);
        bytes_clear (&log->open);
        log->open_count = 0;
        log->open_mixed = false;
    }
}
