/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where slow requests spent their time (log/slow): stamps on their way through the loop.
 *
 *     received -> applied -> its commit began -> durable -> released by the loop -> sent
 *
 * A request whose answer rests on no commit, as that of a list, has the first and the last two
 * alone. A request that waits on purpose is not followed, nor is one that is answered only when it
 * is refused. Off, it holds nothing and costs a comparison. The server's thread. */
#ifndef TASKMQ_BROKER_TRACE_H
#define TASKMQ_BROKER_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/engine/engine.h"
#include "store/committer.h"
#include "taskmq.pb-c.h"

enum {
    TRACE_REQUESTS_MAX = 65536, /* followed at once; beyond it the oldest one is let go */
    TRACE_LINES_MAX = 100       /* told in a second; those beyond are counted in the next line */
};

/* Of a request that took too long, in us. */
typedef struct trace_stages {
    const char *name; /* of its kind */
    uint64_t request;
    int64_t waited;    /* received until applied: in its line */
    int64_t open;      /* … until its commit began */
    int64_t commit;    /* … until that was durable */
    int64_t release;   /* … until the loop knew */
    int64_t answer;    /* … until its answer was given to ZeroMQ */
    uint64_t left_out; /* others that were not told since the last one */
} trace_stages_t;

typedef void trace_tell_t (void *context, peer_t peer, const trace_stages_t *stages);

typedef struct trace trace_t;

/* Off until trace_set. tell: of each that took too long, before trace_sent returns. */
trace_t *trace_new (trace_tell_t *tell, void *context);
void trace_free (trace_t **self); /* accepts a NULL object */
/* Requests that take so long are told; 0: none. What is followed is forgotten then. */
void trace_set (trace_t *self, uint32_t slow_ms);
bool trace_is_on (const trace_t *self);

/* It was applied just now, and its answer rests on this batch or an older one. */
void trace_applied (trace_t *self, peer_t peer, const Taskmq__Request *request, uint64_t batch,
                    int64_t received_us);
/* A commit is done, and what rests on it was released just now. */
void trace_committed (trace_t *self, const commit_result_t *result);
/* A message has left: the requests that its replies end are over. */
void trace_sent (trace_t *self, const output_t *output);
/* Requests that are followed. */
size_t trace_count (const trace_t *self);

/* A trace_tell_t: a line of the log. */
void trace_log (void *context, peer_t peer, const trace_stages_t *stages);

#endif
