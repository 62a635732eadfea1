/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "net/connection.h"

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
#include "base/trees.h"
#include "timestamp.h"

enum {
    STRANGER_OUTPUT_BYTES = 16 * 1024, /* that who is not known may be owed; then he waits */
    INPUT_BYTES_MAX = 64 * 1024,       /* that wait behind a request; then the socket waits */
    MEMORY_PAUSE_MS = 1000,            /* before a stream tries again, for want of memory */
    LINGER_MS = 2000,                  /* for a client to read why it was refused */
    LINGER_BYTES_MAX = 8 * 1024 * 1024 /* that are thrown away meanwhile */
};

typedef enum phase {
    PHASE_IDLE,     /* no byte of a request */
    PHASE_HEAD,     /* some bytes of its head */
    PHASE_BODY,     /* its head */
    PHASE_BUSY,     /* the whole request; its answer is due */
    PHASE_STREAM,   /* a part of its answer is sent; the rest comes in time */
    PHASE_CLOSING,  /* the last answer is being sent */
    PHASE_LINGERING /* it was sent to somebody who may still be sending */
} phase_t;

struct connection {
    connections_t *set;
    connection_t *next;
    connection_t *previous;
    struct bufferevent *buffers;
    struct event *deadline;
    codec_t *codec;
    phase_t phase;
    bool running; /* inside of its own calls: it is not freed there */
    bool dying;   /* it is freed when they return */
    bool has_exchange;
    bool unread;   /* an answer was given before the request was whole */
    bool ended;    /* the client sends nothing more; what it has sent is to be answered */
    bool last;     /* nothing follows the stream on this connection */
    bool chunked;  /* the stream, … */
    bool is_sized; /* … and whether its length was told: */
    uint64_t left; /* what is still to come of it */
    bool silent;   /* the stream has written nothing since its last ping */
    bool wants_room;
    bool held;   /* a piece of the body is on its way; the next one is not read yet */
    bool doomed; /* it is freed in the loop's next turn: a caller may still hold its exchange */
    uint64_t requests;
    account_t *holder;      /* who its memory counts to: whoever it brought a good token of last */
    uint64_t input_charged; /* of heads, and of what stands behind a request */
    uint64_t body_charged;
    uint64_t output_charged;
    uint64_t thrown_away;
    exchange_t exchange;
};

static const char EXHAUSTED[] = "memory is exhausted";

static uint64_t limit_of (const connection_t *self, setting_t setting)
{
    return self->set->settings->numbers[setting];
}

static struct evbuffer *output_of (const connection_t *self)
{
    return bufferevent_get_output (self->buffers);
}

static size_t owed (const connection_t *self)
{
    return evbuffer_get_length (output_of (self));
}

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

/* The list of all: who did something last stands first. */

static void enter_list (connection_t *self)
{
    connections_t *set = self->set;
    self->previous = NULL;
    self->next = set->first;
    *(self->next != NULL ? &self->next->previous : &set->last) = self;
    set->first = self;
}

static void leave_list (connection_t *self)
{
    connections_t *set = self->set;
    if (set->walk == self)
        set->walk = self->next;
    *(self->next != NULL ? &self->next->previous : &set->last) = self->previous;
    *(self->previous != NULL ? &self->previous->next : &set->first) = self->next;
}

/* Memory that heads, bodies and answers of connections take, beside what is parsed of them. Each
 * counts to its holder, too, who has a part of it at most. */

static bool is_stranger (const connection_t *self)
{
    return self->holder == &self->set->numbers.strangers;
}

static uint64_t rest_of (uint64_t most, uint64_t held)
{
    return held < most ? most - held : 0;
}

static uint64_t rest_of_holder (const connection_t *self)
{
    return rest_of (limit_of (self, is_stranger (self) ? SETTING_STRANGERS_BYTES_MAX
                                                       : SETTING_PRINCIPAL_BYTES_MAX),
                    self->holder->bytes);
}

/* Is nothing lost by its end? A stranger's answer may be; who is known reads his. */
static bool can_be_spared (const connection_t *self)
{
    return is_stranger (self) ? self->phase <= PHASE_HEAD || self->phase >= PHASE_CLOSING
                              : self->phase <= PHASE_HEAD && owed (self) == 0;
}

/* Of the strangers who hold memory, the one who has done nothing for the longest goes. False: there
 * is none but this one. */
static bool displace_stranger (const connection_t *self)
{
    connection_t *at = self->set->last;
    while (at != NULL && (at == self || at->running || !is_stranger (at) || !can_be_spared (at) ||
                          at->input_charged + at->output_charged == 0))
        at = at->previous;
    if (at == NULL)
        return false;
    self->set->numbers.displaced++;
    connection_free (at);
    return true;
}

static uint64_t connections_of (const account_t *holder)
{
    return holder->held[HOLD_CONNECTIONS];
}

static uint64_t bytes_of (const account_t *holder)
{
    return holder->bytes;
}

/* Of those that wait for nothing but that their answer is read: of whoever has the most, and more
 * than that, the one that has done nothing for the longest. */
static connection_t *find_unread (const connections_t *set, uint64_t (*of) (const account_t *),
                                  uint64_t most)
{
    connection_t *found = NULL;
    for (connection_t *at = set->last; at != NULL; at = at->previous)
        if (!at->running && (at->phase <= PHASE_HEAD || at->phase >= PHASE_CLOSING) &&
            owed (at) > 0 && of (at->holder) > most) {
            found = at;
            most = of (at->holder);
        }
    return found;
}

/* The memory of all is for who has less of it. */
static bool displace_unread (const connection_t *self, uint64_t bytes)
{
    connection_t *found =
        is_stranger (self) ? NULL : find_unread (self->set, bytes_of, self->holder->bytes + bytes);
    if (found == NULL)
        return false;
    self->set->numbers.displaced++;
    connection_free (found);
    return true;
}

/* NULL: it counts from now on; else why there is no room for it, a sentence. */
static const char *charge (connection_t *self, uint64_t *account, uint64_t bytes)
{
    uint64_t *used = &self->set->numbers.memory_bytes;
    while (is_stranger (self) && bytes > rest_of_holder (self) && displace_stranger (self))
        ;
    if (bytes > rest_of_holder (self))
        return is_stranger (self)
                   ? "those without a token take as much memory as 'strangers_bytes_max' allows"
                   : "its requests and answers take as much memory as 'principal_bytes_max' allows";
    const uint64_t most = limit_of (self, SETTING_MEMORY_BYTES_MAX);
    while (bytes > rest_of (most, *used + trees_bytes ()) && displace_unread (self, bytes))
        ;
    if (bytes > rest_of (most, *used + trees_bytes ()))
        return "all requests and answers take as much memory as 'memory_bytes_max' allows";
    *used += bytes;
    self->holder->bytes += bytes;
    *account += bytes;
    return NULL;
}

static void give_back (connection_t *self, uint64_t *account, uint64_t bytes)
{
    self->set->numbers.memory_bytes -= bytes;
    self->holder->bytes -= bytes;
    *account -= bytes;
}

static void discharge (connection_t *self, uint64_t *account)
{
    give_back (self, account, *account);
}

/* What it holds counts to whom its request is of, from now on. */
static void take_holder (connection_t *self)
{
    account_t *holder = self->exchange.account;
    const uint64_t held = self->input_charged + self->body_charged + self->output_charged;
    if (holder == NULL || holder == self->holder)
        return;
    self->holder->bytes -= held;
    holder->bytes += held;
    self->holder->held[HOLD_CONNECTIONS]--;
    holder->held[HOLD_CONNECTIONS]++;
    account_release (self->holder);
    self->holder = account_retain (holder);
}

/* The end of an exchange and of a connection. */

static void end_exchange (connection_t *self, int status)
{
    exchange_t *exchange = &self->exchange;
    if (!self->has_exchange)
        return;
    if (status == 0 && exchange->on_gone != NULL && !self->set->stopping)
        exchange->on_gone (exchange);
    self->has_exchange = false;
    self->wants_room = false;
    self->held = false;
    take_holder (self);
    if (exchange->stream_status != 0) {
        status = exchange->stream_status;
        self->set->numbers.streams--;
        self->set->numbers.kinds[exchange->stream_kind]--;
    }
    const exchange_handler_t *handler = self->set->handler;
    handler->end (handler->context, exchange, status);
    bytes_free (&self->exchange.body);
    discharge (self, &self->body_charged);
}

void connection_free (connection_t *self)
{
    connections_t *set = self->set;
    if (self->running) {
        self->dying = true;
        return;
    }
    self->running = true;
    end_exchange (self, 0);
    leave_list (self);
    set->numbers.connections--;
    --*state_of (self);
    discharge (self, &self->input_charged);
    discharge (self, &self->output_charged);
    self->holder->held[HOLD_CONNECTIONS]--;
    account_release (self->holder);
    codec_free (self->codec);
    event_free (self->deadline);
    bufferevent_free (self->buffers);
    free (self);
    if (set->left != NULL)
        set->left (set->left_context);
}

static void set_phase (connection_t *self, phase_t phase)
{
    static const setting_t deadlines[] = {[PHASE_IDLE] = SETTING_IDLE_TIMEOUT,
                                          [PHASE_HEAD] = SETTING_HEAD_TIMEOUT,
                                          [PHASE_BODY] = SETTING_BODY_TIMEOUT,
                                          [PHASE_STREAM] = SETTING_STREAM_PING};
    --*state_of (self);
    self->phase = phase;
    ++*state_of (self);
    leave_list (self);
    enter_list (self);
    uint64_t ms = LINGER_MS;
    if (phase == PHASE_BUSY || phase == PHASE_CLOSING) {
        event_del (self->deadline);
        return;
    }
    if (phase != PHASE_LINGERING)
        ms = limit_of (self, deadlines[phase]);
    const struct timeval time = {(time_t) (ms / 1000), (suseconds_t) (ms % 1000 * 1000)};
    event_add (self->deadline, &time);
}

/* Answers. */

/* What the client has taken of the output is not held any more. NULL: charged. */
static const char *charge_output (connection_t *self, uint64_t bytes)
{
    const size_t held = owed (self);
    if (held < self->output_charged)
        give_back (self, &self->output_charged, self->output_charged - held);
    return charge (self, &self->output_charged, bytes);
}

/* The answer itself has no room. What says so is small, and not charged. */
static void send_no_room (connection_t *self, const char *why)
{
    bytes_t out = BYTES_INIT;
    response_t response;
    const exchange_handler_t *handler = self->set->handler;
    response_init (&response, 503);
    handler->refuse (handler->context, &response, 503, why);
    response_write (&out, &response, (response_frame_t){.close = true});
    response_clear (&response);
    self->unread = true;
    set_phase (self, PHASE_CLOSING);
    if (out.failed || evbuffer_add (output_of (self), out.data, out.length) != 0)
        self->dying = true; /* no answer can be given */
    bytes_free (&out);
}

static void send_response (connection_t *self, const response_t *response, bool head_only)
{
    bytes_t out = BYTES_INIT;
    const bool close = self->phase == PHASE_CLOSING;
    response_write (&out, response, (response_frame_t){.close = close, .head_only = head_only});
    const char *flaw = out.failed ? EXHAUSTED : charge_output (self, out.length);
    if (flaw == NULL && evbuffer_add (output_of (self), out.data, out.length) != 0)
        flaw = EXHAUSTED;
    if (flaw != NULL)
        send_no_room (self, flaw);
    bytes_free (&out);
}

static void throw_away (connection_t *self)
{
    struct evbuffer *input = bufferevent_get_input (self->buffers);
    const size_t length = evbuffer_get_length (input);
    evbuffer_drain (input, length);
    self->thrown_away += length;
    self->dying = self->thrown_away > LINGER_BYTES_MAX;
}

static void begin_lingering (connection_t *self)
{
    shutdown (bufferevent_getfd (self->buffers), SHUT_WR);
    set_phase (self, PHASE_LINGERING);
    throw_away (self);
}

/* After the last answer: what still comes is thrown away for a moment, because a socket that is
 * closed with unread bytes in it would take the answer with it. */
static void linger (connection_t *self)
{
    if (!self->unread) {
        connection_free (self);
        return;
    }
    begin_lingering (self);
    if (self->dying)
        connection_free (self);
}

static void refuse (connection_t *self, int status, const char *reason)
{
    response_t response;
    const exchange_handler_t *handler = self->set->handler;
    response_init (&response, status);
    handler->refuse (handler->context, &response, status, reason);
    end_exchange (self, status);
    self->unread = true;
    set_phase (self, PHASE_CLOSING);
    send_response (self, &response, false);
    response_clear (&response);
}

static void run (connection_t *self);

static connection_t *connection_of (exchange_t *exchange)
{
    return (connection_t *) (void *) ((char *) exchange - offsetof (connection_t, exchange));
}

static bool nothing_follows (const connection_t *self)
{
    return self->unread || !self->exchange.request->keep_alive || self->set->draining ||
           self->requests >= limit_of (self, SETTING_CONNECTION_REQUESTS_MAX);
}

static void reply (exchange_t *exchange, response_t *response)
{
    connection_t *self = connection_of (exchange);
    const http_request_t *request = exchange->request;
    const bool head_only = request->method == HTTP_METHOD_HEAD;
    const bool was_running = self->running;
    self->running = true;
    self->unread = self->phase != PHASE_BUSY && (request->chunked || request->content_length > 0);
    const bool last = nothing_follows (self);
    end_exchange (self, response->status);
    set_phase (self, last ? PHASE_CLOSING : PHASE_IDLE);
    codec_next (self->codec);
    send_response (self, response, head_only);
    response_clear (response);
    self->running = was_running;
    if (!was_running)
        run (self);
}

static void drop_body (exchange_t *exchange)
{
    connection_t *self = connection_of (exchange);
    bytes_free (&exchange->body);
    discharge (self, &self->body_charged);
}

/* Streams. */

/* In the loop's next turn, because the caller goes on with its exchange. */
static void doom (connection_t *self)
{
    self->doomed = true;
    event_active (self->deadline, EV_TIMEOUT, 0);
}

/* The stream tells its source when to go on; it is not to wait for a client that owes nothing. */
static bool refuse_piece (connection_t *self)
{
    const struct timeval pause = {MEMORY_PAUSE_MS / 1000, 0};
    self->wants_room = true;
    if (owed (self) == 0 || self->phase == PHASE_BUSY)
        event_add (self->deadline, &pause);
    return false;
}

static bool write_piece (exchange_t *exchange, const void *data, size_t length)
{
    connection_t *self = connection_of (exchange);
    struct evbuffer *output = output_of (self);
    if (self->doomed || exchange->request->method == HTTP_METHOD_HEAD || length == 0)
        return !self->doomed;
    if (self->is_sized && length > self->left) {
        doom (self); /* more than was told would be read as the next answer */
        return false;
    }
    if ((owed (self) > 0 && owed (self) + length > limit_of (self, SETTING_OUTPUT_BYTES_MAX)) ||
        charge_output (self, length) != NULL)
        return refuse_piece (self);
    self->silent = false;
    if ((self->chunked && evbuffer_add_printf (output, "%zx\r\n", length) < 0) ||
        evbuffer_add (output, data, length) != 0 ||
        (self->chunked && evbuffer_add (output, "\r\n", 2) != 0))
        doom (self); /* half of a piece may be there: nothing can follow */
    if (self->is_sized)
        self->left -= length;
    return !self->doomed;
}

static void await_room (exchange_t *exchange)
{
    refuse_piece (connection_of (exchange));
}

static void begin_stream (exchange_t *exchange, response_t *response)
{
    connection_t *self = connection_of (exchange);
    bytes_t head = BYTES_INIT;
    exchange->stream_status = response->status;
    self->is_sized = response->is_sized;
    self->left = response->length;
    self->chunked = !self->is_sized && !exchange->request->minor_0;
    self->last = nothing_follows (self) || (!self->chunked && !self->is_sized);
    self->set->numbers.streams++;
    self->set->numbers.kinds[exchange->stream_kind]++;
    set_phase (self, PHASE_STREAM);
    self->silent = true;
    response_write (
        &head, response,
        (response_frame_t){.close = self->last, .stream = true, .chunked = self->chunked});
    if (head.failed || evbuffer_add (output_of (self), head.data, head.length) != 0)
        doom (self);
    else if (response->body.length > 0 &&
             !write_piece (exchange, response->body.data, response->body.length))
        doom (self);
    bytes_free (&head);
    response_clear (response);
}

static void cut (exchange_t *exchange)
{
    exchange->on_gone = NULL; /* it is its source that ends it */
    connection_free (connection_of (exchange));
}

static void finish_stream (exchange_t *exchange)
{
    connection_t *self = connection_of (exchange);
    const bool was_running = self->running;
    if (self->is_sized && self->left > 0 && exchange->request->method != HTTP_METHOD_HEAD) {
        cut (exchange);
        return;
    }
    self->running = true;
    if (self->chunked && exchange->request->method != HTTP_METHOD_HEAD &&
        evbuffer_add (output_of (self), "0\r\n\r\n", 5) != 0)
        self->dying = true;
    end_exchange (self, exchange->stream_status);
    self->last = self->last || self->set->draining;
    self->wants_room = false;
    set_phase (self, self->last ? PHASE_CLOSING : PHASE_IDLE);
    codec_next (self->codec);
    self->unread = evbuffer_get_length (bufferevent_get_input (self->buffers)) > 0;
    if (self->last && owed (self) == 0 && self->unread)
        begin_lingering (self);
    else if (self->last && owed (self) == 0)
        self->dying = true;
    if (self->doomed)
        self->dying = true;
    self->running = was_running;
    if (!was_running)
        run (self);
}

/* A stream that has been silent says that it is there; one that waited for memory tries again. */
static void tick (connection_t *self)
{
    exchange_t *exchange = &self->exchange;
    const char *ping = exchange->ping;
    const bool wants_room = self->wants_room && owed (self) == 0;
    set_phase (self, PHASE_STREAM);
    if (wants_room) {
        self->wants_room = false;
        if (exchange->on_room != NULL)
            exchange->on_room (exchange);
        return;
    }
    const bool quiet = self->silent && owed (self) == 0;
    if (quiet && exchange->on_quiet != NULL)
        exchange->on_quiet (exchange);
    else if (quiet && ping != NULL)
        write_piece (exchange, ping, strlen (ping));
    self->silent = true;
}

static void stop_exchange (connection_t *self)
{
    exchange_t *exchange = &self->exchange;
    if (exchange->on_stop != NULL)
        exchange->on_stop (exchange);
    else if (self->phase == PHASE_STREAM)
        finish_stream (exchange);
}

/* Requests. */

static void resume (exchange_t *exchange)
{
    connection_t *self = connection_of (exchange);
    self->held = false;
    set_phase (self, PHASE_BODY);
    run (self);
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
    exchange->drop_body = drop_body;
    exchange->reply = reply;
    exchange->stream = begin_stream;
    exchange->write = write_piece;
    exchange->await_room = await_room;
    exchange->finish = finish_stream;
    exchange->cut = cut;
    self->requests++;
    self->has_exchange = true;
    set_phase (self, PHASE_BODY);
    handler->head (handler->context, exchange);
    if (!self->has_exchange)
        return;
    take_holder (self);
    codec_accept (self->codec, exchange->body_bytes_max, exchange->body_limit);
    const bool refused = codec_refusal (self->codec, NULL) != 0;
    if (exchange->request->expects_continue && !refused &&
        (exchange->request->chunked || exchange->request->content_length > 0))
        evbuffer_add_printf (output_of (self), "HTTP/1.1 100 Continue\r\n\r\n");
}

static bool is_full (const connection_t *self)
{
    const exchange_t *exchange = &self->exchange;
    return exchange->on_full != NULL && exchange->body.length == exchange->body_piece_bytes;
}

static void take_body (connection_t *self, const uint8_t *body, size_t length)
{
    exchange_t *exchange = &self->exchange;
    const char *flaw = charge (self, &self->body_charged, length);
    if (flaw == NULL)
        bytes_append (&exchange->body, body, length);
    if (flaw == NULL && exchange->on_full != NULL && exchange->body.failed)
        flaw = EXHAUSTED;
    if (flaw != NULL) {
        refuse (self, 503, flaw);
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
    set_phase (self, PHASE_BUSY);
    if (self->exchange.body.failed)
        refuse (self, 503, EXHAUSTED);
    else
        handler->whole (handler->context, &self->exchange);
    if (self->has_exchange && self->set->draining)
        stop_exchange (self);
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
        set_phase (self, PHASE_HEAD);
    switch (event) {
    case CODEC_MORE: break;
    case CODEC_HEAD: begin_exchange (self); break;
    case CODEC_BODY: take_body (self, body, body_length); break;
    case CODEC_END: finish_request (self); break;
    case CODEC_REFUSED: {
        const int status = codec_refusal (self->codec, &reason);
        refuse (self, status, reason);
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
    uint64_t most = limit_of (self, SETTING_OUTPUT_BYTES_MAX);
    if (is_stranger (self) && most > STRANGER_OUTPUT_BYTES)
        most = STRANGER_OUTPUT_BYTES;
    return self->phase == PHASE_IDLE && owed (self) > most;
}

/* What was read and waits: a head as far as it has come, and what stands behind a request. */
static void hold_input (connection_t *self)
{
    const uint64_t held =
        evbuffer_get_length (bufferevent_get_input (self->buffers)) + codec_held (self->codec);
    if (held <= self->input_charged) {
        give_back (self, &self->input_charged, self->input_charged - held);
        return;
    }
    const char *flaw = charge (self, &self->input_charged, held - self->input_charged);
    if (flaw != NULL && self->phase <= PHASE_HEAD)
        refuse (self, 503, flaw);
}

/* Goes on until there is nothing to read, or an answer is due. */
static void run (connection_t *self)
{
    self->running = true;
    while (!self->dying && self->phase <= PHASE_BODY && !self->held && !owes_too_much (self) &&
           step (self))
        ;
    if (!self->dying && self->phase == PHASE_LINGERING)
        throw_away (self);
    if (!self->dying)
        hold_input (self);
    const bool waits = owes_too_much (self) && !self->set->draining;
    if (!self->dying && self->ended && self->phase >= PHASE_BODY && self->phase <= PHASE_STREAM)
        self->dying = true; /* its client does not wait for what is due */
    if (!self->dying && !waits &&
        ((self->phase == PHASE_IDLE && self->set->draining) ||
         (self->phase <= PHASE_HEAD && self->ended))) {
        set_phase (self, PHASE_CLOSING);
        self->dying = owed (self) == 0;
    }
    self->running = false;
    if (self->dying)
        connection_free (self);
}

/* What libevent tells. */

static void readable (struct bufferevent *buffers, void *context)
{
    (void) buffers;
    effort_begin ();
    run (context);
}

static void written (struct bufferevent *buffers, void *context)
{
    connection_t *self = context;
    (void) buffers;
    effort_begin ();
    discharge (self, &self->output_charged);
    if (self->phase == PHASE_CLOSING) {
        linger (self);
    } else if (self->phase == PHASE_STREAM) {
        const bool wanted = self->wants_room;
        self->wants_room = false;
        if (wanted && self->exchange.on_room != NULL)
            self->exchange.on_room (&self->exchange);
    } else if (self->phase == PHASE_IDLE) {
        run (self); /* what waited for the answers to be read */
    }
}

static void broken (struct bufferevent *buffers, short what, void *context)
{
    connection_t *self = context;
    (void) buffers;
    effort_begin ();
    /* It sends nothing more, but what it is owed it may still read. */
    if ((what & BEV_EVENT_EOF) == 0 || self->phase == PHASE_LINGERING ||
        self->phase == PHASE_BUSY || self->phase == PHASE_STREAM || owed (self) == 0) {
        connection_free (self);
        return;
    }
    self->ended = true;
    self->unread = false;
    if (self->phase != PHASE_CLOSING)
        run (self);
}

static void too_late (evutil_socket_t fd, short what, void *context)
{
    connection_t *self = context;
    (void) fd;
    (void) what;
    effort_begin ();
    if (self->phase == PHASE_STREAM && !self->doomed) {
        tick (self);
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
    refuse (self, 408,
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
            stop_exchange (at);
        else if (at->phase == PHASE_IDLE && owed (at) == 0)
            connection_free (at);
        else if (at->phase == PHASE_IDLE)
            set_phase (at, PHASE_CLOSING);
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

bool connections_make_room (connections_t *set)
{
    connection_t *found = NULL;
    for (connection_t *at = set->last; at != NULL && (found == NULL || !is_stranger (found));
         at = at->previous)
        if (!at->running && can_be_spared (at) && (found == NULL || is_stranger (at)))
            found = at;
    if (found == NULL)
        found = find_unread (set, connections_of, 1);
    if (found == NULL)
        return false;
    set->numbers.displaced++;
    connection_free (found);
    return true;
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
    if (self->buffers == NULL) {
        if (self->deadline != NULL)
            event_free (self->deadline);
        codec_free (self->codec);
        account_release (self->holder);
        free (self);
        return NULL;
    }
    snprintf (self->exchange.peer, sizeof self->exchange.peer, "%s", peer);
    enter_list (self);
    self->holder->held[HOLD_CONNECTIONS]++;
    set->numbers.connections++;
    ++*state_of (self);
    bufferevent_setcb (self->buffers, readable, written, broken, self);
    bufferevent_setwatermark (self->buffers, EV_READ, 0, INPUT_BYTES_MAX);
    bufferevent_set_timeouts (self->buffers, NULL, &patience);
    bufferevent_enable (self->buffers, EV_READ | EV_WRITE);
    set_phase (self, PHASE_HEAD); /* a client that has connected has something to say */
    return self;
}
