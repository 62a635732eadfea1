/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: what a peer does wrong is answered to it and to nobody else; a store that cannot be read
 * ends the process. */
#include "intake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arena.h"
#include "codec.h"
#include "core/base/memory.h"
#include "exits.h"
#include "log/log.h"
#include "timestamp.h"
#include "validate.h"

enum {
    CLOCK_MESSAGES = 32,      /* messages of a drain between two looks at the clock */
    FULL_LOG_MS = 60000,      /* between two lines about newcomers without room */
    NEWCOMER_RETRY_MS = 1000, /* for newcomers without room */
    LINE_RETRY_MS = 100,      /* for messages without room in their line */
    SHARES = 4,               /* of a round: one message or line gets at most one in a turn */
    TURNS_MAX = 1024          /* messages of lines that one round looks at */
};

/* A message in its round. */
typedef struct intake_item {
    message_t message;
    verdicts_t verdicts;
    size_t at;           /* of its frames in the router, for one that arrived in this round */
    size_t bytes;        /* of its frames and their keeping */
    int64_t received_us; /* if slow requests are traced */
    size_t done;         /* requests that were handled, … */
    size_t upto;         /* … or may be in this round */
    entry_t *entry;      /* it waits in a line; NULL: not yet */
    line_t *line;        /* … in this one */
} intake_item_t;

struct intake {
    intake_options_t options;
    inbox_t inbox;
    arena_t *arena; /* of the messages of one round */
    intake_item_t
        *items; /* those that arrived, then those of lines, in the order of being handled */
    size_t arrived;
    size_t count;
    key_list_t keys;
    now_t now;
    size_t decoded_bytes; /* again, in this round */
    size_t taken;
    bool emptied;
    bool turned;       /* everybody had a message taken */
    bool moving;       /* some line may have its turn in the next round */
    bool stats_filled; /* in this round */
    bool missed;       /* the store was out of reach in this round */
    int64_t full_log_at;
    uint64_t refused_messages;
    uint64_t inbox_refused;
};

static void drop_message (void *message)
{
    router_drop (message);
}

intake_t *intake_new (const intake_options_t *options)
{
    intake_t *self = memory_zero (1, sizeof (*self));
    self->options = *options;
    self->items = memory_zero (options->drain_messages + TURNS_MAX, sizeof (intake_item_t));
    inbox_init (&self->inbox, &options->lines, drop_message);
    self->arena = arena_new (CODEC_CLIENT_ARENA_BYTES);
    if (self->arena == NULL)
        intake_free (&self);
    return self;
}

void intake_configure (intake_t *self, const inbox_limits_t *lines)
{
    self->options.lines = *lines;
    self->inbox.limits = *lines;
}

void intake_free (intake_t **self_p)
{
    intake_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    inbox_clear (&self->inbox);
    arena_free (self->arena);
    free (self->keys.keys);
    free (self->items);
    free (self);
}

/* Judging. */

/* The table of connections is full of others. */
static void refuse_newcomer (intake_t *self, peer_t peer, const Taskmq__ClientMessage *envelope)
{
    char text[96];
    self->refused_messages++;
    snprintf (text, sizeof (text), "the broker has as many connections as it may have (%zu)",
              self->options.peers_max);
    for (size_t i = 0; i < envelope->n_requests; i++)
        engine_refuse (self->options.engine, peer, envelope->requests[i]->id, TMQ_LIMIT, text,
                       NEWCOMER_RETRY_MS);
    if (self->now.mono_ms < self->full_log_at)
        return;
    self->full_log_at = self->now.mono_ms + FULL_LOG_MS;
    log_write (LOG_LEVEL_WARNING, "LINKS-FULL",
               "newcomers are answered LIMIT: as many connections as limits/links allows",
               LOG_FIELDS (LOG_NUMBER ("connections", self->options.peers_max)));
}

/* The peer has too much waiting. */
static void refuse_surplus (intake_t *self, const intake_item_t *item)
{
    char text[128];
    const inbox_limits_t *limits = &self->options.lines;
    const Taskmq__ClientMessage *envelope = item->message.envelope;
    self->inbox_refused++;
    snprintf (text, sizeof (text),
              "too much of this client waits (at most %zu messages or %zu bytes, less while many "
              "wait)",
              limits->line_messages, limits->line_bytes);
    for (size_t i = 0; i < envelope->n_requests; i++)
        if (item->verdicts.requests[i].verdict.code == TMQ_OK)
            engine_refuse (self->options.engine, item->message.peer, envelope->requests[i]->id,
                           TMQ_OVERLOADED, text, LINE_RETRY_MS);
}

static int64_t stamp (const intake_t *self)
{
    return trace_is_on (self->options.trace) ? clock_us (CLOCK_MONOTONIC) : 0;
}

static size_t bytes_of (const incoming_t *incoming)
{
    return incoming->envelope_bytes + incoming->body_bytes + ROUTER_KEPT_BYTES;
}

/* Decodes a message; false when nothing of it may be applied, which has been answered. */
static bool decode (intake_t *self, intake_item_t *item, const incoming_t *incoming)
{
    arena_next_message (self->arena);
    const Taskmq__ClientMessage *envelope =
        validate_frames (&item->verdicts, self->arena, incoming->frames, incoming->envelope,
                         incoming->envelope_bytes, incoming->body_bytes);
    if (envelope == NULL) {
        self->refused_messages++;
        engine_refuse (self->options.engine, incoming->peer, 0, item->verdicts.message.code,
                       item->verdicts.message.text, 0);
        return false;
    }
    item->message = (message_t){.peer = incoming->peer,
                                .identity = incoming->identity,
                                .envelope = envelope,
                                .body = incoming->body,
                                .body_bytes = incoming->body_bytes,
                                .verdicts = &item->verdicts};
    item->at = incoming->at;
    item->bytes = bytes_of (incoming);
    item->received_us = stamp (self);
    item->done = 0;
    item->upto = 0;
    item->entry = NULL;
    return true;
}

static void want_stats (intake_t *self)
{
    if (!self->stats_filled)
        self->options.stats_wanted (self->options.context);
    self->stats_filled = true;
}

/* Answers what the validator refused; a message that is decoded again has been through this. */
static void judge (intake_t *self, const intake_item_t *item, bool again)
{
    const Taskmq__ClientMessage *envelope = item->message.envelope;
    for (size_t i = 0; i < envelope->n_requests; i++) {
        const Taskmq__Request *request = envelope->requests[i];
        const verdict_t *verdict = &item->verdicts.requests[i].verdict;
        if (verdict->code != TMQ_OK && !again)
            engine_refuse (self->options.engine, item->message.peer, request->id, verdict->code,
                           verdict->text, 0);
        else if (verdict->code == TMQ_OK && request->op_case == TASKMQ__REQUEST__OP_STATS)
            want_stats (self);
    }
}

/* Receiving. */

/* A message behind others of its peer. Returns how many requests were decoded. */
static size_t join (intake_t *self, const incoming_t *incoming)
{
    line_t *line = incoming->own;
    size_t bytes = bytes_of (incoming);
    if (inbox_has_room (&self->inbox, line, bytes)) {
        entry_t *entry =
            inbox_put (&self->inbox, line, router_keep (self->options.router, incoming->at), bytes);
        entry->received_us = stamp (self);
        return 1;
    }
    line->received = self->inbox.round;
    intake_item_t *item = &self->items[self->arrived];
    if (!decode (self, item, incoming))
        return 1;
    judge (self, item, false);
    refuse_surplus (self, item);
    return item->message.envelope->n_requests;
}

/* Keeps what the engine has to see of a message. Returns how many requests that is. */
static size_t admit (intake_t *self, const incoming_t *incoming)
{
    if (incoming->own != NULL)
        return join (self, incoming);
    intake_item_t *item = &self->items[self->arrived];
    if (!decode (self, item, incoming))
        return 1;
    if (incoming->refused) {
        refuse_newcomer (self, incoming->peer, item->message.envelope);
    } else {
        judge (self, item, false);
        self->arrived++;
    }
    return item->message.envelope->n_requests;
}

static bool took_too_long (const intake_t *self)
{
    return clock_ms (CLOCK_MONOTONIC) - self->now.mono_ms > self->options.drain_ms;
}

/* Takes what has arrived, within the limits of a drain. ZeroMQ takes one message from each
 * connection in turn: the second one of a peer with a long line tells that everybody had theirs. */
static void receive (intake_t *self)
{
    const intake_options_t *options = &self->options;
    incoming_t incoming;
    size_t bytes = 0;
    size_t requests = 0;
    if (self->inbox.lines > 0)
        router_refresh (options->router);
    while (!self->turned && self->taken < options->drain_messages && bytes < options->drain_bytes &&
           requests < options->drain_requests && !inbox_is_full (&self->inbox)) {
        if (!router_receive (options->router, self->now.mono_ms, &incoming)) {
            self->emptied = true;
            break;
        }
        self->turned = incoming.own != NULL && inbox_is_greedy (&self->inbox, incoming.own);
        if (incoming.peer != 0)
            requests += admit (self, &incoming);
        bytes += incoming.envelope_bytes + incoming.body_bytes;
        self->taken++;
        if (self->taken % CLOCK_MESSAGES == 0 && took_too_long (self))
            break;
    }
}

/* Planning: what of it this round may do. */

/* Lets the engine take as much of a message as the share allows; false when some of it is left. */
static bool plan (intake_t *self, intake_item_t *item)
{
    item->upto = engine_want (self->options.engine, &item->message, item->upto, &self->keys);
    return item->upto == item->message.envelope->n_requests;
}

/* The peer may be forgotten while it has a line. */
static line_t *line_of (const intake_t *self, peer_t peer)
{
    if (self->inbox.lines == 0)
        return NULL;
    void **own = router_own (self->options.router, peer);
    return own != NULL ? *own : inbox_find (&self->inbox, peer);
}

static void set_line (const intake_t *self, peer_t peer, line_t *line)
{
    void **own = router_own (self->options.router, peer);
    if (own != NULL)
        *own = line;
}

/* It waits from now on; its frames are kept if it is not finished when the round is over. */
static void park (intake_t *self, line_t *line, intake_item_t *item)
{
    const message_t *message = &item->message;
    if (line == NULL) {
        line = inbox_open (message->peer, message->identity);
        set_line (self, message->peer, line);
    } else if (!inbox_has_room (&self->inbox, line, item->bytes)) {
        refuse_surplus (self, item);
        item->done = item->upto = message->envelope->n_requests;
        return;
    }
    item->entry = inbox_put (&self->inbox, line, NULL, item->bytes);
    item->line = line;
    item->entry->item = item;
    item->entry->received_us = item->received_us;
    item->entry->judged = true;
}

/* What has just arrived, from peers without a line. */
static void plan_arrived (intake_t *self)
{
    engine_t *engine = self->options.engine;
    bool lines = self->inbox.lines > 0;
    for (size_t i = 0; i < self->arrived; i++) {
        intake_item_t *item = &self->items[i];
        line_t *line = line_of (self, item->message.peer);
        engine_share (engine, SHARES, lines);
        bool waits = line != NULL || engine_is_clogged (engine, item->message.peer);
        if (waits || !plan (self, item))
            park (self, line, item);
    }
}

/* The decoded message of an entry; NULL when it is refused as a whole. */
static intake_item_t *item_of (intake_t *self, line_t *line, entry_t *entry)
{
    if (entry->item != NULL)
        return entry->item;
    incoming_t incoming = {.peer = line->peer, .identity = line->identity};
    intake_item_t *item = &self->items[self->count];
    router_kept (entry->message, &incoming);
    self->decoded_bytes += incoming.envelope_bytes;
    if (!decode (self, item, &incoming))
        return NULL;
    judge (self, item, entry->judged);
    item->message.gone = line->gone;
    item->done = item->upto = entry->done;
    item->line = line;
    item->entry = entry;
    item->received_us = entry->received_us;
    entry->item = item;
    entry->judged = true;
    self->count++;
    return item;
}

static bool may_decode (const intake_t *self)
{
    return self->count < self->options.drain_messages + TURNS_MAX &&
           self->decoded_bytes < self->options.drain_bytes;
}

/* Nothing is done for one who does not read; then its silence counts too. */
static bool is_held (const intake_t *self, line_t *line)
{
    bool held = !line->gone && engine_is_clogged (self->options.engine, line->peer);
    if (held && !line->held)
        engine_set_behind (self->options.engine, line->peer, false);
    line->held = held;
    return held;
}

/* A line's turn: one share. False when the line is held. */
static bool take_turn (intake_t *self, line_t *line)
{
    if (is_held (self, line))
        return false;
    engine_share (self->options.engine, SHARES, false);
    for (entry_t *entry = inbox_head (line); entry != NULL && may_decode (self);
         entry = inbox_head (line)) {
        intake_item_t *item = item_of (self, line, entry);
        if (item != NULL && !plan (self, item))
            break;
        inbox_pop (&self->inbox, line);
    }
    return true;
}

/* Ends with the round's allowance, or when every line is held. */
static void plan_lines (intake_t *self)
{
    size_t held = 0;
    self->count = self->arrived;
    self->decoded_bytes = 0;
    while (held < self->inbox.lines && may_decode (self) &&
           !engine_round_is_over (self->options.engine)) {
        line_t *line = inbox_first (&self->inbox);
        inbox_rotate (&self->inbox, line);
        held = take_turn (self, line) ? 0 : held + 1;
    }
    self->moving = held < self->inbox.lines;
}

/* The round. */

static void load (intake_t *self)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = STORE_OK;
    if (self->keys.count > 0)
        code = store_load (self->options.store, self->keys.keys, self->keys.count, &error);
    if (code == STORE_OK) {
        engine_loaded (self->options.engine, &self->keys);
        return;
    }
    if (code != STORE_ERROR_AWAY)
        exits_store_failed (&error);
    engine_unread (self->options.engine, &self->keys);
    self->missed = true;
}

/* What is left of a message stays in its line. */
static void leave (intake_t *self, intake_item_t *item)
{
    entry_t *entry = item->entry;
    if (entry->message == NULL)
        entry->message = router_keep (self->options.router, item->at);
    entry->done = item->upto;
    entry->item = NULL;
    engine_set_behind (self->options.engine, item->message.peer, !item->line->held);
}

/* One by one, so that it is known on which batch each answer rests. */
static void apply_traced (intake_t *self, const intake_item_t *item)
{
    engine_t *engine = self->options.engine;
    for (size_t i = item->done; i < item->upto; i++) {
        engine_message (engine, &item->message, i, i + 1, self->now);
        if (item->received_us > 0 && item->verdicts.requests[i].verdict.code == TMQ_OK)
            trace_applied (self->options.trace, item->message.peer,
                           item->message.envelope->requests[i], engine_waits_for (engine),
                           item->received_us);
    }
}

static void apply (intake_t *self)
{
    if (self->count > 0)
        load (self);
    for (size_t i = 0; i < self->count; i++) {
        intake_item_t *item = &self->items[i];
        if (item->upto > item->done && trace_is_on (self->options.trace))
            apply_traced (self, item);
        else if (item->upto > item->done)
            engine_message (self->options.engine, &item->message, item->done, item->upto,
                            self->now);
        if (item->entry != NULL && item->upto < item->message.envelope->n_requests)
            leave (self, item);
    }
}

/* Lines that have become empty end; only now may the engine know that their peer is gone. */
static void close_lines (intake_t *self)
{
    for (line_t *line = inbox_spent (&self->inbox); line != NULL;
         line = inbox_spent (&self->inbox)) {
        set_line (self, line->peer, NULL);
        engine_set_behind (self->options.engine, line->peer, false);
        if (line->gone)
            engine_peer_gone (self->options.engine, line->peer, self->now);
        inbox_close (line);
    }
    inbox_forget (&self->inbox);
}

void intake_round (intake_t *self, now_t now, bool closed)
{
    self->now = now;
    self->taken = 0;
    self->arrived = 0;
    self->count = 0;
    self->emptied = false;
    self->turned = false;
    self->moving = false;
    self->stats_filled = false;
    self->missed = false;
    inbox_round (&self->inbox);
    engine_round (self->options.engine);
    if (!closed) {
        receive (self);
        plan_arrived (self);
        plan_lines (self);
        apply (self);
        close_lines (self);
    }
    arena_reset (self->arena);
    router_release (self->options.router);
    /* Assignments whose payload is only in the tables. */
    engine_want_payloads (self->options.engine, &self->keys);
    if (self->keys.count > 0) {
        load (self);
        self->moving = true;
    }
}

size_t intake_taken (const intake_t *self)
{
    return self->taken;
}

bool intake_emptied (const intake_t *self)
{
    return self->emptied;
}

bool intake_turned (const intake_t *self)
{
    return self->turned;
}

bool intake_is_busy (const intake_t *self)
{
    return self->taken > 0 || self->moving;
}

bool intake_is_full (const intake_t *self)
{
    return inbox_is_full (&self->inbox);
}

bool intake_missed (const intake_t *self)
{
    return self->missed;
}

bool intake_is_idle (const intake_t *self)
{
    return self->inbox.messages == 0;
}

bool intake_peer_gone (intake_t *self, peer_t peer)
{
    line_t *line = line_of (self, peer);
    if (line == NULL)
        return true;
    line->gone = true;
    return false;
}

void intake_stats (const intake_t *self, intake_stats_t *out)
{
    *out = (intake_stats_t){self->refused_messages, self->inbox_refused, self->inbox.messages,
                            self->inbox.bytes};
}
