/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Listening, with everything that a connection is judged by set before its listener exists. */
#ifndef TASKMQ_NET_LISTEN_H
#define TASKMQ_NET_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keys.h"
#include "net/address.h"

/* A bound for a thread of ZeroMQ that hangs. It takes 0.2 ms as a rule; with nine threads waiting
 * for each processor it took 33 ms at most. */
enum { LISTEN_END_MS = 1000 };

/* Listeners of a socket that are closing, in the time of ZeroMQ's threads; nobody waits for it. */
typedef struct closing {
    size_t count;
    bool ended;       /* the last of them did, and nobody has asked since */
    int64_t until_ms; /* then it is tried whether their addresses are free */
} closing_t;

/* Who may come near. All borrowed. */
typedef struct guard {
    const key_secret_t *server_key; /* NULL: no address can ask for a key */
    const char *const *networks;    /* from which tcp connections are taken; none: from all */
    size_t networks_count;
    unsigned io_threads; /* of ZeroMQ: with several, encryption has all but the first to itself */
    int handshake_ms;    /* how long a handshake may take; 0: SOCKET_HANDSHAKE_MS */
} guard_t;

/* Which of so many threads serve an address, a bit each; 0: any. */
uint64_t listen_threads (unsigned io_threads, bool curve);

/* Why an address is not listened on. */
typedef struct listen_error {
    bool open; /* it cannot be guarded: everybody could come in */
    char text[ADDRESS_ERROR_SIZE];
} listen_error_t;

/* Begins to close a listener, which ends every connection that came by it. What was sent leaves
 * within the linger. */
void listen_close (void *socket, const char *uri, closing_t *closing, int64_t now_ms);
/* The socket's monitor told ZMQ_EVENT_CLOSED. */
void listen_closed (closing_t *closing);
/* There is something to ask for. */
bool listen_is_closing (const closing_t *closing);
/* Their addresses may be bound again. */
bool listen_all_closed (closing_t *closing, int64_t now_ms);

/* Binds the socket; connections are asked about under this domain. False with an error. */
bool listen_bind (void *socket, const address_t *address, const char *domain, const guard_t *guard,
                  listen_error_t *error);

#endif
