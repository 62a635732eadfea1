/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who is at the other end of which routing id.
 *
 * A ROUTER knows its peers by routing ids, which peers may choose and which come again after a
 * reconnection. The rest of the broker knows them by numbers that are never used twice. A number
 * stands for one connection: the same routing id on another descriptor or of another user is
 * another peer, so nobody inherits a link.
 *
 * The table is bounded. When it is full the one that ended longest ago makes room, then one that
 * has been silent for long; if there is none, newcomers are counted among a few that may only be
 * told so. One thread, no sockets, no clock. */
#ifndef TASKMQ_NET_PEERS_H
#define TASKMQ_NET_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/peer.h"
#include "net/unread.h"

enum {
    PEERS_LIMIT_MAX = 65000,    /* with PEERS_REFUSED_MAX a place fits the 16 bits of a number */
    PEERS_REFUSED_MAX = 256,    /* newcomers that found no room, at the same time */
    PEERS_ENDED_MS = 60 * 1000, /* an ended one is kept for so long if there is room: its
                                         messages may be on the way */
    PEERS_SILENT_MS = 10 * 60 * 1000, /* 300 missed heartbeats */
    PEERS_CROWDED_MS = 15 * 1000,     /* … when a newcomer needs the room */
    PEERS_ROUTING_ID_BYTES_MAX = 255,
    PEERS_KEY_BYTES = 16
};

typedef struct peers peers_t;

/* limit: peers at the same time, at most PEERS_LIMIT_MAX. key: secret, for the hash table. */
peers_t *peers_new (size_t limit, const uint8_t key[PEERS_KEY_BYTES]);
void peers_free (peers_t **self); /* accepts a NULL object */

/* Where a message came from. */
typedef struct origin {
    const void *routing_id;
    size_t routing_id_bytes; /* 1..PEERS_ROUTING_ID_BYTES_MAX */
    int fd;                  /* descriptor of the connection, -1 if unknown */
    const char *user;        /* whom the handler of ZAP let in */
} origin_t;

typedef struct seen {
    peer_t peer;
    const char *identity; /* the user; valid until peers_release */
    bool is_new;          /* this is its first message */
    bool refused;         /* there is no room for it: it may be told so, and nothing else */
    void *own;            /* what stands in peers_own */
} seen_t;

/* The peer of a message that has just arrived, made if it is new. */
seen_t peers_seen (peers_t *self, const origin_t *origin, int64_t now_ms);
/* Nobody holds an identity any more: frees what was forgotten. */
void peers_release (peers_t *self);
/* The routing id to send to; NULL when the peer is not known any more. */
const void *peers_route (const peers_t *self, peer_t peer, size_t *routing_id_bytes);
/* Where what was sent to the peer and not read is counted: empty at first. NULL: not known. Its own
 * end is the table's. */
unread_t **peers_unread (peers_t *self, peer_t peer);
/* How the peer came in, for a later look; kept with it. */
void peers_set_knock (peers_t *self, peer_t peer, const char *knock);
const char *peers_knock (peers_t *self, peer_t peer); /* NULL: not set, or the peer is not known */
/* A peer whose connection lives; false behind the last. cursor: 0 at first. */
typedef struct peers_item {
    int fd;
    const char *identity;
    const char *knock; /* NULL: not set */
} peers_item_t;
bool peers_each (const peers_t *self, uint32_t *cursor, peers_item_t *out);
/* A place for what the caller has of its own for the peer, NULL at first. NULL: not known. */
void **peers_own (peers_t *self, peer_t peer);
/* The descriptor of its connection; -1: not known, or it has ended. */
int peers_fd (const peers_t *self, peer_t peer);
/* The connection on this descriptor ended: its peer is among peers_gone_next. */
void peers_ended (peers_t *self, int fd, int64_t now_ms);
/* A peer whose connection ended or was taken over until then, or which had to make room; each once,
 * in this order; 0: none. */
peer_t peers_gone_next (peers_t *self, int64_t until_ms);
/* The peer of the connection on this descriptor, and how many messages came from it (modulo 2^32);
 * 0: none has come. */
peer_t peers_at (const peers_t *self, int fd, uint32_t *messages);
/* The descriptor of the peer with this routing id; -1: none. */
int peers_fd_of (const peers_t *self, const void *routing_id, size_t bytes);
/* Drops peers that ended or fell silent long ago. */
void peers_forget (peers_t *self, int64_t now_ms);
/* Those that were not refused. */
size_t peers_count (const peers_t *self);

#endif
