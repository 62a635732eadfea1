/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Several brokers on one database: one owns it, the others wait. All are started with --standby, as
 * a supervisor would, so whichever comes back waits for whichever has the data. */
#ifndef TASKMQ_TESTS_POSTGRES_CLUSTER_H
#define TASKMQ_TESTS_POSTGRES_CLUSTER_H

#include "stage.h"
#include "support/load.h"
#include "support/proxy.h"

enum {
    CLUSTER_BROKERS_MAX = 3,
    CLUSTER_LEASE_MS = 2000,
    CLUSTER_END_MS = 180000,
    CLUSTER_FENCED = 13 /* the exit code of who was taken over from */
};

typedef struct cluster_times {
    int64_t ms[4096];
    size_t count;
} cluster_times_t;

typedef struct cluster {
    stage_t stage; /* the server; its broker is not used */
    daemon_t brokers[CLUSTER_BROKERS_MAX];
    unsigned count;
    char uris[CLUSTER_BROKERS_MAX][2 * POSTGRES_URI_SIZE];
    proxy_t *databases[CLUSTER_BROKERS_MAX]; /* between a broker and the server, or NULL */
    proxy_t *doors[CLUSTER_BROKERS_MAX];     /* between clients and a broker, or NULL */
    unsigned fenced; /* brokers that ended because another one had taken over */
} cluster_t;

/* A server that runs, and so many brokers that do not yet. through: each broker has a proxy to the
 * server, and another one before its door. lease: of all, as cluster/lease has it. */
void cluster_init (cluster_t *self, unsigned brokers, bool through, const char *lease,
                   unsigned seed);
/* The same on a server that the caller has, with this URI. */
void cluster_init_on (cluster_t *self, unsigned brokers, const char *uri, const char *lease);
void cluster_destroy (cluster_t *self);

/* All of them; returns when one owns the data and the others wait. */
void cluster_start (cluster_t *self);
/* Where clients find them. */
void cluster_endpoints (const cluster_t *self, const char *out[LOAD_ENDPOINTS_MAX]);
/* The clients of a run on it. */
load_options_t cluster_load (const cluster_t *self);

/* Who owns the data, as this server knows; `count` when nobody does. */
unsigned cluster_owner (const cluster_t *self, const postgres_t *server);
/* Starts those again that have ended with FENCED, as a supervisor does; any other end fails. */
void cluster_tend (cluster_t *self);
/* Ends a broker that may have ended by itself, and starts it again. */
void cluster_kill (cluster_t *self, unsigned number);
void cluster_stop (cluster_t *self, unsigned number);
/* Waits until a submitter hears, not before since_ms, that something is durable. Tends meanwhile.
 * Returns when it was. */
int64_t cluster_wait_accepted (cluster_t *self, load_t *load, int64_t since_ms);

/* The end of a run: everything is checked, by the owner's files, too. */
void cluster_finish (cluster_t *self, load_t *load);

void cluster_time (cluster_times_t *times, int64_t ms);
/* How long it took, with p50 and p99, and an ASCII picture of one line per quarter of a second.
 * Puts them in order. */
void cluster_print_times (cluster_times_t *times, const char *of);
/* Fails and says what was missed, if it took longer than that. Only of times that were printed, and
 * only where the run is a whole one: a short one has too few of them. */
void cluster_assert_times (const cluster_times_t *times, const char *of, int64_t p50_ms,
                           int64_t p99_ms);

#endif
