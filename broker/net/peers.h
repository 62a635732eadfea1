/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who is at the other end of which routing id.
 *
 * A ROUTER knows its peers by routing ids, which peers may choose and which come again after a
 * reconnection. The rest of the broker knows them by numbers that are never used twice. A number
 * stands for one connection: the same routing id on another descriptor or from another address is
 * another peer, so nobody inherits a link.
 *
 * The table is bounded; a peer whose connection ended is forgotten after a while, as is one that
 * has been silent for long. One thread, no sockets, no clock. */
#ifndef TASKMQ_NET_PEERS_H
#define TASKMQ_NET_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "core/engine.h"

enum {
    PEERS_LIMIT_MAX = 65535, /* a number holds its place in 16 bits */
    PEERS_ENDED_MS =
        60 * 1000, /* an ended one is kept for so long: its messages may be on the way */
    PEERS_SILENT_MS = 10 * 60 * 1000, /* 300 missed heartbeats */
    PEERS_KEY_BYTES = 16
};

typedef struct peers peers_t;

/* limit: peers at the same time, at most PEERS_LIMIT_MAX. key: secret, for the hash table. */
peers_t *peers_new (size_t limit, const uint8_t key[PEERS_KEY_BYTES]);
void peers_free (peers_t **self); /* accepts a NULL object */

/* Where a message came from. */
typedef struct origin {
    const void *routing_id;
    size_t routing_id_bytes; /* 1..255 */
    int fd;                  /* descriptor of the connection, -1 if unknown */
    const char *address; /* as the transport says: "localhost:uid:gid:pid" for ipc, else an IP */
} origin_t;

/* The peer of a message that has just arrived, made if it is new; 0 when the table is full.
 * *identity (who the peer is taken for: "uid:N" or "local") is valid until peers_forget. */
peer_t peers_seen (peers_t *self, const origin_t *origin, int64_t now_ms, const char **identity);
/* The routing id to send to; NULL when the peer is not known any more. */
const void *peers_route (const peers_t *self, peer_t peer, size_t *routing_id_bytes);
/* The connection on this descriptor ended: its peer is among peers_gone_next. */
void peers_ended (peers_t *self, int fd, int64_t now_ms);
/* A peer whose connection ended or was taken over since the last call; 0: none. */
peer_t peers_gone_next (peers_t *self);
/* Drops peers that ended or fell silent long ago. */
void peers_forget (peers_t *self, int64_t now_ms);
size_t peers_count (const peers_t *self);

#endif
