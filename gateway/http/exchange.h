/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* An exchange: one request and its one response. What stands above sees this, and no socket.
 *
 * An exchange is made when a head is there. It ends with its response, or when the client leaves;
 * then it does not exist any more: what was started for it must find it by its ticket.
 *
 * A response is one whole (reply), or a stream: stream, any number of writes, finish. What a client
 * is owed is bounded by output_bytes_max: a write that would exceed it is refused, and on_room
 * tells when the client has taken what it was owed. So a slow client stops its own source, and
 * nobody else. A client that takes nothing for output_timeout is closed.
 *
 * A stream whose response is sized has so many bytes and tells so. One that cannot be brought to
 * its end is cut: the client sees that it is not whole. */
#ifndef TASKMQ_GATEWAY_HTTP_EXCHANGE_H
#define TASKMQ_GATEWAY_HTTP_EXCHANGE_H

#include "base/seats.h"
#include "http/codec.h"
#include "http/response.h"
#include "http/target.h"

enum {
    EXCHANGE_ID_SIZE = 129,
    EXCHANGE_PEER_SIZE = 64,
    EXCHANGE_TRACE_SIZE = 56,
    EXCHANGE_SPAN_SIZE = 17,
    EXCHANGE_LIMIT_SIZE = 144
};

/* What a stream carries. */
typedef enum stream_kind { STREAM_BYTES, STREAM_EVENTS, STREAM_MCP } stream_kind_t;
enum { STREAM_KINDS = STREAM_MCP + 1 };

typedef struct exchange exchange_t;
struct account;
struct download;
struct principal;
struct route;
struct service;
struct upload;

struct exchange {
    const http_request_t *request;
    char peer[EXCHANGE_PEER_SIZE];        /* where it comes from: an address, or "unix" */
    uint64_t body_bytes_max;              /* set at the head: how much body is taken, … */
    char body_limit[EXCHANGE_LIMIT_SIZE]; /* … and a sentence for who sends more */
    bytes_t body;                         /* whole when the request is */
    int64_t began_us;                     /* CLOCK_MONOTONIC */

    /* Of those above. */
    struct service *service;
    char id[EXCHANGE_ID_SIZE];       /* of the request, in the answer and in log lines */
    char trace[EXCHANGE_TRACE_SIZE]; /* its trace: traceparent as it came, or one made here */
    char span[EXCHANGE_SPAN_SIZE];   /* its own part of it */
    bool traced;                     /* it came with a trace */
    http_target_t target;
    const struct route *route; /* NULL: none */
    struct principal *principal;
    struct account *account; /* whose memory its body and answer are; NULL: not known */
    uint64_t advance_us;     /* of the loop's time, that its principal has paid before */
    struct link *link;
    bool by_cookie;            /* who it is was told by the cookie of the page */
    const char *parameters[2]; /* of the path */
    void *state;               /* freed by state_free */
    void (*state_free) (void *state);
    seat_t seat;               /* of its stream */
    struct download *download; /* of bytes, under way; NULL: none */
    struct upload *upload;     /* of a large payload; the same */
    uint64_t ticket;           /* of what is under way for it; 0: nothing */

    /* Set at the head, for a body that is taken in pieces: called when body has so many bytes, as
     * the last thing that is done with it. body may be moved away. Nothing more is read until
     * resume; the time for the body begins anew then. */
    void (*on_full) (exchange_t *self);
    size_t body_piece_bytes;
    void (*resume) (exchange_t *self);

    /* Set by those above, once the request is whole; each may stay NULL. They are called by the
     * loop, never from inside of a call of this exchange. */

    /* The client has left, or was closed, before its answer was whole. Nothing can be sent; end
     * follows at once. */
    void (*on_gone) (exchange_t *self);
    /* A write was refused, or room was awaited; what was owed then has been sent. */
    void (*on_room) (exchange_t *self);
    /* The gateway stops: to reply or to finish now. NULL: a stream is finished, and a reply that is
     * due is waited for, as long as drain_timeout. */
    void (*on_stop) (exchange_t *self);
    /* Once a second: what had to wait may go on. */
    void (*on_tick) (exchange_t *self);
    /* A stream has written nothing for stream_ping: in place of the ping. */
    void (*on_quiet) (exchange_t *self);
    /* What a stream writes when it has written nothing for stream_ping, so that what stands between
     * does not take it for dead. Borrowed. NULL: nothing. */
    const char *ping;
    bool is_last;              /* its stream ends the connection: nothing behind it is answered */
    int stream_status;         /* 0: no stream has begun */
    stream_kind_t stream_kind; /* set before it begins */

    /* The body is not needed any more: its memory is for others. It is empty then. */
    void (*drop_body) (exchange_t *self);
    /* Answers, once, and ends the exchange. Clears response. */
    void (*reply) (exchange_t *self, response_t *response);
    /* Begins a stream with the head of the response. Its body is the first write, of any length.
     * The exchange goes on until finish. Clears response. */
    void (*stream) (exchange_t *self, response_t *response);
    /* Sends a piece of the stream, whole: it is copied. False: not taken, because too much would be
     * owed. A piece that is longer than the bound is taken when nothing is owed. */
    bool (*write) (exchange_t *self, const void *data, size_t length);
    /* on_room is to be called when what is owed has been sent; in a second, if nothing is owed. */
    void (*await_room) (exchange_t *self);
    /* Ends the stream and with it the exchange. One that is sized and not whole is cut. */
    void (*finish) (exchange_t *self);
    /* Ends the exchange in the middle of its stream: the connection is closed, so nobody takes what
     * has come for all. */
    void (*cut) (exchange_t *self);
};

/* Who answers. */
typedef struct exchange_handler {
    void *context;
    /* The head is there. Answers at once, or sets body_bytes_max. */
    void (*head) (void *context, exchange_t *exchange);
    /* The request is whole: answers now or later. */
    void (*whole) (void *context, exchange_t *exchange);
    /* It ends: answered with a status, or (0) its client has left before. Of a stream it is the
     * status it began with. Forgets what belongs to it. */
    void (*end) (void *context, exchange_t *exchange, int status);
    /* What the peer sent is no request, or there is no room for it: fills in response. exchange:
     * whose request it is; NULL: nobody's yet. */
    void (*refuse) (void *context, const exchange_t *exchange, response_t *response, int status,
                    const char *reason);
} exchange_handler_t;

#endif
