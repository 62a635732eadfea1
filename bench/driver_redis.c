/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Redis streams with appendfsync always, in two variants: the bare queue, and the same with what a
 * task broker keeps (status, payload and result in a hash, an event stream, a notification), each
 * change in one MULTI. */

#include "bench.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ID_BYTES = 48,
    CLAIM_REPLIES = 5,    /* MULTI, HSET, XADD, PUBLISH, EXEC */
    SUBMIT_REPLIES = 6,   /* … and XADD of the queue */
    COMPLETE_REPLIES = 7, /* … and XACK, XDEL */
    BARE_COMPLETE_REPLIES = 2
};

typedef struct client {
    redisContext *redis;
    char queue[64];
    char name[32]; /* consumer */
    size_t prefetch;
    size_t open;
    bool work;                            /* the second variant */
    char taken[BENCH_TAKE_MAX][ID_BYTES]; /* ids in the stream */
    payload_t payloads[BENCH_TAKE_MAX];
    size_t taken_count;
} client_t;

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return program_find ("redis-server", path);
}

static void start (server_t *server)
{
    server->port = server_free_port ();
    char port[16];
    snprintf (port, sizeof port, "%d", server->port);
    server_spawn (server, (char *[]){"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir",
                                     server->directory, "--save", "", "--appendonly", "yes",
                                     "--appendfsync", "always", "--daemonize", "no", NULL});
    server_wait_port (server);
}

static redisReply *reply_next (client_t *self)
{
    void *reply = NULL;
    if (redisGetReply (self->redis, &reply) != REDIS_OK)
        die ("redis: %s", self->redis->errstr);
    redisReply *answer = reply;
    if (answer->type == REDIS_REPLY_ERROR)
        die ("redis: %s", answer->str);
    return answer;
}

static void replies_skip (client_t *self, size_t count)
{
    for (size_t i = 0; i < count; i++)
        freeReplyObject (reply_next (self));
}

static client_t *client_new (const server_t *server, const char *queue, bool work)
{
    static unsigned names;
    client_t *self = need_memory (calloc (1, sizeof *self));
    self->redis = redisConnect ("127.0.0.1", server->port);
    if (!self->redis || self->redis->err)
        die ("redis: no connection");
    snprintf (self->queue, sizeof self->queue, "%s", queue);
    snprintf (self->name, sizeof self->name, "c%u",
              __atomic_fetch_add (&names, 1, __ATOMIC_RELAXED));
    self->work = work;
    /* Whoever comes second is told that the group exists. */
    freeReplyObject (redisCommand (self->redis, "XGROUP CREATE %s g 0 MKSTREAM", queue));
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    redisFree (self->redis);
    free (self);
}

static void append_event (client_t *self, const char *kind, const payload_t *payload)
{
    redisAppendCommand (self->redis, "XADD events * kind %s task %s-%llu", kind, self->queue,
                        (unsigned long long) payload->lives);
    redisAppendCommand (self->redis, "PUBLISH changes %s-%llu", self->queue,
                        (unsigned long long) payload->lives);
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    return client_new (server, queue, false);
}

static void *work_producer_new (const server_t *server, const char *queue)
{
    return client_new (server, queue, true);
}

static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    if (self->work) {
        redisAppendCommand (self->redis, "MULTI");
        redisAppendCommand (self->redis, "HSET task:%s-%llu status queued payload %b", self->queue,
                            (unsigned long long) payload->lives, payload, sizeof *payload);
    }
    redisAppendCommand (self->redis, "XADD %s * p %b", self->queue, payload, sizeof *payload);
    if (self->work) {
        append_event (self, "submitted", payload);
        redisAppendCommand (self->redis, "EXEC");
    }
    self->open++;
}

static size_t submit_settle (void *producer, size_t open)
{
    client_t *self = producer;
    for (; self->open > open; self->open--)
        replies_skip (self, self->work ? SUBMIT_REPLIES : 1);
    return self->open;
}

static void submit (void *producer, const payload_t *payload)
{
    submit_start (producer, payload);
    submit_settle (producer, 0);
}

static void call (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    submit (producer, payload);
    redisAppendCommand (self->redis, "BLPOP results:%s 60", self->queue);
    replies_skip (self, 1);
}

/* Workers. */

static void *worker_of (const server_t *server, const char *queue, size_t prefetch, bool work)
{
    client_t *self = client_new (server, queue, work);
    self->prefetch = prefetch;
    return self;
}

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    return worker_of (server, queue, prefetch, false);
}

static void *work_worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    return worker_of (server, queue, prefetch, true);
}

/* entry: [id, [name, payload]] */
static void taken_add (client_t *self, const redisReply *entry, payload_t *out)
{
    const redisReply *fields = entry->element[1];
    if (fields->elements != 2 || fields->element[1]->len != sizeof *out)
        die ("redis: an unknown entry");
    snprintf (self->taken[self->taken_count], ID_BYTES, "%s", entry->element[0]->str);
    memcpy (out, fields->element[1]->str, sizeof *out);
    self->payloads[self->taken_count++] = *out;
}

/* The claim is stored before the worker sees the task. */
static void claim_all (client_t *self)
{
    for (size_t i = 0; i < self->taken_count; i++) {
        redisAppendCommand (self->redis, "MULTI");
        redisAppendCommand (self->redis, "HSET task:%s-%llu status working", self->queue,
                            (unsigned long long) self->payloads[i].lives);
        append_event (self, "claimed", &self->payloads[i]);
        redisAppendCommand (self->redis, "EXEC");
    }
    replies_skip (self, self->taken_count * CLAIM_REPLIES);
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    size_t wanted = self->prefetch < max ? self->prefetch : max;
    redisAppendCommand (self->redis, "XREADGROUP GROUP g %s COUNT %d BLOCK 100 STREAMS %s >",
                        self->name, (int) wanted, self->queue);
    redisReply *reply = reply_next (self);
    if (reply->type == REDIS_REPLY_ARRAY) {
        const redisReply *entries = reply->element[0]->element[1];
        for (size_t i = 0; i < entries->elements; i++)
            taken_add (self, entries->element[i], &out[self->taken_count]);
    }
    freeReplyObject (reply);
    if (self->work)
        claim_all (self);
    return self->taken_count;
}

static void complete (client_t *self, size_t index)
{
    const payload_t *payload = &self->payloads[index];
    if (self->work) {
        redisAppendCommand (self->redis, "MULTI");
        redisAppendCommand (self->redis, "HSET task:%s-%llu status completed result done",
                            self->queue, (unsigned long long) payload->lives);
    }
    redisAppendCommand (self->redis, "XACK %s g %s", self->queue, self->taken[index]);
    redisAppendCommand (self->redis, "XDEL %s %s", self->queue, self->taken[index]);
    if (self->work) {
        append_event (self, "completed", payload);
        redisAppendCommand (self->redis, "EXEC");
    }
    if (payload->wants_result == 1)
        redisAppendCommand (self->redis, "RPUSH results:%s done", self->queue);
}

static size_t finish (void *worker, bool settle)
{
    (void) settle; /* always settled: the answers come in order */
    client_t *self = worker;
    for (size_t i = 0; i < self->taken_count; i++)
        complete (self, i);
    for (size_t i = 0; i < self->taken_count; i++) {
        replies_skip (self, self->work ? COMPLETE_REPLIES : BARE_COMPLETE_REPLIES);
        if (self->payloads[i].wants_result == 1)
            replies_skip (self, 1);
    }
    size_t ended = self->taken_count;
    self->taken_count = 0;
    return ended;
}

const driver_t redis_driver = {
    .system = "redis",
    .durability = "fsync",
    .note =
        "a stream, appendfsync always; a claim is the stream's own, there is no status, result or "
        "event",
    .version = "redis-server --version | cut -d' ' -f1-3",
    .available = available,
    .start = start,
    .producer_new = producer_new,
    .producer_free = client_free,
    .submit = submit,
    .submit_start = submit_start,
    .submit_settle = submit_settle,
    .call = call,
    .worker_new = worker_new,
    .worker_free = client_free,
    .take = take,
    .finish = finish,
};

const driver_t redis_work_driver = {
    .system = "redis-work",
    .durability = "fsync",
    .note =
        "a stream, appendfsync always, and a hash for status, payload and result, an event stream "
        "and PUBLISH, each change in one MULTI",
    .version = "redis-server --version | cut -d' ' -f1-3",
    .available = available,
    .start = start,
    .producer_new = work_producer_new,
    .producer_free = client_free,
    .submit = submit,
    .submit_start = submit_start,
    .submit_settle = submit_settle,
    .call = call,
    .worker_new = work_worker_new,
    .worker_free = client_free,
    .take = take,
    .finish = finish,
};
