/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A connection from its beginning to its end, and what is read on it. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/effort.h"
#include "net/connection_parts.h"
#include "timestamp.h"

enum {
    STRANGER_OUTPUT_BYTES = 16 * 1024, /* that who is not known may be owed; then he waits */
    INPUT_BYTES_MAX = 64 * 1024,       /* that wait behind a request; then the socket waits */
    LINGER_MS = 2000                   /* for a client to read why it was refused */
};

/* How its phase is told. */
static uint64_t *state_of (connection_t *self)
{
    static const connection_state_t states[] = {
        [PHASE_IDLE] = CONNECTION_IDLE,        [PHASE_HEAD] = CONNECTION_READING,
        [PHASE_BODY] = CONNECTION_READING,     [PHASE_BUSY] = CONNECTION_WAITING,
        [PHASE_STREAM] = CONNECTION_STREAMING, [PHASE_CLOSING] = CONNECTION_CLOSING,
        [PHASE_LINGERING] = CONNECTION_CLOSING};
    return &self->set->numbers.states[states[self->phase]];
}

/* The end of an exchange and of a connection. */

void connection_end_exchange (connection_t *self, int status)
{
    exchange_t *exchange = &self->exchange;
    if (!self->has_exchange)
        return;
    if (status == 0 && exchange->on_gone != NULL && !self->set->stopping)
        exchange->on_gone (exchange);
    self->has_exchange = false;
    self->wants_room = false;
    self->held = false;
    connection_take_holder (self);
    if (exchange->stream_status != 0) {
        status = exchange->stream_status;
        self->set->numbers.streams--;
        self->set->numbers.kinds[exchange->stream_kind]--;
    }
    const exchange_handler_t *handler = self->set->handler;
    handler->end (handler->context, exchange, status);
    bytes_free (&self->exchange.body);
    connection_discharge (self, &self->body_charged);
}

void connection_free (connection_t *self)
{
    connections_t *set = self->set;
    if (self->running) {
        self->dying = true;
        return;
    }
    self->running = true;
    connection_end_exchange (self, 0);
    connection_leave_list (self);
    set->numbers.connections--;
    --*state_of (self);
    connection_discharge (self, &self->input_charged);
    connection_discharge (self, &self->output_charged);
    self->holder->held[HOLD_CONNECTIONS]--;
    account_release (self->holder);
    codec_free (self->codec);
    event_free (self->deadline);
    if (self->probe != NULL)
        event_free (self->probe);
    bufferevent_free (self->buffers);
    free (self);
    if (set->left != NULL)
        set->left (set->left_context);
}

void connection_set_phase (connection_t *self, phase_t phase)
{
    static const setting_t deadlines[] = {[PHASE_IDLE] = SETTING_IDLE_TIMEOUT,
                                          [PHASE_HEAD] = SETTING_HEAD_TIMEOUT,
                                          [PHASE_BODY] = SETTING_BODY_TIMEOUT,
                                          [PHASE_STREAM] = SETTING_STREAM_PING};
    --*state_of (self);
    self->phase = phase;
    ++*state_of (self);
    connection_leave_list (self);
    connection_enter_list (self);
    uint64_t ms = LINGER_MS;
    if (phase == PHASE_BUSY || phase == PHASE_CLOSING) {
        event_del (self->deadline);
        return;
    }
    if (phase != PHASE_LINGERING)
        ms = connection_limit (self, deadlines[phase]);
    const struct timeval time = {(time_t) (ms / 1000), (suseconds_t) (ms % 1000 * 1000)};
    event_add (self->deadline, &time);
}

/* Requests. */

static void resume (exchange_t *exchange)
{
    connection_t *self = connection_of (exchange);
    self->held = false;
    connection_set_phase (self, PHASE_BODY);
    connection_run (self);
}

static void begin_exchange (connection_t *self)
{
    const exchange_handler_t *handler = self->set->handler;
    exchange_t *exchange = &self->exchange;
    char peer[EXCHANGE_PEER_SIZE];
    memcpy (peer, exchange->peer, sizeof peer);
    memset (exchange, 0, sizeof *exchange);
    memcpy (exchange->peer, peer, sizeof peer);
    exchange->request = codec_request (self->codec);
    exchange->began_us = clock_us (CLOCK_MONOTONIC);
    exchange->resume = resume;
    connection_lend_calls (exchange);
    self->requests++;
    self->has_exchange = true;
    connection_set_phase (self, PHASE_BODY);
    handler->head (handler->context, exchange);
    if (!self->has_exchange)
        return;
    connection_take_holder (self);
    codec_accept (self->codec, exchange->body_bytes_max, exchange->body_limit);
    const bool refused = codec_refusal (self->codec, NULL) != 0;
    if (exchange->request->expects_continue && !refused &&
        (exchange->request->chunked || exchange->request->content_length > 0))
        evbuffer_add_printf (connection_output (self), "HTTP/1.1 100 Continue\r\n\r\n");
}

static bool is_full (const connection_t *self)
{
    const exchange_t *exchange = &self->exchange;
    return exchange->on_full != NULL && exchange->body.length == exchange->body_piece_bytes;
}

static void take_body (connection_t *self, const uint8_t *body, size_t length)
{
    exchange_t *exchange = &self->exchange;
    const char *flaw = connection_charge (self, &self->body_charged, length);
    if (flaw == NULL)
        bytes_append (&exchange->body, body, length);
    if (flaw == NULL && exchange->on_full != NULL && exchange->body.failed)
        flaw = CONNECTION_NO_MEMORY;
    if (flaw != NULL) {
        connection_refuse (self, 503, flaw);
    } else if (is_full (self)) {
        self->held = true;
        event_del (self->deadline);
        exchange->on_full (exchange);
    }
}

/* Of what was read, as much as may be taken now. */
static size_t takable (const connection_t *self, size_t length)
{
    const exchange_t *exchange = &self->exchange;
    if (self->phase != PHASE_BODY || exchange->on_full == NULL)
        return length;
    const size_t room = exchange->body_piece_bytes - exchange->body.length;
    return length < room ? length : room;
}

static void finish_request (connection_t *self)
{
    const exchange_handler_t *handler = self->set->handler;
    connection_set_phase (self, PHASE_BUSY);
    if (self->exchange.body.failed)
        connection_refuse (self, 503, CONNECTION_NO_MEMORY);
    else
        handler->whole (handler->context, &self->exchange);
    if (self->has_exchange && self->set->draining)
        connection_stop (self);
}

/* One step; false when it needs more bytes, or none. */
static bool step (connection_t *self)
{
    struct evbuffer *input = bufferevent_get_input (self->buffers);
    struct evbuffer_iovec piece = {NULL, 0};
    const uint8_t *body = NULL;
    const char *reason;
    size_t used, body_length = 0;
    evbuffer_peek (input, -1, NULL, &piece, 1);
    const codec_event_t event = codec_feed (
        self->codec, piece.iov_base, takable (self, piece.iov_len), &used, &body, &body_length);
    if (self->phase == PHASE_IDLE && !codec_is_idle (self->codec))
        connection_set_phase (self, PHASE_HEAD);
    switch (event) {
    case CODEC_MORE: break;
    case CODEC_HEAD: begin_exchange (self); break;
    case CODEC_BODY: take_body (self, body, body_length); break;
    case CODEC_END: finish_request (self); break;
    case CODEC_REFUSED: {
        const int status = codec_refusal (self->codec, &reason);
        connection_refuse (self, status, reason);
        break;
    }
    }
    evbuffer_drain (input, used);
    return event != CODEC_MORE || evbuffer_get_length (input) > 0;
}

/* Who does not read the answers is not asked for more requests. What strangers are owed is less:
 * it is of the memory that all answers share. */
static bool owes_too_much (const connection_t *self)
{
    uint64_t most = connection_limit (self, SETTING_OUTPUT_BYTES_MAX);
    if (connection_is_stranger (self) && most > STRANGER_OUTPUT_BYTES)
        most = STRANGER_OUTPUT_BYTES;
    return self->phase == PHASE_IDLE && connection_owed (self) > most;
}

/* What was read and waits: a head as far as it has come, and what stands behind a request. */
static void hold_input (connection_t *self)
{
    const uint64_t held =
        evbuffer_get_length (bufferevent_get_input (self->buffers)) + codec_held (self->codec);
    if (held <= self->input_charged) {
        connection_give_back (self, &self->input_charged, self->input_charged - held);
        return;
    }
    const char *flaw = connection_charge (self, &self->input_charged, held - self->input_charged);
    if (flaw != NULL && self->phase <= PHASE_HEAD)
        connection_refuse (self, 503, flaw);
}

/* Nothing more is due: the client has closed its side, or the gateway stops. The rest of a body
 * that was begun never comes. */
static void close_when_all_is_sent (connection_t *self)
{
    const bool waits = owes_too_much (self) && !self->set->draining;
    const bool is_half = self->phase == PHASE_BODY && self->ended && !self->held;
    const bool is_over = (self->phase == PHASE_IDLE && self->set->draining) ||
                         (self->phase <= PHASE_HEAD && self->ended);
    if (is_half)
        connection_end_exchange (self, 0);
    if (!is_half && (waits || !is_over))
        return;
    connection_set_phase (self, PHASE_CLOSING);
    self->dying = connection_owed (self) == 0;
}

void connection_run (connection_t *self)
{
    self->running = true;
    while (!self->dying && self->phase <= PHASE_BODY && !self->held && !owes_too_much (self) &&
           step (self))
        ;
    if (!self->dying && self->phase == PHASE_LINGERING)
        connection_throw_away (self);
    if (!self->dying)
        hold_input (self);
    if (!self->dying)
        close_when_all_is_sent (self);
    self->running = false;
    if (self->dying)
        connection_free (self);
}

/* What libevent tells. */

static void readable (struct bufferevent *buffers, void *context)
{
    (void) buffers;
    effort_begin ();
    connection_run (context);
}

static void written (struct bufferevent *buffers, void *context)
{
    connection_t *self = context;
    (void) buffers;
    effort_begin ();
    connection_discharge (self, &self->output_charged);
    if (self->phase == PHASE_CLOSING) {
        connection_linger (self);
    } else if (self->phase == PHASE_STREAM) {
        const bool wanted = self->wants_room;
        self->wants_room = false;
        if (wanted && self->exchange.on_room != NULL)
            self->exchange.on_room (&self->exchange);
    } else if (self->phase == PHASE_IDLE) {
        connection_run (self); /* what waited for the answers to be read */
    }
}

static void broken (struct bufferevent *buffers, short what, void *context)
{
    connection_t *self = context;
    (void) buffers;
    effort_begin ();
    if ((what & BEV_EVENT_EOF) == 0 || self->phase == PHASE_LINGERING)
        connection_free (self);
    else
        connection_await_leaving (self);
}

static void too_late (evutil_socket_t fd, short what, void *context)
{
    connection_t *self = context;
    (void) fd;
    (void) what;
    effort_begin ();
    if (self->phase == PHASE_STREAM && !self->doomed) {
        connection_tick (self);
        return;
    }
    if (self->phase == PHASE_BUSY && self->wants_room && !self->doomed) {
        self->wants_room = false;
        self->exchange.on_room (&self->exchange);
        return;
    }
    if (self->doomed || (self->phase != PHASE_HEAD && self->phase != PHASE_BODY)) {
        connection_free (self);
        return;
    }
    self->set->numbers.timeouts++;
    self->running = true;
    connection_refuse (self, 408,
                       self->phase == PHASE_HEAD ? "the head did not come in time"
                                                 : "the body did not come in time");
    self->running = false;
    if (self->dying)
        connection_free (self);
}

void connections_drain (connections_t *set)
{
    set->draining = true;
    for (connection_t *at = set->first; at != NULL; at = set->walk) {
        set->walk = at->next;
        if (at->phase == PHASE_BUSY || at->phase == PHASE_STREAM)
            connection_stop (at);
        else if (at->phase == PHASE_IDLE && connection_owed (at) == 0)
            connection_free (at);
        else if (at->phase == PHASE_IDLE)
            connection_set_phase (at, PHASE_CLOSING);
    }
}

void connections_each (connections_t *set, exchange_fn *fn, void *context)
{
    for (connection_t *at = set->first; at != NULL; at = set->walk) {
        set->walk = at->next;
        if (at->has_exchange)
            fn (context, &at->exchange);
    }
}

connection_t *connection_new (connections_t *set, int fd, const char *peer)
{
    const settings_t *settings = set->settings;
    const codec_limits_t limits = {(size_t) settings->numbers[SETTING_HEAD_BYTES_MAX],
                                   (size_t) settings->numbers[SETTING_HEAD_FIELDS_MAX],
                                   (size_t) settings->numbers[SETTING_TARGET_BYTES_MAX]};
    const uint64_t ms = settings->numbers[SETTING_OUTPUT_TIMEOUT];
    const struct timeval patience = {(time_t) (ms / 1000), (suseconds_t) (ms % 1000 * 1000)};
    connection_t *self = calloc (1, sizeof *self);
    const int yes = 1;
    if (self == NULL)
        return NULL;
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* a socket file has no such */
    self->set = set;
    self->holder = account_retain (&set->numbers.strangers);
    self->codec = codec_new (&limits);
    self->deadline = evtimer_new (loop_base (set->loop), too_late, self);
    if (self->codec != NULL && self->deadline != NULL)
        self->buffers = bufferevent_socket_new (loop_base (set->loop), fd, BEV_OPT_CLOSE_ON_FREE);
    if (self->buffers == NULL || !connection_watch_output (self)) {
        if (self->buffers != NULL)
            bufferevent_free (self->buffers);
        if (self->deadline != NULL)
            event_free (self->deadline);
        codec_free (self->codec);
        account_release (self->holder);
        free (self);
        return NULL;
    }
    snprintf (self->exchange.peer, sizeof self->exchange.peer, "%s", peer);
    connection_enter_list (self);
    self->holder->held[HOLD_CONNECTIONS]++;
    set->numbers.connections++;
    ++*state_of (self);
    bufferevent_setcb (self->buffers, readable, written, broken, self);
    bufferevent_setwatermark (self->buffers, EV_READ, 0, INPUT_BYTES_MAX);
    bufferevent_set_timeouts (self->buffers, NULL, &patience);
    bufferevent_enable (self->buffers, EV_READ | EV_WRITE);
    connection_set_phase (self, PHASE_HEAD); /* a client that has connected has something to say */
    return self;
}
