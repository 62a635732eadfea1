/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The connection under the core: one DEALER socket at a time and its monitor.
 *
 * A connection that ended, for whatever reason, is never mended: the core asks for a new one. Only
 * the thread that drives the client calls in here. Failure: what cannot be made is reported like a
 * lost connection. */
#ifndef TASKMQ_CLIENT_TRANSPORT_H
#define TASKMQ_CLIENT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zmq.h>

#include "keys.h"

/* What a connection by CURVE needs. */
typedef struct curve {
    key_public_t server;
    key_public_t own;
    key_secret_t secret;
} curve_t;

/* How a connection came to its end. */
typedef enum transport_end {
    TRANSPORT_GOES_ON = 0,
    TRANSPORT_NOBODY,     /* it could not be made */
    TRANSPORT_CLOSED,     /* the peer went away */
    TRANSPORT_SILENCE,    /* … in the middle of the handshake, without a word */
    TRANSPORT_REFUSED,    /* the peer does not accept our key */
    TRANSPORT_LATER,      /* … or not now */
    TRANSPORT_MECHANISM,  /* one side wants keys, the other none */
    TRANSPORT_NO_PROTOCOL /* what came is no handshake of ours */
} transport_end_t;

typedef struct transport {
    void *context;
    void *socket; /* NULL: no connection */
    void *monitor;
    int socket_fd; /* descriptors that tell of news for each, see transport_wait */
    int monitor_fd;
    bool monitor_news;   /* the monitor may have something to tell */
    uint64_t connection; /* the core's number of it, 0: none */
    bool met;            /* somebody was there */
    bool reached;        /* the peer's machine has taken the connection, perhaps for nobody */
    bool ready;          /* the handshake with the peer is done */
    int wake_fd;         /* becomes readable when another thread wants us */
} transport_t;

/* What was received: one or two frames. */
typedef struct transport_message {
    zmq_msg_t envelope;
    zmq_msg_t body;
    bool has_body;
} transport_message_t;

/* Closes the present connection and, unless connection is 0, makes a new one. False with a text if
 * it could not be made. curve: NULL for a connection without keys. */
bool transport_connect (transport_t *self, uint64_t connection, const char *endpoint,
                        const curve_t *curve, char *text, size_t text_size);
/* Takes a message if there is one: 1, 0, or -1 for a message that cannot be the broker's. */
int transport_receive (transport_t *self, transport_message_t *out);
void transport_message_close (transport_message_t *message);
/* True if the peer is there and a message can be sent without waiting. */
bool transport_writable (transport_t *self);
/* Takes both frames; body may be NULL. Only when writable. */
bool transport_send (transport_t *self, zmq_msg_t *envelope, zmq_msg_t *body);
/* Looks at what the monitor has seen. */
transport_end_t transport_watch (transport_t *self);
/* Waits until something happens, at most timeout_ms (-1: for ever). */
void transport_wait (transport_t *self, bool for_output, long timeout_ms);
/* Waits for another thread only, at most timeout_ns (under a second). */
void transport_pause (transport_t *self, long timeout_ns);

#endif
