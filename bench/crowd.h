/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Many connections from one thread: clients that only say hello and send heartbeats, or subscribe
 * as well. They speak ZMTP 3.0 themselves, because a socket of libzmq or a client of the library
 * costs more than the connection that is to be measured.
 *
 * Every function ends the bench when the broker ends a connection or says what nobody expects. */
#ifndef TASKMQ_BENCH_CROWD_H
#define TASKMQ_BENCH_CROWD_H

#include <stdatomic.h>

#include "bench.h"

typedef struct crowd crowd_t;

typedef struct crowd_options {
    size_t count;
    bool bare;       /* the server is a bare ROUTER that returns every message; no heartbeats */
    bool subscribes; /* to all events of the namespace from now on, with credit */
    bool stalls;     /* … but reads nothing any more once it is subscribed */
    /* When the event of sequence sent_first + i was caused (now_ns), or NULL: for the latency. */
    const atomic_ullong *sent_ns;
    size_t sent_count;
    uint64_t sent_first;
} crowd_options_t;

/* Returns when all are welcomed and, if they subscribe, subscribed. options is copied. */
crowd_t *crowd_start (const server_t *server, const crowd_options_t *options);
/* Waits until every subscriber has everything up to seq, at most so many seconds, and ends the
 * bench if one has not, or has got more or fewer events than there were. */
void crowd_expect (crowd_t *self, uint64_t seq, double seconds);
/* Events received by all of them together. */
uint64_t crowd_events (crowd_t *self);
/* Messages with events received by all of them together. */
uint64_t crowd_messages (crowd_t *self);
/* From the cause of the oldest event of each message to its arrival. */
void crowd_latency (crowd_t *self, histogram_t *out);
void crowd_stop (crowd_t **self);

#endif
