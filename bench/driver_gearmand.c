/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* gearmand with its SQLite queue: background jobs, which are stored before the submit is answered,
 * by Gearman's binary protocol (libgearman crashes when waiting for a job times out).
 *
 * A completion has no answer of its own; the answer to an echo sent behind it stands for it,
 * because the server takes the packets of a connection in order. A background job has no result, so
 * there is no row "notified". */

#include "bench.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 100, HANDLE_BYTES = 64, PACKET_BYTES = 512 };

typedef enum packet {
    CAN_DO = 1,
    PRE_SLEEP = 4,
    NOOP = 6,
    JOB_CREATED = 8,
    GRAB_JOB = 9,
    NO_JOB = 10,
    JOB_ASSIGN = 11,
    WORK_COMPLETE = 13,
    ECHO_REQ = 16,
    ECHO_RES = 17,
    SUBMIT_JOB_BG = 18
} packet_t;

typedef struct head {
    char magic[4];
    uint32_t type; /* both in network order */
    uint32_t length;
} head_t;

typedef struct client {
    wire_t *wire;
    char queue[64];
    size_t prefetch;
    size_t open;
    char taken[BENCH_TAKE_MAX][HANDLE_BYTES];
    size_t taken_count;
} client_t;

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return program_find ("gearmand", path);
}

static void start (server_t *server)
{
    server->port = server_free_port ();
    char port[16];
    snprintf (port, sizeof port, "%d", server->port);
    server_spawn (server, (char *[]){"gearmand", "--listen=127.0.0.1", "-p", port, "-q",
                                     "libsqlite3", "--libsqlite3-db=queue.db", "--log-file=stderr",
                                     "--pid-file=pid", NULL});
    server_wait_port (server);
}

/* Packets. */

static void put_part (client_t *self, const void *bytes, size_t length)
{
    wire_put (self->wire, "", 1);
    wire_put (self->wire, bytes, length);
}

/* The parts are separated by NUL; NULL where there are no more. */
static void put (client_t *self, packet_t type, const char *first, const char *second,
                 const payload_t *third)
{
    size_t length = (first ? strlen (first) : 0) + (second ? 1 + strlen (second) : 0) +
                    (third ? 1 + sizeof *third : 0);
    head_t head = {"\0REQ", htonl (type), htonl ((uint32_t) length)};
    wire_put (self->wire, &head, sizeof head);
    if (first)
        wire_put (self->wire, first, strlen (first));
    if (second)
        put_part (self, second, strlen (second));
    if (third)
        put_part (self, third, sizeof *third);
}

/* The next packet that is no NOOP: those may come late. */
static packet_t get (client_t *self, char out[PACKET_BYTES], size_t *length)
{
    for (;;) {
        head_t head;
        wire_read (self->wire, &head, sizeof head);
        *length = ntohl (head.length);
        if (memcmp (head.magic, "\0RES", sizeof head.magic) != 0 || *length > PACKET_BYTES)
            die ("gearmand: an unknown packet");
        wire_read (self->wire, out, *length);
        if (ntohl (head.type) != NOOP)
            return (packet_t) ntohl (head.type);
    }
}

static void expect (client_t *self, packet_t wanted)
{
    char packet[PACKET_BYTES];
    size_t length;
    packet_t type = get (self, packet, &length);
    if (type != wanted)
        die ("gearmand: packet %u instead of %u: %.*s", type, wanted, (int) length, packet);
}

static client_t *client_new (const server_t *server, const char *queue)
{
    client_t *self = need_memory (calloc (1, sizeof *self));
    self->wire = wire_connect (server->port);
    snprintf (self->queue, sizeof self->queue, "%s", queue);
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    wire_close (self->wire);
    free (self);
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    return client_new (server, queue);
}

/* The key is the task's own, as jobs of the same key are merged. */
static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    char key[24];
    snprintf (key, sizeof key, "%llu", (unsigned long long) payload->lives);
    put (self, SUBMIT_JOB_BG, self->queue, key, payload);
    self->open++;
}

static size_t submit_settle (void *producer, size_t open)
{
    client_t *self = producer;
    wire_flush (self->wire);
    for (; self->open > open; self->open--)
        expect (self, JOB_CREATED);
    return self->open;
}

static void submit (void *producer, const payload_t *payload)
{
    submit_start (producer, payload);
    submit_settle (producer, 0);
}

/* Workers. */

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    client_t *self = client_new (server, queue);
    self->prefetch = prefetch;
    put (self, CAN_DO, queue, NULL, NULL);
    return self;
}

/* Handle, function, payload. */
static void taken_add (client_t *self, const char *packet, size_t length, payload_t *out)
{
    size_t handle = strnlen (packet, length) + 1;
    size_t function = strlen (self->queue) + 1;
    if (handle > HANDLE_BYTES || handle + function + sizeof *out != length)
        die ("gearmand: an unknown job");
    memcpy (self->taken[self->taken_count++], packet, handle);
    memcpy (out, packet + handle + function, sizeof *out);
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    size_t wanted = self->prefetch < max ? self->prefetch : max;
    for (size_t i = 0; i < wanted; i++)
        put (self, GRAB_JOB, NULL, NULL, NULL);
    wire_flush (self->wire);
    for (size_t i = 0; i < wanted; i++) {
        char packet[PACKET_BYTES];
        size_t length;
        packet_t type = get (self, packet, &length);
        if (type == JOB_ASSIGN)
            taken_add (self, packet, length, &out[self->taken_count]);
        else if (type != NO_JOB)
            die ("gearmand: packet %u instead of a job", type);
    }
    if (self->taken_count == 0) { /* the next call grabs again, told or not */
        put (self, PRE_SLEEP, NULL, NULL, NULL);
        wire_flush (self->wire);
        poll (&(struct pollfd){self->wire->fd, POLLIN, 0}, 1, WAIT_MS);
    }
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    (void) settle; /* always settled: the answers come in order */
    client_t *self = worker;
    if (self->taken_count == 0)
        return 0;
    for (size_t i = 0; i < self->taken_count; i++)
        put (self, WORK_COMPLETE, self->taken[i], "done", NULL);
    put (self, ECHO_REQ, "done", NULL, NULL);
    wire_flush (self->wire);
    expect (self, ECHO_RES);
    size_t ended = self->taken_count;
    self->taken_count = 0;
    return ended;
}

const driver_t gearmand_driver = {
    .system = "gearmand",
    .durability = "fsync",
    .note = "background jobs in its SQLite queue; a claim is not stored, a completion counts when "
            "an echo behind it is answered, there is no status or result",
    .starves = true,
    .version = "gearmand --version | grep . | cut -d' ' -f1,2",
    .available = available,
    .start = start,
    .producer_new = producer_new,
    .producer_free = client_free,
    .submit = submit,
    .submit_start = submit_start,
    .submit_settle = submit_settle,
    .worker_new = worker_new,
    .worker_free = client_free,
    .take = take,
    .finish = finish,
};
