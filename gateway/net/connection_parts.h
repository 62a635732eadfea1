/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A connection as its files see it: what it holds of what all share (holding.c), what is sent on it
 * (sending.c), whether its client is there (leaving.c), and what is read, with its beginning and
 * its end (reading.c). */
#ifndef TASKMQ_GATEWAY_NET_CONNECTION_PARTS_H
#define TASKMQ_GATEWAY_NET_CONNECTION_PARTS_H

#include "net/connection.h"

struct bufferevent;
struct evbuffer;
struct event;

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
    struct event *probe; /* of a client that has closed its side; NULL: it has not */
    codec_t *codec;
    phase_t phase;
    bool running; /* inside of its own calls: it is not freed there */
    bool dying;   /* it is freed when they return */
    bool has_exchange;
    bool unread;   /* an answer was given before the request was whole */
    bool ended;    /* the client sends nothing more; what it has sent is to be answered */
    bool asked;    /* it was, whether it is there; what comes back is waited for */
    bool last;     /* nothing follows the stream on this connection */
    bool chunked;  /* the stream, … */
    bool is_sized; /* … and whether its length was told: */
    uint64_t left; /* what is still to come of it */
    bool silent;   /* the stream has written nothing since its last ping */
    bool wants_room;
    bool held;   /* a piece of the body is on its way; the next one is not read yet */
    bool doomed; /* it is freed in the loop's next turn: a caller may still hold its exchange */
    uint64_t requests;
    int64_t ended_ms;       /* CLOCK_MONOTONIC, like the next */
    int64_t took_ms;        /* its client took a byte, or there was none to take */
    account_t *holder;      /* who its memory counts to: whoever it brought a good token of last */
    uint64_t input_charged; /* of heads, and of what stands behind a request */
    uint64_t body_charged;
    uint64_t output_charged;
    uint64_t thrown_away;
    exchange_t exchange;
};

#define CONNECTION_NO_MEMORY "memory is exhausted"

/* Holding. */

uint64_t connection_limit (const connection_t *self, setting_t setting);
struct evbuffer *connection_output (const connection_t *self);
/* Bytes that its client has not taken yet. */
size_t connection_owed (const connection_t *self);
/* From now on it is known when it took some. False: memory is exhausted. */
bool connection_watch_output (connection_t *self);
/* The list of all: who did something last stands first. */
void connection_enter_list (connection_t *self);
void connection_leave_list (connection_t *self);
bool connection_is_stranger (const connection_t *self);
/* NULL: it counts from now on; else why there is no room for it, a sentence. May end others. */
const char *connection_charge (connection_t *self, uint64_t *account, uint64_t bytes);
void connection_give_back (connection_t *self, uint64_t *account, uint64_t bytes);
/* All of it. */
void connection_discharge (connection_t *self, uint64_t *account);
/* What it holds counts to whom its request is of, from now on. */
void connection_take_holder (connection_t *self);

/* Sending. */

/* Whose exchange it is. */
connection_t *connection_of (exchange_t *exchange);
/* Gives an exchange the calls that send. */
void connection_lend_calls (exchange_t *exchange);
/* Answers what is no request, or has no room, and ends the connection. */
void connection_refuse (connection_t *self, int status, const char *reason);
/* It ends in the loop's next turn, because a caller may go on with its exchange. */
void connection_doom (connection_t *self);
/* The gateway stops. */
void connection_stop (connection_t *self);
/* Its stream says that it is there, if it can. May end the exchange. */
void connection_speak (connection_t *self);
/* It is some time since its stream wrote something. */
void connection_tick (connection_t *self);
/* The last answer was sent. */
void connection_linger (connection_t *self);
void connection_throw_away (connection_t *self);

/* Leaving. */

/* Its client has closed its side: what is due is still sent, if it is there. May free it. */
void connection_await_leaving (connection_t *self);

/* The connection. */

void connection_set_phase (connection_t *self, phase_t phase);
/* status 0: its client has left. */
void connection_end_exchange (connection_t *self, int status);
/* Goes on until there is nothing to read, or an answer is due. */
void connection_run (connection_t *self);

#endif
