/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* NATS JetStream with file storage: a stream with work-queue retention and one durable pull
 * consumer that all workers share, by libnats.
 *
 * The server answers before its file is synced, so what it has acknowledged survives its own death
 * and not that of the machine. Submits and completions are acknowledged; a result is a message of
 * another stream. */

#include "bench.h"

#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 100, ANSWER_MS = 60 * 1000, STREAM_TRIES = 50, STREAM_PAUSE_MS = 100 };

static const char results[] = "results";

typedef struct client {
    natsConnection *connection;
    jsCtx *stream;
    natsSubscription *answers; /* to what was published without waiting */
    natsInbox *inbox;          /* where they go */
    natsSubscription *tasks;   /* a worker's */
    natsSubscription *results; /* a producer's that waits for them */
    char queue[64];
    size_t prefetch;
    size_t open;
    natsMsg *taken[BENCH_TAKE_MAX];
    size_t taken_count;
    bool wants_result;
} client_t;

static void check (natsStatus status, const char *what)
{
    if (status != NATS_OK)
        die ("nats: %s: %s", what, natsStatus_GetText (status));
}

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return program_find ("nats-server", path);
}

static void start (server_t *server)
{
    server->port = server_free_port ();
    snprintf (server->address, sizeof server->address, "nats://127.0.0.1:%d", server->port);
    char port[16];
    snprintf (port, sizeof port, "%d", server->port);
    server_spawn (server, (char *[]){"nats-server", "--addr", "127.0.0.1", "--port", port,
                                     "--jetstream", "--store_dir", server->directory, NULL});
    server_wait_port (server);
}

/* The same stream twice is no error. A server that has just begun to listen may not take streams
 * yet. */
static void stream_make (client_t *self, const char *name, jsRetentionPolicy retention)
{
    jsStreamConfig config;
    jsStreamConfig_Init (&config);
    config.Name = name;
    config.Subjects = &name;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Retention = retention;
    natsStatus status = js_AddStream (NULL, self->stream, &config, NULL, NULL);
    for (int tries = 0; status != NATS_OK && tries < STREAM_TRIES; tries++) {
        nats_Sleep (STREAM_PAUSE_MS);
        status = js_AddStream (NULL, self->stream, &config, NULL, NULL);
    }
    check (status, "stream");
}

static client_t *client_new (const server_t *server, const char *queue)
{
    client_t *self = need_memory (calloc (1, sizeof *self));
    snprintf (self->queue, sizeof self->queue, "%s", queue);
    check (natsConnection_ConnectTo (&self->connection, server->address), "connect");
    check (natsConnection_JetStream (&self->stream, self->connection, NULL), "context");
    check (natsInbox_Create (&self->inbox), "inbox");
    check (natsConnection_SubscribeSync (&self->answers, self->connection, self->inbox), "inbox");
    stream_make (self, self->queue, js_WorkQueuePolicy);
    stream_make (self, results, js_LimitsPolicy);
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    natsSubscription_Destroy (self->results);
    natsSubscription_Destroy (self->tasks);
    natsSubscription_Destroy (self->answers);
    natsInbox_Destroy (self->inbox);
    jsCtx_Destroy (self->stream);
    natsConnection_Destroy (self->connection);
    free (self);
}

static void answer_next (client_t *self)
{
    natsMsg *answer;
    check (natsSubscription_NextMsg (&answer, self->answers, ANSWER_MS), "answer");
    const char *text = natsMsg_GetData (answer);
    if (text && strstr (text, "\"error\""))
        die ("nats: %s", text);
    natsMsg_Destroy (answer);
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    return client_new (server, queue);
}

static void publish (client_t *self, const char *subject, const void *bytes, size_t length)
{
    check (js_Publish (NULL, self->stream, subject, bytes, (int) length, NULL, NULL), "publish");
}

static void submit (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    publish (self, self->queue, payload, sizeof *payload);
}

static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    check (natsConnection_PublishRequest (self->connection, self->queue, self->inbox, payload,
                                          (int) sizeof *payload),
           "publish");
    self->open++;
}

static size_t submit_settle (void *producer, size_t open)
{
    client_t *self = producer;
    for (; self->open > open; self->open--)
        answer_next (self);
    return self->open;
}

static void call (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    if (!self->results) {
        jsSubOptions options;
        jsSubOptions_Init (&options);
        options.Config.AckPolicy = js_AckNone;
        check (js_SubscribeSync (&self->results, self->stream, results, NULL, &options, NULL),
               "results");
    }
    submit (producer, payload);
    natsMsg *result;
    check (natsSubscription_NextMsg (&result, self->results, ANSWER_MS), "result");
    natsMsg_Destroy (result);
}

/* Workers. */

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    client_t *self = client_new (server, queue);
    self->prefetch = prefetch;
    check (js_PullSubscribe (&self->tasks, self->stream, queue, "workers", NULL, NULL, NULL),
           "consumer");
    return self;
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    size_t wanted = self->prefetch < max ? self->prefetch : max;
    natsMsgList list = {0};
    natsStatus status = natsSubscription_Fetch (&list, self->tasks, (int) wanted, WAIT_MS, NULL);
    if (status != NATS_TIMEOUT)
        check (status, "fetch");
    for (int i = 0; i < list.Count; i++) {
        if (natsMsg_GetDataLength (list.Msgs[i]) != (int) sizeof *out)
            die ("nats: an unknown payload");
        memcpy (&out[i], natsMsg_GetData (list.Msgs[i]), sizeof *out);
        self->wants_result |= out[i].wants_result == 1;
        self->taken[i] = list.Msgs[i];
        list.Msgs[i] = NULL;
    }
    self->taken_count = (size_t) list.Count;
    natsMsgList_Destroy (&list);
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    (void) settle; /* always settled: the answers are waited for together */
    client_t *self = worker;
    if (self->wants_result)
        publish (self, results, "done", 4);
    self->wants_result = false;
    if (self->taken_count == 1) { /* leaves at once, while the other way is for many */
        check (natsMsg_AckSync (self->taken[0], NULL, NULL), "ack");
    } else {
        for (size_t i = 0; i < self->taken_count; i++)
            check (natsConnection_PublishRequest (
                       self->connection, natsMsg_GetReply (self->taken[i]), self->inbox, "+ACK", 4),
                   "ack");
        for (size_t i = 0; i < self->taken_count; i++)
            answer_next (self);
    }
    for (size_t i = 0; i < self->taken_count; i++)
        natsMsg_Destroy (self->taken[i]);
    size_t ended = self->taken_count;
    self->taken_count = 0;
    return ended;
}

const driver_t nats_driver = {
    .system = "nats",
    .durability = "no",
    .note = "JetStream, file storage, work-queue retention, one pull consumer; it answers without "
            "any fsync (it syncs every two minutes); no status, no result but a second message",
    .version = "nats-server --version",
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
