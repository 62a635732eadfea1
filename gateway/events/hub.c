/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Hubs, and those who read them. */
#include <stdlib.h>
#include <string.h>

#include "base/effort.h"
#include "events/items.h"
#include "events/key.h"
#include "events/stream_parts.h"
#include "timestamp.h"

enum {
    ROUND = 256,              /* items of a flow in a turn; then others */
    RUN_BYTES_MAX = 64 * 1024 /* pieces that are written as one */
};

static void pump_readers (hub_t *hub);

/* A hub computes for all its readers, so each of them pays a part. */
static void charge_readers (const hub_t *hub)
{
    size_t count = 0;
    const double us = (double) effort_take ();
    for (const stream_t *at = hub->readers; at != NULL; at = at->next)
        count++;
    for (const stream_t *at = hub->readers; at != NULL; at = at->next)
        at->options.spent (at->exchange, us / (double) count);
}

static bool some_may_go_on (const hub_t *hub)
{
    const stream_t *at = hub->readers;
    while (at != NULL && !stream_may_go_on (at))
        at = at->next;
    return at != NULL;
}

hub_t *hub_find (const streams_t *all, const stream_t *stream)
{
    for (hub_t *hub = all->hubs; hub != NULL; hub = hub->next)
        if (hub->link == stream->link && strcmp (hub->key, stream->key) == 0)
            return hub;
    return NULL;
}

static void hub_free (hub_t *self)
{
    hub_t **at = &self->all->hubs;
    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    self->all->hubs_count--;
    flow_free (&self->flow);
    ring_clear (&self->ring);
    free (self->key);
    free (self);
}

void hub_leave (hub_t *hub, stream_t *self)
{
    if (hub->walk == self)
        hub->walk = self->next;
    if (self->next != NULL)
        self->next->previous = self->previous;
    if (self->previous != NULL)
        self->previous->next = self->next;
    else
        hub->readers = self->next;
    self->next = self->previous = NULL;
    self->hub = NULL;
    if (hub->readers == NULL && !hub->busy)
        hub_free (hub);
}

static void hub_end (hub_t *self, int code, const tmq_error_t *error)
{
    self->busy = true;
    while (self->readers != NULL) {
        stream_t *stream = self->readers;
        hub_leave (self, stream);
        stream->stage = STAGE_OWN;
        stream_fail (stream, code, error);
    }
    hub_free (self);
}

static bool hub_add (hub_t *self, const ring_piece_t *piece, bytes_t *text)
{
    const bool good = !text->failed && ring_add (&self->ring, piece, text->data, text->length);
    bytes_free (text);
    return good;
}

/* The clocks of two machines may differ: what comes from the future is not late. */
static void note_item (streams_t *all, const tmq_event_t *event)
{
    const uint64_t now_ms = (uint64_t) clock_ms (CLOCK_REALTIME);
    all->gaps += event->item == TMQ_ITEM_GAP;
    if (event->item == TMQ_ITEM_EVENT)
        all->lag_ms = now_ms > event->at ? now_ms - event->at : 0;
}

/* Items that the flow has, some of them. False: the hub has ended. */
static bool hub_take (hub_t *self)
{
    for (size_t i = 0; i < ROUND; i++) {
        bytes_t text = BYTES_INIT;
        ring_piece_t piece;
        tmq_event_t *event;
        tmq_error_t error = {.code = TMQ_NO_MEMORY};
        int code = flow_next (&event, self->flow, &error);
        if (code == TMQ_TIMEOUT)
            return true;
        if (code == TMQ_OK) {
            if (event->item != TMQ_ITEM_LIVE) {
                note_item (self->all, event);
                item_write (&text, &piece, event, self->ring.generation);
                code = hub_add (self, &piece, &text) ? TMQ_OK : TMQ_NO_MEMORY;
            }
            tmq_event_free (event);
        }
        if (code != TMQ_OK) {
            hub_end (self, code, &error);
            return false;
        }
    }
    flow_again (self->flow);
    return true;
}

static void hub_ready (void *context)
{
    hub_t *self = context;
    size_t bytes_max = STREAM_RINGS_BYTES_MAX / self->all->hubs_count;
    if (bytes_max > STREAM_RING_BYTES_MAX)
        bytes_max = STREAM_RING_BYTES_MAX;
    self->held = !some_may_go_on (self);
    if (self->held || !hub_take (self))
        return;
    ring_trim (&self->ring, bytes_max);
    pump_readers (self);
}

static void hub_moved (void *context, bool up)
{
    hub_t *self = context;
    bytes_t text = BYTES_INIT;
    const uint64_t end = ring_end (&self->ring);
    const uint8_t *data;
    size_t length;
    const ring_piece_t *last = end > 0 ? ring_piece (&self->ring, end - 1, &data, &length) : NULL;
    const ring_piece_t piece = {.seq = last != NULL ? last->seq : self->ring.floor_seq,
                                .generation = self->ring.generation,
                                .flags = RING_WORD};
    item_write_broker (&text, up);
    hub_add (self, &piece, &text);
    pump_readers (self);
}

static void pump_readers (hub_t *self)
{
    const bool was_busy = self->busy;
    self->busy = true;
    for (stream_t *at = self->readers; at != NULL; at = self->walk) {
        self->walk = at->next;
        at->held = !stream_may_go_on (at);
        if (!at->held)
            hub_serve (at);
    }
    charge_readers (self);
    self->busy = was_busy;
    if (self->readers == NULL && !self->busy)
        hub_free (self);
}

/* A reader of a hub. */

static bool is_wanted (const stream_t *self, const ring_piece_t *piece)
{
    if ((piece->flags & RING_NOTICE) != 0)
        return self->options.notices;
    return (piece->flags & RING_WORD) != 0 || piece->generation != self->generation ||
           piece->seq > self->seq;
}

/* Pieces that stand side by side, as one write. */
static step_t send_run (stream_t *self)
{
    const ring_t *ring = &self->hub->ring;
    const uint8_t *data, *first;
    size_t length, run = 0;
    bool ends = false;
    const ring_piece_t *piece = ring_piece (ring, self->at, &first, &length);
    uint64_t end = self->at;
    while (piece != NULL && is_wanted (self, piece) && !ends &&
           (run == 0 || run + length <= RUN_BYTES_MAX)) {
        run += length;
        ends = stream_is_end (self, piece);
        piece = ring_piece (ring, ++end, &data, &length);
        if (end == self->live_at && !self->told_live)
            break;
    }
    if (!self->exchange->write (self->exchange, first, run)) {
        self->blocked = true;
        return STEP_WAIT;
    }
    if (!self->hub->busy)
        stream_pay (self);
    for (; self->at < end; self->at++)
        stream_went_out (self, ring_piece (ring, self->at, &data, &length));
    if (!ends)
        return STEP_MORE;
    self->exchange->finish (self->exchange);
    return STEP_GONE;
}

static step_t read_ring (stream_t *self)
{
    const ring_t *ring = &self->hub->ring;
    const uint8_t *data;
    size_t length;
    if (!self->told_live && self->at >= self->live_at && !stream_tell_live (self))
        return STEP_WAIT;
    const ring_piece_t *piece = ring_piece (ring, self->at, &data, &length);
    if (piece == NULL) {
        if (self->at >= ring->first)
            return STEP_WAIT;
        /* The ring has moved past it: from its cursor on by itself. */
        hub_leave (self->hub, self);
        self->caught_up = false;
        stream_catch_up (self);
        return STEP_GONE;
    }
    if (is_wanted (self, piece))
        return send_run (self);
    self->at++;
    return STEP_MORE;
}

void hub_serve (stream_t *self)
{
    while (!self->blocked && read_ring (self) == STEP_MORE)
        ;
}

void hub_join (hub_t *self, stream_t *stream, uint64_t at)
{
    stream->stage = STAGE_JOINED;
    stream->hub = self;
    stream->at = at;
    stream->next = self->readers;
    stream->previous = NULL;
    if (stream->next != NULL)
        stream->next->previous = stream;
    self->readers = stream;
}

hub_t *hub_make (stream_t *self)
{
    streams_t *all = self->all;
    hub_t *hub = all->hubs_count < STREAM_HUBS_MAX ? calloc (1, sizeof *hub) : NULL;
    if (hub == NULL || (hub->key = strdup (self->key)) == NULL) {
        free (hub);
        return NULL;
    }
    hub->all = all;
    hub->link = self->link;
    hub->flow = self->flow;
    self->flow = NULL;
    ring_begin (&hub->ring, self->generation, self->seq);
    hub->next = all->hubs;
    all->hubs = hub;
    all->hubs_count++;
    flow_give (hub->flow, (flow_taker_t){hub_ready, hub_moved, hub});
    flow_again (hub->flow);
    return hub;
}
