/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the listening sockets share: limits of a connection, and the monitor that tells of them. */
#ifndef TASKMQ_NET_SOCKET_H
#define TASKMQ_NET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <zmq.h>

#include "keys.h"

enum {
    SOCKET_HANDSHAKE_MS = 5000, /* from accept to the end of ZeroMQ's own handshake */
    SOCKET_DOMAIN_MAX = 80
};

/* An option that cannot be refused, of a socket that is ours. */
void socket_set (void *socket, int option, int value);
/* For poll; the edge counts. */
int socket_fd (void *socket);
/* Whoever connects to what is bound from now on is let in by ZAP (zap.h), which is told the domain,
 * or not at all. key: they must know its public half, and prove a key of their own; NULL: no
 * mechanism. All of it is read back. False when ZeroMQ did not take it: then nothing may be
 * bound. */
bool socket_guard (void *socket, const char *domain, const key_secret_t *key);
/* One network more from which tcp connections are taken; as long as there is none, from all. */
bool socket_allow (void *socket, const char *network);
/* Bounds of what a stranger may cause before anything of it is read. frame_bytes: the longest
 * frame; a longer one ends its connection. Before the first bind. */
void socket_limit (void *socket, int64_t frame_bytes);
/* False when nothing waits (with ZMQ_DONTWAIT). */
bool socket_receive (void *socket, zmq_msg_t *frame, int flags);

/* The socket that tells of connections: ZMQ_EVENT_ACCEPTED, _DISCONNECTED, _ACCEPT_FAILED, and of
 * closed listeners. NULL when it cannot be had. Ended by zmq_socket_monitor (socket, NULL, 0) and
 * zmq_close. */
void *monitor_open (void *context, void *socket);
/* The same for what became of a client's handshakes. */
void *handshakes_open (void *context, void *socket);
/* The next event and its value, in most cases a descriptor; false when none waits. */
bool monitor_receive (void *monitor, uint16_t *event, uint32_t *value);

#endif
