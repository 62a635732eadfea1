/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "trace.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "codec.h"
#include "core/base/list.h"
#include "core/base/map.h"
#include "core/base/memory.h"
#include "log/log.h"
#include "request_kinds.h"
#include "timestamp.h"

enum {
    COMMITS = 256, /* remembered: an answer leaves soon behind its commit */
    SECOND_US = 1000 * 1000
};

typedef struct followed_request {
    node_t node; /* by when it was applied */
    peer_t peer;
    uint64_t id;
    const char *name;
    uint64_t batch;
    int64_t received_us;
    int64_t applied_us;
} followed_request_t;

typedef struct commit {
    uint64_t batch;
    int64_t begun_us;
    int64_t durable_us;
    int64_t released_us;
} commit_t;

struct trace {
    trace_tell_t *tell;
    void *context;
    int64_t slow_us; /* 0: off */
    node_t requests;
    map_t by_id;
    uint8_t hash_key[crypto_shorthash_KEYBYTES]; /* a peer must not choose ids that collide */
    commit_t commits[COMMITS];                   /* a ring */
    size_t next_commit;
    int64_t second_us; /* in which lines are counted */
    size_t lines;
    uint64_t left_out;
    arena_t *arena;
};

trace_t *trace_new (trace_tell_t *tell, void *context)
{
    trace_t *self = memory_zero (1, sizeof (*self));
    self->tell = tell;
    self->context = context;
    list_init (&self->requests);
    randombytes_buf (self->hash_key, sizeof (self->hash_key));
    return self;
}

static uint32_t hash_of (const trace_t *self, peer_t peer, uint64_t id)
{
    uint64_t key[2] = {peer, id};
    uint8_t hash[crypto_shorthash_BYTES];
    uint32_t out;
    crypto_shorthash (hash, (const uint8_t *) key, sizeof (key), self->hash_key);
    memcpy (&out, hash, sizeof (out));
    return out;
}

static void let_go (trace_t *self, followed_request_t *request)
{
    map_remove (&self->by_id, hash_of (self, request->peer, request->id), request);
    list_remove (&request->node);
    free (request);
}

static void forget (trace_t *self)
{
    while (!list_is_empty (&self->requests))
        let_go (self, LIST_ITEM (list_first (&self->requests), followed_request_t, node));
    map_free (&self->by_id);
    arena_free (self->arena);
    self->arena = NULL;
    self->next_commit = 0;
    for (size_t i = 0; i < COMMITS; i++)
        self->commits[i] = (commit_t){0};
}

void trace_free (trace_t **self_p)
{
    trace_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    forget (self);
    free (self);
}

void trace_set (trace_t *self, uint32_t slow_ms)
{
    self->slow_us = (int64_t) slow_ms * 1000;
    if (slow_ms == 0)
        forget (self);
    else if (self->arena == NULL)
        self->arena = arena_new (CODEC_BROKER_ARENA_BYTES);
    if (self->arena == NULL)
        self->slow_us = 0;
}

bool trace_is_on (const trace_t *self)
{
    return self->slow_us > 0;
}

static followed_request_t *find (const trace_t *self, peer_t peer, uint64_t id)
{
    size_t cursor = MAP_START;
    followed_request_t *request;
    while ((request = map_next (&self->by_id, hash_of (self, peer, id), &cursor)) != NULL)
        if (request->peer == peer && request->id == id)
            return request;
    return NULL;
}

static bool is_prompt (const Taskmq__Request *request)
{
    const request_kind_t *kind = request_kind (request);
    return kind != NULL && (kind->flags & REQUEST_QUIET) == 0 &&
           request->op_case != TASKMQ__REQUEST__OP_WAIT;
}

void trace_applied (trace_t *self, peer_t peer, const Taskmq__Request *request, uint64_t batch,
                    int64_t received_us)
{
    if (self->slow_us == 0 || !is_prompt (request))
        return;
    followed_request_t *last = find (self, peer, request->id);
    if (last != NULL) /* it was sent again */
        let_go (self, last);
    if (self->by_id.count >= TRACE_REQUESTS_MAX)
        let_go (self, LIST_ITEM (list_first (&self->requests), followed_request_t, node));
    followed_request_t *followed = memory_zero (1, sizeof (*followed));
    followed->peer = peer;
    followed->id = request->id;
    followed->name = request_name (request);
    followed->batch = batch;
    followed->received_us = received_us;
    followed->applied_us = clock_us (CLOCK_MONOTONIC);
    list_push_back (&self->requests, &followed->node);
    map_insert (&self->by_id, hash_of (self, peer, request->id), followed);
}

void trace_committed (trace_t *self, const commit_result_t *result)
{
    if (self->slow_us == 0)
        return;
    self->commits[self->next_commit] =
        (commit_t){result->batch, result->begun_us, result->ended_us, clock_us (CLOCK_MONOTONIC)};
    self->next_commit = (self->next_commit + 1) % COMMITS;
}

/* The commit that the batch was a part of; NULL when it was durable before, or that is long ago. */
static const commit_t *commit_of (const trace_t *self, const followed_request_t *request)
{
    const commit_t *found = NULL;
    for (size_t i = 0; i < COMMITS; i++) {
        const commit_t *commit = &self->commits[i];
        bool later = commit->batch >= request->batch && commit->released_us > request->applied_us;
        if (later && (found == NULL || commit->batch < found->batch))
            found = commit;
    }
    return found;
}

static bool may_tell (trace_t *self, int64_t now_us)
{
    if (now_us - self->second_us >= SECOND_US) {
        self->second_us = now_us;
        self->lines = 0;
    }
    if (self->lines >= TRACE_LINES_MAX) {
        self->left_out++;
        return false;
    }
    self->lines++;
    return true;
}

static void tell (trace_t *self, const followed_request_t *request, int64_t now_us)
{
    if (!may_tell (self, now_us))
        return;
    trace_stages_t stages = {.name = request->name,
                             .request = request->id,
                             .waited = request->applied_us - request->received_us,
                             .answer = now_us - request->applied_us,
                             .left_out = self->left_out};
    const commit_t *commit = commit_of (self, request);
    if (commit != NULL) {
        /* A commit under way already: its beginning was before. */
        int64_t begun =
            commit->begun_us > request->applied_us ? commit->begun_us : request->applied_us;
        int64_t durable = commit->durable_us > begun ? commit->durable_us : begun;
        stages.open = begun - request->applied_us;
        stages.commit = durable - begun;
        stages.release = commit->released_us - durable;
        stages.answer = now_us - commit->released_us;
    }
    self->left_out = 0;
    self->tell (self->context, request->peer, &stages);
}

void trace_sent (trace_t *self, const output_t *output)
{
    if (self->slow_us == 0 || self->by_id.count == 0)
        return;
    int64_t now_us = clock_us (CLOCK_MONOTONIC);
    codec_report_t report;
    arena_next_message (self->arena);
    const Taskmq__BrokerMessage *message =
        codec_broker_message (&report, self->arena, output->envelope, output->envelope_bytes);
    for (size_t i = 0; message != NULL && i < message->n_replies; i++) {
        const Taskmq__Reply *reply = message->replies[i];
        followed_request_t *request = reply->more ? NULL : find (self, output->peer, reply->id);
        if (request == NULL)
            continue;
        if (now_us - request->received_us >= self->slow_us)
            tell (self, request, now_us);
        let_go (self, request);
    }
    arena_reset (self->arena);
}

size_t trace_count (const trace_t *self)
{
    return self->by_id.count;
}

void trace_log (void *context, peer_t peer, const trace_stages_t *stages)
{
    (void) context;
    log_write (
        LOG_LEVEL_INFO, "SLOW", "a request took long",
        LOG_FIELDS (LOG_TEXT ("op", stages->name), LOG_NUMBER ("peer", peer),
                    LOG_NUMBER ("request", stages->request), LOG_NUMBER ("line_us", stages->waited),
                    LOG_NUMBER ("open_us", stages->open), LOG_NUMBER ("commit_us", stages->commit),
                    LOG_NUMBER ("release_us", stages->release),
                    LOG_NUMBER ("answer_us", stages->answer),
                    LOG_NUMBER ("left_out", stages->left_out)));
}
