/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A flow of one stream: it catches up by it, and then reads a hub, if there is room for one. */
#include <stdlib.h>

#include "events/items.h"
#include "events/key.h"
#include "events/stream_parts.h"

enum {
    ROUND = 256,                 /* items of a flow in a turn; then others */
    OWN_BUFFER_BYTES = 64 * 1024 /* of a flow of one stream: what its client does not take yet */
};

void stream_end_catching (stream_t *self)
{
    if (!self->catching)
        return;
    self->catching = false;
    self->all->catching--;
    self->exchange->account->held[HOLD_CATCHING]--;
}

static void begin_catching (stream_t *self)
{
    if (self->catching)
        return;
    self->catching = true;
    self->all->catching++;
    self->exchange->account->held[HOLD_CATCHING]++;
}

static bool may_catch_up (const stream_t *self)
{
    return self->all->catching < STREAM_CATCHING_MAX &&
           self->exchange->account->held[HOLD_CATCHING] < STREAM_CATCHING_OWN_MAX;
}

/* It has caught up: a reader of the hub from here on. Where there are too many of them, or the
 * hub is elsewhere, it keeps its flow. */
static void settle (stream_t *self)
{
    uint64_t at;
    stream_end_catching (self);
    hub_t *hub = hub_find (self->all, self);
    if (hub == NULL)
        hub = hub_make (self);
    if (hub == NULL || !ring_find (&hub->ring, self->generation, self->seq, &at)) {
        flow_again (self->flow);
    } else {
        flow_free (&self->flow);
        hub_join (hub, self, at);
        hub_serve (self);
    }
}

/* Sends what was rendered last. */
static step_t send_piece (stream_t *self)
{
    if (self->piece.length == 0)
        return STEP_MORE;
    if (!self->exchange->write (self->exchange, self->piece.data, self->piece.length)) {
        self->blocked = true;
        return STEP_WAIT;
    }
    stream_went_out (self, &self->about);
    bytes_clear (&self->piece);
    if (!stream_is_end (self, &self->about))
        return STEP_MORE;
    self->exchange->finish (self->exchange);
    return STEP_GONE;
}

static void take_item (stream_t *self, const tmq_event_t *event)
{
    char cursor[CURSOR_SIZE];
    if (event->item == TMQ_ITEM_NOTICE && !self->options.notices)
        return;
    if (event->item != TMQ_ITEM_LIVE) {
        self->all->gaps += event->item == TMQ_ITEM_GAP;
        item_write (&self->piece, &self->about, event, self->generation);
        /* The end of a task that has ended comes with an id, so that nobody asks for it anew. */
        if (event->item == TMQ_ITEM_SNAPSHOT && tmq_status_terminal (event->status))
            self->ends = true;
        if (event->item == TMQ_ITEM_SNAPSHOT_END && self->ends)
            self->about.flags |= RING_LAST;
        return;
    }
    if (flow_cursor (cursor, self->flow) &&
        cursor_read (cursor, &self->about.generation, &self->about.seq)) {
        self->generation = self->about.generation;
        self->seq = self->about.seq;
    }
    self->has_cursor = true;
    self->caught_up = true;
}

static step_t take_next (stream_t *self)
{
    tmq_event_t *event;
    tmq_error_t error;
    const step_t step = send_piece (self);
    if (step != STEP_MORE)
        return step;
    if (self->caught_up && !self->told_live && !stream_tell_live (self))
        return STEP_WAIT;
    if (self->catching && self->caught_up) {
        settle (self);
        return STEP_GONE;
    }
    const int code = flow_next (&event, self->flow, &error);
    if (code == TMQ_TIMEOUT)
        return STEP_WAIT;
    if (code != TMQ_OK) {
        stream_fail (self, code, &error);
        return STEP_GONE;
    }
    const bool good = stream_begin (self);
    if (good)
        take_item (self, event);
    tmq_event_free (event);
    if (good && self->piece.failed) {
        error = (tmq_error_t){.code = TMQ_NO_MEMORY};
        stream_fail (self, TMQ_NO_MEMORY, &error);
        return STEP_GONE;
    }
    return good ? STEP_MORE : STEP_GONE;
}

/* Who waits for its client lets others catch up meanwhile: all it costs is a full buffer. */
static void pause_catching (stream_t *self)
{
    self->paused = self->catching;
    stream_end_catching (self);
}

/* It does not wait for another turn, so there may be more for a while: not more than streams. */
void stream_catch_on (stream_t *self)
{
    if (self->paused)
        begin_catching (self);
    self->paused = false;
}

void stream_own_ready (void *context)
{
    stream_t *self = context;
    streams_t *all = self->all;
    step_t step = STEP_MORE;
    if (self->blocked)
        return;
    self->held = !stream_may_go_on (self);
    if (self->held)
        return;
    for (size_t i = 0; i < ROUND && step == STEP_MORE; i++)
        step = take_next (self);
    if (step != STEP_GONE)
        stream_pay (self);
    if (step == STEP_MORE)
        flow_again (self->flow);
    if (step == STEP_WAIT && self->blocked)
        pause_catching (self);
    streams_wake (all);
}

static void own_moved (void *context, bool up)
{
    stream_t *self = context;
    bytes_t text = BYTES_INIT;
    if (!self->began) {
        if (!up)
            stream_begin (self);
        return;
    }
    item_write_broker (&text, up);
    stream_write (self, &text); /* no promise: a client that does not read misses it */
}

static void wait_for_turn (stream_t *self)
{
    streams_t *all = self->all;
    self->stage = STAGE_WAITING;
    self->next = NULL;
    self->previous = all->last_waiting;
    if (all->last_waiting != NULL)
        all->last_waiting->next = self;
    else
        all->waiting = self;
    all->last_waiting = self;
    all->waiting_count++;
}

void stream_leave_waiting (stream_t *self)
{
    streams_t *all = self->all;
    if (self->previous != NULL)
        self->previous->next = self->next;
    else
        all->waiting = self->next;
    if (self->next != NULL)
        self->next->previous = self->previous;
    else
        all->last_waiting = self->previous;
    self->next = self->previous = NULL;
    all->waiting_count--;
}

void stream_catch_up (stream_t *self)
{
    tmq_subscription_options_t options;
    tmq_error_t error;
    char cursor[CURSOR_SIZE];
    link_numbers_t numbers;
    if (!may_catch_up (self)) {
        if (stream_begin (self))
            wait_for_turn (self);
        return;
    }
    tmq_subscription_options_init (&options);
    options.filter = self->options.filter;
    options.owner = self->options.owner;
    options.buffer_bytes_max = OWN_BUFFER_BYTES;
    cursor_write (cursor, self->generation, self->seq);
    if (self->has_cursor)
        options.cursor = cursor;
    else
        options.snapshot = self->options.snapshot;
    self->stage = STAGE_OWN;
    self->flow =
        flow_new (self->link, &options, (flow_taker_t){stream_own_ready, own_moved, self}, &error);
    if (self->flow == NULL) {
        stream_fail (self, error.code, &error);
        return;
    }
    begin_catching (self);
    link_count (self->link, &numbers);
    if (!numbers.up)
        stream_begin (self);
}

/* Whoever came first of those whose turn it may be. */
static stream_t *next_waiting (const streams_t *all)
{
    stream_t *at = all->catching < STREAM_CATCHING_MAX ? all->waiting : NULL;
    while (at != NULL && !may_catch_up (at))
        at = at->next;
    return at;
}

void streams_wake (streams_t *all)
{
    if (all->waking)
        return;
    all->waking = true;
    for (stream_t *next = next_waiting (all); next != NULL; next = next_waiting (all)) {
        stream_leave_waiting (next);
        stream_catch_up (next);
    }
    all->waking = false;
}
