/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ROUTER: messages of peers in, outputs of the engine out (A42, A48, A49).
 *
 * Nothing here blocks. What a peer does wrong costs it its own message at most. The one thread of
 * the server calls everything; libzmq's I/O thread does the rest. */
#ifndef TASKMQ_NET_ROUTER_H
#define TASKMQ_NET_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "net/listen.h"
#include "net/peers.h"
#include "net/zap.h"

enum {
    ROUTER_ENDPOINTS_MAX = 16,
    /* A small message that is kept keeps the buffer that libzmq received it into. */
    ROUTER_KEPT_BYTES = 8192,
    ROUTER_LOOK_MS = 200 /* between two calls of router_watch_bytes */
};

typedef struct router router_t;

typedef struct router_options {
    void *context;               /* of ZeroMQ; the broker has one */
    size_t peers_max;            /* connections that are told apart at the same time */
    size_t held_max;             /* messages received and not yet released */
    size_t mute_max;             /* connections that have said nothing; 0: any number */
    int64_t mute_ms;             /* how long a connection may be without a link */
    int linger_ms;               /* how long router_free may go on sending */
    size_t unread_bytes_max;     /* given to ZeroMQ for one peer and not sent; 0: UNREAD_BYTES */
    size_t unread_all_bytes_max; /* the same of all peers; 0: UNREAD_ALL_BYTES */
    const zap_t *zap; /* borrowed: who let the peers in; NULL: they are never asked about */
    guard_t guard;    /* of the addresses */
    uint8_t key[PEERS_KEY_BYTES]; /* secret, for the table of peers */
} router_options_t;

/* NULL: `error` says why. */
router_t *router_new (const router_options_t *options, char *error, size_t error_size);
/* Listens no longer; what was sent leaves within the linger. Accepts a NULL object. */
void router_free (router_t **self);

/* Listens on one more address. Returns the endpoint that clients connect to (with the real port),
 * valid as long as the router, or NULL with `error`. */
const char *router_bind (router_t *self, const address_t *address, listen_error_t *error);

/* The guard's key is another one: the addresses that ask for keys are to be opened anew by
 * router_renew, which ends all connections that came by them. */
void router_outdate (router_t *self);
/* Opens anew what is to be; nothing waits for the old listeners to close, so it is to be called
 * again while router_is_closing. False: an address is not to be had now; to be called again. */
bool router_renew (router_t *self, int64_t now_ms, listen_error_t *error);
bool router_is_closing (const router_t *self);

/* A message of a peer. How many frames are good is the validator's to judge; only the first two are
 * kept. */
typedef struct incoming {
    peer_t peer;          /* 0: there is nothing to be done for it */
    const char *identity; /* valid until router_release */
    bool refused;         /* no room for it: whatever it asks is to be answered LIMIT */
    size_t frames;
    const uint8_t *envelope; /* first frame */
    size_t envelope_bytes;
    const uint8_t *body; /* second frame, NULL if there was none */
    size_t body_bytes;
    void *own; /* what stands in router_own */
    size_t at; /* for router_keep */
} incoming_t;

/* The next message, false when none waits (or held_max are held). Its frames stay valid until
 * router_release, which gives back all that were received. */
bool router_receive (router_t *self, int64_t now_ms, incoming_t *out);
void router_release (router_t *self);
/* Takes the frames of a message that was received and not yet released; they are not copied, but
 * may move: router_kept says where they are. */
typedef struct kept kept_t;
kept_t *router_keep (router_t *self, size_t at);
/* The frames of a message that is kept: sets these members of `out` and no other. */
void router_kept (kept_t *kept, incoming_t *out);
void router_drop (kept_t *kept);
/* A place for what the caller has of its own for the peer, NULL at first. NULL: the peer is not
 * known any more. */
void **router_own (router_t *self, peer_t peer);
/* The IP address that the peer connects from; empty on ipc and of a peer that is gone. */
void router_address (const router_t *self, peer_t peer, char *out, size_t out_size);
/* The key that the peer came in by; false: by none, or the peer is not known any more. */
bool router_key (router_t *self, peer_t peer, key_public_t *out);
/* Looks for connections that came to life: a socket that is read slowly does that rarely. */
void router_refresh (router_t *self);

/* Hands a message over for sending; the body is not copied. False when the transport refused it:
 * the peer is gone or takes nothing. */
bool router_send (router_t *self, const output_t *output);

/* For poll: readable when router_receive may have something. The edge counts, not the level: poll
 * only when router_receive said false and nothing was sent after it. */
int router_fd (const router_t *self);
/* The same for router_watch. */
int router_watch_fd (const router_t *self);
/* Takes in which connections began and ended; false when there are more to be taken. */
bool router_watch (router_t *self, int64_t now_ms);
/* A peer whose connection ended before heard_ms, 0 for none. Everything that had arrived by then
 * must have been applied, so that a peer's last words come before its end. */
peer_t router_gone_next (router_t *self, int64_t heard_ms);
/* How many messages have to be taken, so that one is among them from everybody who has sent
 * anything: ZeroMQ takes one from each in turn. */
size_t router_turn (const router_t *self);
/* Cuts connections that send messages without an end. Call each ROUTER_LOOK_MS while
 * router_has_connections. reading: messages are being taken. */
void router_watch_bytes (router_t *self, bool reading);
bool router_has_connections (const router_t *self);
/* Forgets what ended long ago, and cuts connections without a link; call once a second, with no
 * message held. heard_ms: as for router_gone_next. is_linked: the peer has said hello, and its link
 * stands. */
void router_maintain (router_t *self, int64_t now_ms, int64_t heard_ms,
                      bool (*is_linked) (void *context, peer_t peer), void *context);

/* Asks again for everybody who is in, and cuts those whom the policy would not let in any more, or
 * lets in as somebody else. */
void router_recheck (router_t *self);

/* Of the library that runs: 40304 is 4.3.4. */
unsigned router_zeromq_version (void);

typedef struct router_stats {
    uint64_t received;
    uint64_t sent;
    uint64_t
        refused_peers;    /* messages of peers for whom there was no room, or with too long an id */
    uint64_t send_failed; /* outputs that the transport refused */
    uint64_t accept_failed;   /* connections that could not be accepted: no descriptors left */
    uint64_t peers;           /* now */
    uint64_t unread_full;     /* … because it had too much unread */
    uint64_t unread_bytes;    /* now: given to ZeroMQ and not yet sent; only what is large */
    uint64_t connections;     /* now */
    uint64_t mute;            /* now: connections that have said nothing */
    uint64_t cut_crowd;       /* connections cut because too many had said nothing */
    uint64_t cut_claimed;     /* connections cut because they chose their routing id */
    uint64_t cut_revoked;     /* connections cut because the policy does not let them in any more */
    uint64_t cut_mute;        /* connections cut because they did not say hello */
    uint64_t unauthenticated; /* messages of connections that nobody let in; they were cut */
    uint64_t cut_endless;     /* … because of a message without an end, or of too many frames */
} router_stats_t;
void router_stats (const router_t *self, router_stats_t *out);

#endif
