/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What requests are served with: whom the gateway knows, whom it is known as, and the ways to the
 * broker. */
#ifndef TASKMQ_GATEWAY_REST_SERVICE_H
#define TASKMQ_GATEWAY_REST_SERVICE_H

#include "auth/origin.h"
#include "auth/proxied.h"
#include "auth/seal.h"
#include "auth/session.h"
#include "auth/tokens.h"
#include "base/seats.h"
#include "base/settings.h"
#include "events/stream.h"
#include "http/exchange.h"
#include "link/link.h"
#include "net/connection.h"
#include "net/spool.h"
#include "rest/problem.h"

enum {
    SERVICE_LINKS_MAX = 64,
    SERVICE_ROUTES_MAX = 64,
    SERVICE_STATUSES = 600,
    SERVICE_TIMES = 15 /* buckets of the histogram, beside +Inf */
};

typedef struct service_numbers {
    uint64_t answers[SERVICE_ROUTES_MAX][SERVICE_STATUSES]; /* the last row: of no route */
    uint64_t left;                                          /* requests whose client left */
    uint64_t times[SERVICE_TIMES + 1];
    uint64_t times_us;
    uint64_t auth_failures;
    uint64_t rate_limited;
    uint64_t cut;                    /* answers that could not be brought to their end */
    uint64_t refused[PROBLEM_KINDS]; /* before they were served, by why */
} service_numbers_t;

enum {
    SCRAPED_PAGES_MAX = 16 /* of a namespace's queues; the others have no workers in /metrics */
};

/* What the broker told last of its numbers. */
typedef struct scraped {
    tmq_stats_t *stats;
    tmq_queue_report_t *pages[SCRAPED_PAGES_MAX]; /* of queues: who serves them */
    size_t pages_count;
    size_t queues; /* that they have */
    int64_t at_ms;
} scraped_t;

/* Large payloads under way. */
typedef struct service_uploads {
    seats_t seats;
    uint64_t bytes; /* on the disk, as they will be */
} service_uploads_t;

/* Who serves /mcp. run NULL: nobody, because there are no tools. */
typedef struct service_mcp {
    void *context;
    void (*run) (void *context, exchange_t *exchange);
    void (*measure) (void *context, bytes_t *out); /* its numbers, for /metrics */
} service_mcp_t;

typedef struct service {
    settings_t settings;
    names_t hosts;   /* that are ours, beside loopback */
    names_t origins; /* of pages that may use us, beside our own */
    seal_t seal;     /* of what is handed out, to be taken back */
    sessions_t sessions;
    tokens_t tokens;
    proxied_t proxied;
    names_t authorization_servers;
    principal_t *anybody; /* who makes requests without a token; NULL: nobody */
    failures_t failures;
    link_t *links[SERVICE_LINKS_MAX];
    size_t links_count;
    scraped_t scraped[SERVICE_LINKS_MAX]; /* of the link in the same place */
    const connections_numbers_t *connections;
    int64_t began_ms;  /* since the epoch */
    streams_t streams; /* of events */
    seats_t stream_seats;
    spool_t *spool;
    service_uploads_t uploads;
    service_mcp_t mcp;
    service_numbers_t numbers;
    uint64_t asked_last; /* whose request it was: the principal's address, never followed */
    int64_t others_us;   /* when it was of another one than the request before, CLOCK_MONOTONIC */
    int64_t warned_ms;   /* when an answer was warned of last, CLOCK_MONOTONIC; 0: never */
    uint64_t unwarned;   /* answers like it since then */
    int64_t cut_ms;      /* when one was told last; 0: never */
    int64_t spool_ms;    /* the same of a disk that does not keep payloads */
} service_t;

/* False: bodies, answers and trees take as much memory as they may. */
bool service_has_room (const service_t *self);
link_t *service_link (const service_t *self, const char *ns);
/* A principal asks. */
void service_note (service_t *self, const principal_t *principal);
/* What was computed for a principal; below 0: what it was charged for and did not take. */
void service_spend (const service_t *self, principal_t *principal, double us);
/* How long requests of a principal are to wait, who took more time than 'principal_time' while
 * others ask, too; 0: not at all. */
uint64_t service_wait_ms (const service_t *self, const principal_t *principal);
service_t *service_of (const exchange_t *exchange);

#endif
