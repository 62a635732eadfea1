/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is sent on a connection: answers that are whole, streams, and its end. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

#include "net/connection_parts.h"

enum {
    MEMORY_PAUSE_MS = 1000,            /* before a stream tries again, for want of memory */
    LINGER_BYTES_MAX = 8 * 1024 * 1024 /* that are thrown away behind the last answer */
};

/* Answers. */

/* What the client has taken of the output is not held any more. NULL: charged. */
static const char *charge_output (connection_t *self, uint64_t bytes)
{
    const size_t held = connection_owed (self);
    if (held < self->output_charged)
        connection_give_back (self, &self->output_charged, self->output_charged - held);
    return connection_charge (self, &self->output_charged, bytes);
}

/* The answer itself has no room. What says so is small, and not charged. */
static void send_no_room (connection_t *self, const char *why)
{
    bytes_t out = BYTES_INIT;
    response_t response;
    const exchange_handler_t *handler = self->set->handler;
    response_init (&response, 503);
    handler->refuse (handler->context, NULL, &response, 503, why);
    response_write (&out, &response, (response_frame_t){.close = true});
    response_clear (&response);
    self->unread = true;
    connection_set_phase (self, PHASE_CLOSING);
    if (out.failed || evbuffer_add (connection_output (self), out.data, out.length) != 0)
        self->dying = true; /* no answer can be given */
    bytes_free (&out);
}

static void send_response (connection_t *self, const response_t *response, bool head_only)
{
    bytes_t out = BYTES_INIT;
    const bool close = self->phase == PHASE_CLOSING;
    response_write (&out, response, (response_frame_t){.close = close, .head_only = head_only});
    const char *flaw = out.failed ? CONNECTION_NO_MEMORY : charge_output (self, out.length);
    if (flaw == NULL && evbuffer_add (connection_output (self), out.data, out.length) != 0)
        flaw = CONNECTION_NO_MEMORY;
    if (flaw != NULL)
        send_no_room (self, flaw);
    bytes_free (&out);
}

void connection_throw_away (connection_t *self)
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
    connection_set_phase (self, PHASE_LINGERING);
    connection_throw_away (self);
}

/* After the last answer: what still comes is thrown away for a moment, because a socket that is
 * closed with unread bytes in it would take the answer with it. */
void connection_linger (connection_t *self)
{
    if (!self->unread || self->ended) {
        connection_free (self);
        return;
    }
    begin_lingering (self);
    if (self->dying)
        connection_free (self);
}

void connection_refuse (connection_t *self, int status, const char *reason)
{
    response_t response;
    const exchange_handler_t *handler = self->set->handler;
    response_init (&response, status);
    handler->refuse (handler->context, self->has_exchange ? &self->exchange : NULL, &response,
                     status, reason);
    connection_end_exchange (self, status);
    self->unread = true;
    connection_set_phase (self, PHASE_CLOSING);
    send_response (self, &response, false);
    response_clear (&response);
}

connection_t *connection_of (exchange_t *exchange)
{
    return (connection_t *) (void *) ((char *) exchange - offsetof (connection_t, exchange));
}

static size_t waiting_input (const connection_t *self)
{
    return evbuffer_get_length (bufferevent_get_input (self->buffers));
}

static bool nothing_follows (const connection_t *self)
{
    return self->unread || !self->exchange.request->keep_alive || self->set->draining ||
           (self->ended && waiting_input (self) == 0) ||
           self->requests >= connection_limit (self, SETTING_CONNECTION_REQUESTS_MAX);
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
    connection_end_exchange (self, response->status);
    connection_set_phase (self, last ? PHASE_CLOSING : PHASE_IDLE);
    codec_next (self->codec);
    send_response (self, response, head_only);
    response_clear (response);
    self->running = was_running;
    if (!was_running)
        connection_run (self);
}

static void drop_body (exchange_t *exchange)
{
    connection_t *self = connection_of (exchange);
    bytes_free (&exchange->body);
    connection_discharge (self, &self->body_charged);
}

/* Streams. */

void connection_doom (connection_t *self)
{
    self->doomed = true;
    event_active (self->deadline, EV_TIMEOUT, 0);
}

/* The stream tells its source when to go on; it is not to wait for a client that owes nothing. */
static bool refuse_piece (connection_t *self)
{
    const struct timeval pause = {MEMORY_PAUSE_MS / 1000, 0};
    self->wants_room = true;
    if (connection_owed (self) == 0 || self->phase == PHASE_BUSY)
        event_add (self->deadline, &pause);
    return false;
}

static bool write_piece (exchange_t *exchange, const void *data, size_t length)
{
    connection_t *self = connection_of (exchange);
    struct evbuffer *output = connection_output (self);
    if (self->doomed || exchange->request->method == HTTP_METHOD_HEAD || length == 0)
        return !self->doomed;
    if (self->is_sized && length > self->left) {
        connection_doom (self); /* more than was told would be read as the next answer */
        return false;
    }
    if ((connection_owed (self) > 0 &&
         connection_owed (self) + length > connection_limit (self, SETTING_OUTPUT_BYTES_MAX)) ||
        charge_output (self, length) != NULL)
        return refuse_piece (self);
    self->silent = false;
    if ((self->chunked && evbuffer_add_printf (output, "%zx\r\n", length) < 0) ||
        evbuffer_add (output, data, length) != 0 ||
        (self->chunked && evbuffer_add (output, "\r\n", 2) != 0))
        connection_doom (self); /* half of a piece may be there: nothing can follow */
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
    connection_set_phase (self, PHASE_STREAM);
    self->silent = true;
    response_write (
        &head, response,
        (response_frame_t){.close = self->last, .stream = true, .chunked = self->chunked});
    if (head.failed || evbuffer_add (connection_output (self), head.data, head.length) != 0)
        connection_doom (self);
    else if (response->body.length > 0 &&
             !write_piece (exchange, response->body.data, response->body.length))
        connection_doom (self);
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
        evbuffer_add (connection_output (self), "0\r\n\r\n", 5) != 0)
        self->dying = true;
    connection_end_exchange (self, exchange->stream_status);
    self->last = self->last || exchange->is_last || self->set->draining;
    self->wants_room = false;
    connection_set_phase (self, self->last ? PHASE_CLOSING : PHASE_IDLE);
    codec_next (self->codec);
    self->unread = self->last && !self->ended && waiting_input (self) > 0;
    if (self->last && connection_owed (self) == 0 && self->unread)
        begin_lingering (self);
    else if (self->last && connection_owed (self) == 0)
        self->dying = true;
    if (self->doomed)
        self->dying = true;
    self->running = was_running;
    if (!was_running)
        connection_run (self);
}

void connection_speak (connection_t *self)
{
    exchange_t *exchange = &self->exchange;
    if (exchange->on_quiet != NULL)
        exchange->on_quiet (exchange);
    else if (exchange->ping != NULL)
        write_piece (exchange, exchange->ping, strlen (exchange->ping));
}

/* A stream that has been silent says that it is there; one that waited for memory tries again. */
void connection_tick (connection_t *self)
{
    const bool wants_room = self->wants_room && connection_owed (self) == 0;
    connection_set_phase (self, PHASE_STREAM);
    if (wants_room) {
        self->wants_room = false;
        if (self->exchange.on_room != NULL)
            self->exchange.on_room (&self->exchange);
        return;
    }
    if (self->silent && connection_owed (self) == 0)
        connection_speak (self);
    self->silent = true;
}

void connection_stop (connection_t *self)
{
    exchange_t *exchange = &self->exchange;
    if (exchange->on_stop != NULL)
        exchange->on_stop (exchange);
    else if (self->phase == PHASE_STREAM)
        finish_stream (exchange);
}

void connection_lend_calls (exchange_t *exchange)
{
    exchange->drop_body = drop_body;
    exchange->reply = reply;
    exchange->stream = begin_stream;
    exchange->write = write_piece;
    exchange->await_room = await_room;
    exchange->finish = finish_stream;
    exchange->cut = cut;
}
