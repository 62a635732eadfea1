/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Streams of events to many clients.
 *
 * Streams of one filter share a hub: one flow from the broker, each item rendered once, the last
 * pieces kept in a ring. A stream that begins earlier than the ring, or with a snapshot, catches up
 * by a flow of its own and then joins; so many do that at once, and others wait. One whose client
 * does not read what it is owed gives its turn up meanwhile. The first one of a filter makes its
 * own flow the hub's.
 *
 * A client that does not read is a place that stands still. When the ring has moved past it, the
 * stream leaves the hub, and catches up from its cursor once its client has read what it was owed.
 * Nobody else waits for it.
 *
 * Each event comes once and in order, or a gap is told. */
#ifndef TASKMQ_GATEWAY_EVENTS_STREAM_H
#define TASKMQ_GATEWAY_EVENTS_STREAM_H

#include "events/filters.h"
#include "http/exchange.h"
#include "link/link.h"

enum {
    STREAM_RING_BYTES_MAX = 4 * 1024 * 1024,   /* of a hub */
    STREAM_RINGS_BYTES_MAX = 64 * 1024 * 1024, /* of all hubs: each has its part of it at most */
    STREAM_HUBS_MAX = 256,                     /* beyond, a stream keeps its own flow */
    STREAM_CATCHING_MAX = 64,                  /* streams that catch up at once, … */
    STREAM_CATCHING_OWN_MAX = 16,              /* … of one principal */
    STREAM_RETRY_MS = 1000                     /* after which a reader connects again */
};

typedef struct stream stream_t;
typedef struct hub hub_t;

/* All streams of a gateway. All zero: none. */
typedef struct streams {
    hub_t *hubs;
    size_t hubs_count;
    stream_t *waiting; /* to catch up; the first */
    stream_t *last_waiting;
    size_t waiting_count;
    size_t catching;
    filter_use_t *filters;
    bool waking;
    uint64_t events; /* that were sent, with notices and gaps */
    uint64_t gaps;
    uint64_t lag_ms; /* of the last event of a hub, from the broker's clock to ours */
} streams_t;

typedef struct stream_options {
    tmq_filter_t filter;  /* what it points to is the exchange's, or of its state */
    const char *owner;    /* whose tasks alone; NULL: of the namespace */
    const char *cursor;   /* to go on behind; NULL: from now on */
    bool snapshot;        /* first the present tasks; not with a cursor */
    bool notices;         /* progress too */
    bool one_task;        /* ends with the end of the task */
    uint64_t filters_max; /* that streams of its account have */
    /* May it compute now? What it must not stays with the broker, or in the ring, and is tried
     * again at the exchange's tick. */
    bool (*may) (exchange_t *exchange);
    /* It has computed for so long; of what a hub computes, each reader its part. */
    void (*spent) (exchange_t *exchange, double us);
    /* Begins the answer: false if it was answered otherwise. */
    bool (*begin) (exchange_t *exchange, response_t *response);
    /* Answers, instead of a stream, with what the library told. */
    void (*refuse) (exchange_t *exchange, int code, const tmq_error_t *error);
} stream_options_t;

typedef enum stream_opening {
    STREAM_OPENED,
    STREAM_NO_MEMORY,
    STREAM_NO_FILTER /* its account has as many others as it may */
} stream_opening_t;

/* Answers the exchange by a stream, which becomes its state and keeps the one that it had. What is
 * not opened has done nothing. */
stream_opening_t stream_open (streams_t *all, exchange_t *exchange,
                              const stream_options_t *options);

#endif
