/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "events/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/effort.h"
#include "events/items.h"
#include "events/key.h"
#include "http/sse.h"
#include "timestamp.h"

enum {
    ROUND = 256,                  /* items of a flow in a turn; then others */
    RUN_BYTES_MAX = 64 * 1024,    /* pieces that are written as one */
    OWN_BUFFER_BYTES = 64 * 1024, /* of a flow of one stream: what its client does not take yet */
    CURSOR_SIZE = 48
};

typedef enum stage {
    STAGE_WAITING, /* for its turn to catch up */
    STAGE_OWN,     /* with a flow of its own */
    STAGE_JOINED   /* a reader of a hub */
} stage_t;

struct stream {
    stream_t *next; /* in the hub's list, or of those that wait */
    stream_t *previous;
    streams_t *all;
    exchange_t *exchange;
    stream_options_t options;
    void *kept; /* what the options point to */
    void (*kept_free) (void *kept);
    char *key;
    filter_use_t *filter;
    link_t *link;
    stage_t stage;
    bool began;     /* the answer */
    bool catching;  /* it has a turn to catch up */
    bool paused;    /* it gave its turn up until its client reads */
    bool caught_up; /* its flow has told so */
    bool blocked;   /* its client is owed as much as may be */
    bool held;      /* its principal has spent what may be */
    flow_t *flow;
    uint64_t generation; /* of what was sent last, or of the cursor to begin with */
    uint64_t seq;
    bool has_cursor;
    bool ends;     /* the snapshot showed a task that has ended */
    bytes_t piece; /* of its flow, and not sent yet */
    ring_piece_t about;
    hub_t *hub;
    uint64_t at; /* in the hub's ring */
    uint64_t live_at;
    bool told_live;
};

struct hub {
    hub_t *next;
    streams_t *all;
    char *key;
    link_t *link;
    flow_t *flow;
    ring_t ring;
    stream_t *readers;
    bool busy; /* with its readers: it is freed behind that */
    bool held; /* all its readers have spent what may be */
};

static void pump (stream_t *self);
static void pump_readers (hub_t *hub);
static void open_flow (stream_t *self);
static void wake_waiting (streams_t *all);

/* What it costs. A hub computes for all its readers, so each of them pays a part. Who has spent
 * what may be waits by himself, and the others go on. */

static bool may_go_on (const stream_t *self)
{
    return self->options.may (self->exchange);
}

static void charge (const stream_t *self)
{
    self->options.spent (self->exchange, (double) effort_take ());
}

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
    while (at != NULL && !may_go_on (at))
        at = at->next;
    return at != NULL;
}

/* What a stream writes. */

/* False: it has ended. */
static bool begin (stream_t *self)
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

static bool write_text (const stream_t *self, bytes_t *text)
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
    if (!begin (self))
        return;
    item_write_stop (&text);
    write_text (self, &text);
    exchange->finish (exchange);
}

/* The broker has refused it, or its flow: it ends. */
static void fail (stream_t *self, int code, const tmq_error_t *error)
{
    bytes_t text = BYTES_INIT;
    if (!self->began) {
        self->options.refuse (self->exchange, code, error);
        return;
    }
    item_write_refused (&text, code, error->text);
    write_text (self, &text);
    self->exchange->finish (self->exchange);
}

/* Hubs. */

static hub_t *find_hub (const streams_t *all, const stream_t *stream)
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

static void leave_hub (hub_t *hub, stream_t *self)
{
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
        leave_hub (self, stream);
        stream->stage = STAGE_OWN;
        fail (stream, code, error);
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
        tmq_error_t error;
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
    stream_t *next;
    const bool was_busy = self->busy;
    self->busy = true;
    for (stream_t *at = self->readers; at != NULL; at = next) {
        next = at->next;
        at->held = !may_go_on (at);
        if (!at->held)
            pump (at);
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

static bool is_numbered (const ring_piece_t *piece)
{
    return (piece->flags & (RING_NOTICE | RING_WORD)) == 0;
}

static void went_out (stream_t *self, const ring_piece_t *piece)
{
    self->all->events += (piece->flags & RING_WORD) == 0;
    if (!is_numbered (piece))
        return;
    self->generation = piece->generation;
    self->seq = piece->seq;
}

static bool is_end (const stream_t *self, const ring_piece_t *piece)
{
    return self->options.one_task && (piece->flags & RING_LAST) != 0;
}

/* Sends "live", once. False: there is no room. */
static bool tell_live (stream_t *self)
{
    bytes_t text = BYTES_INIT;
    char cursor[CURSOR_SIZE];
    cursor_write (cursor, self->generation, self->seq);
    item_write_live (&text, cursor);
    self->told_live = write_text (self, &text);
    self->blocked = !self->told_live;
    return self->told_live;
}

typedef enum step { STEP_MORE, STEP_WAIT, STEP_GONE } step_t;

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
        ends = is_end (self, piece);
        piece = ring_piece (ring, ++end, &data, &length);
        if (end == self->live_at && !self->told_live)
            break;
    }
    if (!self->exchange->write (self->exchange, first, run)) {
        self->blocked = true;
        return STEP_WAIT;
    }
    if (!self->hub->busy)
        charge (self);
    for (; self->at < end; self->at++)
        went_out (self, ring_piece (ring, self->at, &data, &length));
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
    if (!self->told_live && self->at >= self->live_at && !tell_live (self))
        return STEP_WAIT;
    const ring_piece_t *piece = ring_piece (ring, self->at, &data, &length);
    if (piece == NULL) {
        if (self->at >= ring->first)
            return STEP_WAIT;
        /* The ring has moved past it: from its cursor on by itself. */
        leave_hub (self->hub, self);
        self->caught_up = false;
        open_flow (self);
        return STEP_GONE;
    }
    if (is_wanted (self, piece))
        return send_run (self);
    self->at++;
    return STEP_MORE;
}

static void pump (stream_t *self)
{
    while (!self->blocked && read_ring (self) == STEP_MORE)
        ;
}

static void join (stream_t *self, hub_t *hub, uint64_t at)
{
    self->stage = STAGE_JOINED;
    self->hub = hub;
    self->at = at;
    self->next = hub->readers;
    self->previous = NULL;
    if (self->next != NULL)
        self->next->previous = self;
    hub->readers = self;
}

/* A flow of one stream. */

static void end_catching (stream_t *self)
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

static hub_t *make_hub (stream_t *self)
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

/* It has caught up: a reader of the hub from here on. Where there are too many of them, or the
 * hub is elsewhere, it keeps its flow. */
static void settle (stream_t *self)
{
    uint64_t at;
    end_catching (self);
    hub_t *hub = find_hub (self->all, self);
    if (hub == NULL)
        hub = make_hub (self);
    if (hub == NULL || !ring_find (&hub->ring, self->generation, self->seq, &at)) {
        flow_again (self->flow);
    } else {
        flow_free (&self->flow);
        join (self, hub, at);
        pump (self);
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
    went_out (self, &self->about);
    bytes_clear (&self->piece);
    if (!is_end (self, &self->about))
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
    if (self->caught_up && !self->told_live && !tell_live (self))
        return STEP_WAIT;
    if (self->catching && self->caught_up) {
        settle (self);
        return STEP_GONE;
    }
    const int code = flow_next (&event, self->flow, &error);
    if (code == TMQ_TIMEOUT)
        return STEP_WAIT;
    if (code != TMQ_OK) {
        fail (self, code, &error);
        return STEP_GONE;
    }
    const bool good = begin (self);
    if (good)
        take_item (self, event);
    tmq_event_free (event);
    if (good && self->piece.failed) {
        error = (tmq_error_t){.code = TMQ_NO_MEMORY};
        fail (self, TMQ_NO_MEMORY, &error);
        return STEP_GONE;
    }
    return good ? STEP_MORE : STEP_GONE;
}

/* Who waits for its client lets others catch up meanwhile: all it costs is a full buffer. */
static void pause_catching (stream_t *self)
{
    self->paused = self->catching;
    end_catching (self);
}

/* It does not wait for another turn, so there may be more for a while: not more than streams. */
static void catch_on (stream_t *self)
{
    if (self->paused)
        begin_catching (self);
    self->paused = false;
}

static void own_ready (void *context)
{
    stream_t *self = context;
    streams_t *all = self->all;
    step_t step = STEP_MORE;
    if (self->blocked)
        return;
    self->held = !may_go_on (self);
    if (self->held)
        return;
    for (size_t i = 0; i < ROUND && step == STEP_MORE; i++)
        step = take_next (self);
    if (step != STEP_GONE)
        charge (self);
    if (step == STEP_MORE)
        flow_again (self->flow);
    if (step == STEP_WAIT && self->blocked)
        pause_catching (self);
    wake_waiting (all);
}

static void own_moved (void *context, bool up)
{
    stream_t *self = context;
    bytes_t text = BYTES_INIT;
    if (!self->began) {
        if (!up)
            begin (self);
        return;
    }
    item_write_broker (&text, up);
    write_text (self, &text); /* no promise: a client that does not read misses it */
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

static void leave_waiting (stream_t *self)
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

/* May end the stream. */
static void open_flow (stream_t *self)
{
    tmq_subscription_options_t options;
    tmq_error_t error;
    char cursor[CURSOR_SIZE];
    link_numbers_t numbers;
    if (!may_catch_up (self)) {
        if (begin (self))
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
        flow_new (self->link, &options, (flow_taker_t){own_ready, own_moved, self}, &error);
    if (self->flow == NULL) {
        fail (self, error.code, &error);
        return;
    }
    begin_catching (self);
    link_count (self->link, &numbers);
    if (!numbers.up)
        begin (self);
}

/* Whoever came first of those whose turn it may be. */
static stream_t *next_waiting (const streams_t *all)
{
    stream_t *at = all->catching < STREAM_CATCHING_MAX ? all->waiting : NULL;
    while (at != NULL && !may_catch_up (at))
        at = at->next;
    return at;
}

static void wake_waiting (streams_t *all)
{
    if (all->waking)
        return;
    all->waking = true;
    for (stream_t *next = next_waiting (all); next != NULL; next = next_waiting (all)) {
        leave_waiting (next);
        open_flow (next);
    }
    all->waking = false;
}

/* What an exchange tells. */

static void has_room (exchange_t *exchange)
{
    stream_t *self = exchange->state;
    self->blocked = false;
    catch_on (self);
    if (self->stage == STAGE_OWN) {
        own_ready (self);
    } else if (self->stage == STAGE_JOINED) {
        self->held = !may_go_on (self);
        if (!self->held)
            pump (self);
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
    write_text (self, &text);
}

static void stream_free (void *state)
{
    stream_t *self = state;
    streams_t *all = self->all;
    if (self->hub != NULL)
        leave_hub (self->hub, self);
    else if (self->stage == STAGE_WAITING)
        leave_waiting (self);
    end_catching (self);
    flow_free (&self->flow);
    bytes_free (&self->piece);
    if (self->kept_free != NULL)
        self->kept_free (self->kept);
    filters_give (&all->filters, &self->filter);
    free (self->key);
    free (self);
    wake_waiting (all);
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
    hub_t *hub = self->has_cursor ? find_hub (self->all, self) : NULL;
    return hub != NULL && !is_ahead (self, hub) &&
                   ring_find (&hub->ring, self->generation, self->seq, at)
               ? hub
               : NULL;
}

/* Its beginning may end another stream, and with that one the hub. */
static void join_or_catch_up (stream_t *self)
{
    uint64_t at;
    if (find_place (self, &at) != NULL && !begin (self))
        return;
    hub_t *hub = find_place (self, &at);
    if (hub == NULL) {
        open_flow (self);
        return;
    }
    self->live_at = ring_end (&hub->ring);
    join (self, hub, at);
    pump (self);
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
