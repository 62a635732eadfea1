/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who comes in: the handler that ZeroMQ asks for every connection, by its protocol ZAP (RFC 27).
 *
 * It must be there before the first address is listened on, and in the same context of ZeroMQ:
 * without it everybody is refused on sockets that net/socket.h has guarded. It answers in the
 * server's loop, so a loop that stands still delays newcomers only. What it does not answer, ZeroMQ
 * ends after the time of a handshake. One thread. */
#ifndef TASKMQ_NET_ZAP_H
#define TASKMQ_NET_ZAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/audit.h"
#include "core/access/policy.h"
#include "core/base/clocks.h"

enum {
    ZAP_REQUESTS_MAX = 256, /* answered in one round */
    ZAP_FRAMES_MAX = 8,     /* of a request, without the routing id */
    ZAP_DOMAIN_MAX = 80,
    ZAP_ADDRESS_MAX = 80,
    /* Connections of one principal; beyond them it is told to come again later. Not of the
     * broker's own user and root, and not without an access file. */
    ZAP_CONNECTS_BURST = 64,
    ZAP_CONNECTS_PER_SECOND = 5,
    ZAP_PRINCIPALS_MAX = 16384, /* remembered */
    /* Refusals of one address before it is kept waiting, and how many come back in a second. */
    ZAP_REFUSALS_BURST = 10,
    ZAP_REFUSALS_PER_SECOND = 1,
    ZAP_ADDRESSES_MAX = 4096, /* remembered; an IPv6 network of 64 bits is one */
    ZAP_SILENT_MAX = 256      /* kept waiting at a time; beyond it they are refused at once */
};

/* A property of each message beside User-Id: how its connection came in. */
#define ZAP_KNOCK "Knock"

typedef struct zap zap_t;

typedef struct zap_options {
    void *context;     /* of ZeroMQ; the broker has one */
    int64_t silent_ms; /* how long ZeroMQ waits for an answer: the time of a handshake */
    uint8_t key[16];   /* secret, for the tables */
    audit_t *audit;    /* borrowed; is told who was refused. NULL: nobody */
} zap_options_t;

/* NULL: `error` says why. */
zap_t *zap_new (const zap_options_t *options, char *error, size_t error_size);
void zap_free (zap_t **self); /* accepts a NULL object */

/* For poll: readable when there may be requests; poll only when zap_answer said true. */
int zap_fd (const zap_t *self);
/* Answers the requests that wait; false when there are more of them. */
bool zap_answer (zap_t *self, now_t now);
/* Who may come in from now on: kept; NULL: everybody who reaches ipc or loopback. */
void zap_policy (zap_t *self, policy_t *policy);
/* Those who are in have to be asked about again (router_recheck): the policy has changed, or the
 * time of one of its principals has ended. True once for each such event. */
bool zap_wants_recheck (zap_t *self, now_t now);
/* knock: the property ZAP_KNOCK of a message. Whoever came in by it would still come in, and as the
 * same. */
bool zap_is_current (const zap_t *self, const char *knock, const char *identity);
/* The key that it came in by; false: by none. Accepts NULL. Pure. */
bool zap_knock_key (const char *knock, key_public_t *out);
/* All who came in under this domain of a feed, since zap_forget_feed, still would, as the same. */
bool zap_is_feed_current (const zap_t *self, const char *domain);
/* Its connections have ended. */
void zap_forget_feed (zap_t *self, const char *domain);
/* The policy lists keys. */
bool zap_lists_keys (const zap_t *self);
/* While our own look at the doors goes on nobody is kept waiting. */
void zap_probing (zap_t *self, bool on);
/* From now on everybody is told to come again later. */
void zap_stop (zap_t *self);

/* What a connection says of itself, as ZeroMQ tells it. */
typedef enum zap_mechanism { ZAP_NULL = 1, ZAP_CURVE } zap_mechanism_t;
typedef struct zap_request {
    char domain[ZAP_DOMAIN_MAX + 1]; /* of the address that it connected to, see address.h */
    char address[ZAP_ADDRESS_MAX + 1];
    zap_mechanism_t mechanism;
    key_public_t key; /* with ZAP_CURVE: it has the secret of it */
} zap_request_t;
typedef struct zap_frame {
    const void *bytes;
    size_t length;
} zap_frame_t;
/* Reads the frames of a request from the empty one on; false when it is none. Pure. */
bool zap_parse (const zap_frame_t *frames, size_t count, zap_request_t *out);

typedef struct zap_stats {
    uint64_t accepted;
    uint64_t refused; /* for good, and those told to come again */
    uint64_t silent;  /* kept waiting */
    uint64_t rated;   /* of the refused: their principal connects too often */
} zap_stats_t;
void zap_stats (const zap_t *self, zap_stats_t *out);

#endif
