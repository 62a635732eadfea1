/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a stream costs and writes, and what its exchange tells. */
#include <stdlib.h>
#include <string.h>

#include "base/effort.h"
#include "events/items.h"
#include "events/key.h"
#include "events/stream_parts.h"
#include "http/sse.h"

/* What it costs. */

bool stream_may_go_on (const stream_t *self)
{
    return self->options.may (self->exchange);
}

void stream_pay (const stream_t *self)
{
    self->options.spent (self->exchange, (double) effort_take ());
}

/* What a stream writes. */

bool stream_begin (stream_t *self)
{
    response_t response;
    link_numbers_t numbers;
    if (self->began)
        return true;
    self->began = true;
    response_init (&response, 200);
    sse_write_retry (&response.body, STREAM_RETRY_MS);
    link_count (self->link, &numbers);
    if (!numbers.up)
        item_write_broker (&response.body, false);
    return self->options.begin (self->exchange, &response);
}

bool stream_write (const stream_t *self, bytes_t *text)
{
    const bool good =
        !text->failed && self->exchange->write (self->exchange, text->data, text->length);
    bytes_free (text);
    return good;
}

static void stop (exchange_t *exchange)
{
    stream_t *self = exchange->state;
    bytes_t text = BYTES_INIT;
    if (!stream_begin (self))
        return;
    item_write_stop (&text);
    stream_write (self, &text);
    exchange->finish (exchange);
}

void stream_fail (stream_t *self, int code, const tmq_error_t *error)
{
    bytes_t text = BYTES_INIT;
    if (!self->began) {
        self->options.refuse (self->exchange, code, error);
        return;
    }
    item_write_refused (&text, code, error->text);
    stream_write (self, &text);
    self->exchange->finish (self->exchange);
}

static bool is_numbered (const ring_piece_t *piece)
{
    return (piece->flags & (RING_NOTICE | RING_WORD)) == 0;
}

void stream_went_out (stream_t *self, const ring_piece_t *piece)
{
    self->all->events += (piece->flags & RING_WORD) == 0;
    if (!is_numbered (piece))
        return;
    self->generation = piece->generation;
    self->seq = piece->seq;
}

bool stream_is_end (const stream_t *self, const ring_piece_t *piece)
{
    return self->options.one_task && (piece->flags & RING_LAST) != 0;
}

bool stream_tell_live (stream_t *self)
{
    bytes_t text = BYTES_INIT;
    char cursor[CURSOR_SIZE];
    cursor_write (cursor, self->generation, self->seq);
    item_write_live (&text, cursor);
    self->told_live = stream_write (self, &text);
    self->blocked = !self->told_live;
    return self->told_live;
}

/* What an exchange tells. */

static void has_room (exchange_t *exchange)
{
    stream_t *self = exchange->state;
    self->blocked = false;
    stream_catch_on (self);
    if (self->stage == STAGE_OWN) {
        stream_own_ready (self);
    } else if (self->stage == STAGE_JOINED) {
        self->held = !stream_may_go_on (self);
        if (!self->held)
            hub_serve (self);
    }
}

static void tick (exchange_t *exchange)
{
    stream_t *self = exchange->state;
    if (self->stage == STAGE_OWN && self->held)
        flow_again (self->flow);
    else if (self->stage == STAGE_JOINED && (self->held || self->hub->held))
        flow_again (self->hub->flow);
}

/* A stream that says nothing moves on all the same: its reader is told how far. */
static void is_quiet (exchange_t *exchange)
{
    stream_t *self = exchange->state;
    char cursor[CURSOR_SIZE];
    bytes_t text = BYTES_INIT;
    flow_t *flow = self->stage == STAGE_JOINED ? self->hub->flow : self->flow;
    const bool all_sent = self->stage == STAGE_JOINED ? self->at >= ring_end (&self->hub->ring)
                                                      : self->caught_up && self->piece.length == 0;
    bytes_append_text (&text, SSE_PING);
    if (flow != NULL && all_sent && self->told_live && flow_cursor (cursor, flow) &&
        cursor_read (cursor, &self->generation, &self->seq))
        sse_write (&text, &(sse_event_t){.id = cursor});
    stream_write (self, &text);
}

static void stream_free (void *state)
{
    stream_t *self = state;
    streams_t *all = self->all;
    if (self->hub != NULL)
        hub_leave (self->hub, self);
    else if (self->stage == STAGE_WAITING)
        stream_leave_waiting (self);
    stream_end_catching (self);
    flow_free (&self->flow);
    bytes_free (&self->piece);
    if (self->kept_free != NULL)
        self->kept_free (self->kept);
    filters_give (&all->filters, &self->filter);
    free (self->key);
    free (self);
    streams_wake (all);
}

/* A cursor that the hub has not come to yet may be one that will never come: the broker knows. */
static bool is_ahead (const stream_t *self, const hub_t *hub)
{
    char cursor[CURSOR_SIZE];
    uint64_t generation, seq;
    return !flow_cursor (cursor, hub->flow) || !cursor_read (cursor, &generation, &seq) ||
           generation != self->generation || seq < self->seq;
}

/* Where it goes on in a hub that has its cursor. NULL: there is no such hub. */
static hub_t *find_place (const stream_t *self, uint64_t *at)
{
    hub_t *hub = self->has_cursor ? hub_find (self->all, self) : NULL;
    return hub != NULL && !is_ahead (self, hub) &&
                   ring_find (&hub->ring, self->generation, self->seq, at)
               ? hub
               : NULL;
}

/* Its beginning may end another stream, and with that one the hub. */
static void join_or_catch_up (stream_t *self)
{
    uint64_t at;
    if (find_place (self, &at) != NULL && !stream_begin (self))
        return;
    hub_t *hub = find_place (self, &at);
    if (hub == NULL) {
        stream_catch_up (self);
        return;
    }
    self->live_at = ring_end (&hub->ring);
    hub_join (hub, self, at);
    hub_serve (self);
}

static void become_state (stream_t *self)
{
    exchange_t *exchange = self->exchange;
    self->kept = exchange->state;
    self->kept_free = exchange->state_free;
    exchange->state = self;
    exchange->state_free = stream_free;
    exchange->on_room = has_room;
    exchange->on_quiet = is_quiet;
    exchange->on_tick = tick;
    exchange->on_stop = stop;
}

stream_opening_t stream_open (streams_t *all, exchange_t *exchange, const stream_options_t *options)
{
    bool full = false;
    stream_t *self = calloc (1, sizeof *self);
    if (self != NULL)
        self->key = filter_key (&options->filter, options->owner);
    if (self != NULL && self->key != NULL)
        self->filter = filters_take (&all->filters, exchange->account, exchange->link, self->key,
                                     options->filters_max, &full);
    if (self == NULL || self->filter == NULL) {
        if (self != NULL)
            free (self->key);
        free (self);
        return full ? STREAM_NO_FILTER : STREAM_NO_MEMORY;
    }
    self->all = all;
    self->exchange = exchange;
    self->options = *options;
    self->link = exchange->link;
    self->stage = STAGE_OWN;
    self->has_cursor =
        options->cursor != NULL && cursor_read (options->cursor, &self->generation, &self->seq);
    become_state (self);
    join_or_catch_up (self);
    return STREAM_OPENED;
}
