/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The bare ceiling as the bench speaks to it: a plain DEALER per client. */

#include "bench.h"
#include "ceiling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

enum { RECEIVE_MS = 60 * 1000, TAKE_MS = 100 };

typedef struct client {
    void *context;
    void *dealer;
    size_t open; /* not yet acknowledged */
    uint64_t number;
    bool result; /* of the call under way */
    /* a worker's tasks: taken and not completed; ready and not yet taken */
    uint64_t taken[BENCH_TAKE_MAX];
    size_t taken_count;
    size_t ended; /* acknowledged since the last call of finish */
    payload_t ready[BENCH_TAKE_MAX];
    uint64_t ready_numbers[BENCH_TAKE_MAX];
    size_t ready_first;
    size_t ready_count;
} client_t;

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return program_find ("taskmq-ceiling", path);
}

static void start_with (server_t *server, char *way)
{
    server->port = server_free_port ();
    snprintf (server->address, sizeof server->address, "tcp://127.0.0.1:%d", server->port);
    char port[16];
    snprintf (port, sizeof port, "%d", server->port);
    server_spawn (server, (char *[]){"taskmq-ceiling", port, server->directory, way, NULL});
    server_wait_port (server);
}

static void start (server_t *server)
{
    start_with (server, NULL);
}

static void start_log (server_t *server)
{
    start_with (server, "log");
}

static client_t *client_new (const server_t *server)
{
    client_t *self = need_memory (calloc (1, sizeof *self));
    self->context = zmq_ctx_new ();
    self->dealer = zmq_socket (self->context, ZMQ_DEALER);
    int value = 0;
    zmq_setsockopt (self->dealer, ZMQ_LINGER, &value, sizeof value);
    zmq_setsockopt (self->dealer, ZMQ_SNDHWM, &value, sizeof value);
    zmq_setsockopt (self->dealer, ZMQ_RCVHWM, &value, sizeof value);
    if (zmq_connect (self->dealer, server->address) != 0)
        die ("ceiling: %s", zmq_strerror (zmq_errno ()));
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    zmq_close (self->dealer);
    zmq_ctx_term (self->context);
    free (self);
}

static void tell (client_t *self, ceiling_kind_t kind, uint64_t number, const payload_t *payload)
{
    uint8_t bytes[sizeof (ceiling_head_t) + sizeof *payload];
    ceiling_head_t head = {kind, number};
    memcpy (bytes, &head, sizeof head);
    size_t length = sizeof head;
    if (payload) {
        memcpy (bytes + length, payload, sizeof *payload);
        length += sizeof *payload;
    }
    if (zmq_send (self->dealer, bytes, length, 0) < 0)
        die ("ceiling: %s", zmq_strerror (zmq_errno ()));
}

/* Takes one message; false if there is none in time. */
static bool hear (client_t *self, int timeout_ms)
{
    zmq_pollitem_t item = {self->dealer, 0, ZMQ_POLLIN, 0};
    if (timeout_ms > 0 && zmq_poll (&item, 1, timeout_ms) <= 0)
        return false;
    uint8_t bytes[sizeof (ceiling_head_t) + sizeof (payload_t)];
    if (zmq_recv (self->dealer, bytes, sizeof bytes, ZMQ_DONTWAIT) < 0)
        return false;
    ceiling_head_t head;
    memcpy (&head, bytes, sizeof head);
    switch (head.kind) {
    case CEILING_TASK:
        if (self->ready_count == BENCH_TAKE_MAX)
            die ("ceiling: more tasks than asked for");
        memcpy (&self->ready[self->ready_count], bytes + sizeof head, sizeof (payload_t));
        self->ready_numbers[self->ready_count++] = head.number;
        break;
    case CEILING_RESULT: self->result = true; break;
    case CEILING_COMPLETED:
        self->ended++;
        self->open--;
        break;
    default: self->open--;
    }
    return true;
}

static void hear_until (client_t *self, size_t open)
{
    while (self->open > open) {
        if (!hear (self, 0) && !hear (self, RECEIVE_MS))
            die ("ceiling: no answer");
    }
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    (void) queue; /* there is but one */
    return client_new (server);
}

static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    self->open++;
    tell (self, CEILING_SUBMIT, ++self->number, payload);
}

static size_t submit_settle (void *producer, size_t open)
{
    client_t *self = producer;
    hear_until (self, open);
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
    self->open++;
    self->result = false;
    tell (self, CEILING_CALL, ++self->number, payload);
    while (!self->result) {
        if (!hear (self, RECEIVE_MS))
            die ("ceiling: no result");
    }
}

/* Workers. */

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    (void) queue;
    client_t *self = client_new (server);
    tell (self, CEILING_CREDIT, prefetch, NULL);
    return self;
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    if (self->ready_first == self->ready_count) {
        self->ready_first = self->ready_count = 0;
        if (!hear (self, self->open > 0 ? 1 : TAKE_MS))
            return 0;
    }
    while (self->ready_count < BENCH_TAKE_MAX && hear (self, 0)) {
    }
    while (self->taken_count < max && self->ready_first < self->ready_count) {
        out[self->taken_count] = self->ready[self->ready_first];
        self->taken[self->taken_count++] = self->ready_numbers[self->ready_first++];
    }
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    client_t *self = worker;
    for (size_t i = 0; i < self->taken_count; i++)
        tell (self, CEILING_COMPLETE, self->taken[i], NULL);
    self->open += self->taken_count;
    self->taken_count = 0;
    if (settle)
        hear_until (self, 0);
    size_t ended = self->ended;
    self->ended = 0;
    return ended;
}

#define COMMON                                                                                     \
    .durability = "fsync", .version = "taskmq-ceiling --version", .available = available,          \
    .producer_new = producer_new, .producer_free = client_free, .submit = submit,                  \
    .submit_start = submit_start, .submit_settle = submit_settle, .call = call,                    \
    .worker_new = worker_new, .worker_free = client_free, .take = take, .finish = finish

const driver_t ceiling_driver = {
    .system = "ceiling",
    .note = "a ROUTER, SQLite (WAL, FULL) and group commit, see bench/ceiling.c: a row, three "
            "event rows, "
            "order in memory; no protobuf, ids, leases, events for subscribers, export",
    .start = start,
    COMMON,
};

const driver_t ceiling_log_driver = {
    .system = "ceiling-log",
    .note = "the same with one aligned, synced write a commit into a file that is used again, "
            "see bench/ceiling_log.h: no rows, and nothing that reads it",
    .start = start_log,
    COMMON,
};
