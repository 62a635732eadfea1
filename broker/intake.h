/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What peers send on its way into the engine: received, judged, handled as far as a round allows.
 *
 * A message that is finished in its round costs no more than that. The others wait in lines
 * (inbox.h): first every new message gets a share of the round, up to half of it while there are
 * lines, then the lines get what is left in turn. One thread. */
#ifndef TASKMQ_BROKER_INTAKE_H
#define TASKMQ_BROKER_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "inbox.h"
#include "net/router.h"
#include "store/store.h"
#include "trace.h"

typedef struct intake intake_t;

typedef struct intake_options {
    engine_t *engine; /* borrowed, as all of them */
    router_t *router;
    store_t *store;
    trace_t *trace;
    size_t drain_messages; /* taken in one round */
    size_t drain_requests;
    size_t drain_bytes;
    int64_t drain_ms;
    inbox_limits_t lines;
    size_t peers_max;                     /* of the router */
    void (*stats_wanted) (void *context); /* before a round with a request for stats */
    void *context;
} intake_options_t;

/* NULL: out of memory. */
intake_t *intake_new (const intake_options_t *options);
/* Other limits of lines; what waits already stays. */
void intake_configure (intake_t *self, const inbox_limits_t *lines);
void intake_free (intake_t **self); /* accepts a NULL object */

/* One round: takes what has arrived, within the limits, unless `closed`; applies what the engine's
 * allowance permits. */
void intake_round (intake_t *self, now_t now, bool closed);

/* Of the last round. */
size_t intake_taken (const intake_t *self); /* messages */
bool intake_emptied (const intake_t *self); /* nothing was left in the socket */
bool intake_turned (const intake_t *self);  /* one from everybody was taken, and some have more */
/* The next round has something to do without waiting for anybody. */
bool intake_is_busy (const intake_t *self);
/* The lines are so full that nothing is received; only time changes that when it is not busy. */
bool intake_is_full (const intake_t *self);
/* The last round found the store out of reach: what it needed of that was refused. */
bool intake_missed (const intake_t *self);
/* Nothing waits. */
bool intake_is_idle (const intake_t *self);

/* The peer's connection ended. True: it has nothing waiting, so the engine may be told. False:
 * intake tells the engine after the peer's last message. */
bool intake_peer_gone (intake_t *self, peer_t peer);

typedef struct intake_stats {
    uint64_t refused_messages; /* as a whole: garbage, wrong frames, or no room among the peers */
    uint64_t inbox_refused;    /* messages for which their line had no room */
    uint64_t inbox_messages;   /* waiting now */
    uint64_t inbox_bytes;
} intake_stats_t;
void intake_stats (const intake_t *self, intake_stats_t *out);

#endif
