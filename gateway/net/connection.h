/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Connections: one set of them, with what they have in common. */
#ifndef TASKMQ_GATEWAY_NET_CONNECTION_H
#define TASKMQ_GATEWAY_NET_CONNECTION_H

#include "base/account.h"
#include "base/settings.h"
#include "http/exchange.h"
#include "net/loop.h"

/* What a connection is about. */
typedef enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_READING,   /* a head, or a body */
    CONNECTION_WAITING,   /* for its answer */
    CONNECTION_STREAMING, /* a part of the answer is sent, the rest comes in time */
    CONNECTION_CLOSING
} connection_state_t;
enum { CONNECTION_STATES = CONNECTION_CLOSING + 1 };

typedef struct connections_numbers {
    uint64_t connections;
    uint64_t states[CONNECTION_STATES]; /* of them */
    uint64_t streams;                   /* of them */
    uint64_t kinds[STREAM_KINDS];       /* of the streams */
    uint64_t accepted;
    uint64_t refused;      /* connections for which there was no room */
    uint64_t displaced;    /* that were closed to make room for others */
    uint64_t timeouts;     /* heads and bodies that did not come in time */
    uint64_t memory_bytes; /* of heads, bodies and answers, now */
    account_t strangers;   /* of it, what they take who brought no good token */
} connections_numbers_t;

typedef struct connection connection_t;

typedef struct connections {
    loop_t *loop;
    const settings_t *settings;
    const exchange_handler_t *handler;
    connection_t *first; /* the one that did something last */
    connection_t *last;
    connection_t *walk; /* the next one of a round through all; it may end meanwhile */
    connections_numbers_t numbers;
    bool displacing; /* one gives way just now, and nobody for what it still says */
    bool draining;   /* each ends with the answer that is due */
    bool stopping;   /* what ends now does so for us, not for its client */
    /* One has ended; of draining only. */
    watch_fn *left;
    void *left_context;
} connections_t;

/* Takes fd, unless it returns NULL: memory is exhausted. */
connection_t *connection_new (connections_t *set, int fd, const char *peer);
void connection_free (connection_t *self);
/* Begins to drain: closes those of whom no answer is due, and tells the others. */
void connections_drain (connections_t *set);

/* Closes one that can be spared, so that another one may come: of those that nobody waits for the
 * one that has done nothing for the longest time, and first of those who never told who they are;
 * then one whose client does not read its answer, of whoever has the most. False: there is none. */
bool connections_make_room (connections_t *set);

typedef void exchange_fn (void *context, exchange_t *exchange);
/* Each exchange that is under way. The function may end it, and no other. */
void connections_each (connections_t *set, exchange_fn *fn, void *context);

#endif
