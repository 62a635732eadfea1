/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* beanstalkd with fsync at every write (-f 0), by its text protocol.
 *
 * A result goes back as a job of the tube "results": beanstalkd keeps none itself. */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_BYTES = 128 };

typedef struct client {
    wire_t *wire;
    size_t open;
    size_t prefetch;
    unsigned long taken[BENCH_TAKE_MAX];
    bool wants_result[BENCH_TAKE_MAX];
    size_t taken_count;
} client_t;

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return program_find ("beanstalkd", path);
}

static void start (server_t *server)
{
    server->port = server_free_port ();
    char port[16];
    snprintf (port, sizeof port, "%d", server->port);
    server_spawn (server, (char *[]){"beanstalkd", "-l", "127.0.0.1", "-p", port, "-b",
                                     server->directory, "-f", "0", NULL});
    server_wait_port (server);
}

static void expect (wire_t *wire, const char *begin)
{
    const char *line = wire_line (wire);
    if (strncmp (line, begin, strlen (begin)) != 0)
        die ("beanstalkd: %s instead of %s", line, begin);
}

static void command (wire_t *wire, const char *text)
{
    wire_put (wire, text, strlen (text));
}

static void tube (wire_t *wire, const char *verb, const char *name, const char *answer)
{
    char text[COMMAND_BYTES];
    snprintf (text, sizeof text, "%s %s\r\n", verb, name);
    command (wire, text);
    wire_flush (wire);
    expect (wire, answer);
}

static void put (wire_t *wire, const void *bytes, size_t length)
{
    char text[COMMAND_BYTES];
    snprintf (text, sizeof text, "put 0 0 60 %zu\r\n", length);
    command (wire, text);
    wire_put (wire, bytes, length);
    command (wire, "\r\n");
}

static void delete (wire_t *wire, unsigned long id)
{
    char text[COMMAND_BYTES];
    snprintf (text, sizeof text, "delete %lu\r\n", id);
    command (wire, text);
}

/* Reads the answer of a reserve; false if nothing was there in time. */
static bool reserved (wire_t *wire, unsigned long *id, void *out, size_t size)
{
    const char *line = wire_line (wire);
    size_t length;
    if (strcmp (line, "TIMED_OUT") == 0)
        return false;
    if (sscanf (line, "RESERVED %lu %zu", id, &length) != 2 || length != size)
        die ("beanstalkd: %s", line);
    char end[2];
    wire_read (wire, out, length);
    wire_read (wire, end, sizeof end);
    return true;
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    client_t *self = need_memory (calloc (1, sizeof *self));
    self->wire = wire_connect (server->port);
    tube (self->wire, "use", queue, "USING");
    tube (self->wire, "watch", "results", "WATCHING");
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    wire_close (self->wire);
    free (self);
}

static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    put (self->wire, payload, sizeof *payload);
    self->open++;
}

static size_t submit_settle (void *producer, size_t open)
{
    client_t *self = producer;
    wire_flush (self->wire);
    for (; self->open > open; self->open--)
        expect (self->wire, "INSERTED");
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
    unsigned long id;
    char result[4];
    do {
        command (self->wire, "reserve-with-timeout 10\r\n");
        wire_flush (self->wire);
    } while (!reserved (self->wire, &id, result, sizeof result));
    delete (self->wire, id);
    wire_flush (self->wire);
    expect (self->wire, "DELETED");
}

/* Workers. */

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    client_t *self = need_memory (calloc (1, sizeof *self));
    self->wire = wire_connect (server->port);
    self->prefetch = prefetch;
    tube (self->wire, "watch", queue, "WATCHING");
    tube (self->wire, "ignore", "default", "WATCHING");
    tube (self->wire, "use", "results", "USING");
    return self;
}

static void taken_add (client_t *self, unsigned long id, const payload_t *payload)
{
    self->wants_result[self->taken_count] = payload->wants_result == 1;
    self->taken[self->taken_count++] = id;
}

/* A blocking reserve holds up everything behind it on its connection, so many are asked for
 * without waiting, and only when there was none is one waited for. */
static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    unsigned long id;
    size_t wanted = self->prefetch < max ? self->prefetch : max;
    for (size_t i = 0; wanted > 1 && i < wanted; i++)
        command (self->wire, "reserve-with-timeout 0\r\n");
    wire_flush (self->wire);
    for (size_t i = 0; wanted > 1 && i < wanted; i++) {
        if (reserved (self->wire, &id, &out[self->taken_count], sizeof *out))
            taken_add (self, id, &out[self->taken_count]);
    }
    if (self->taken_count == 0) {
        command (self->wire, "reserve-with-timeout 1\r\n");
        wire_flush (self->wire);
        if (reserved (self->wire, &id, out, sizeof *out))
            taken_add (self, id, out);
    }
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    (void) settle; /* always settled: the answers come in order */
    client_t *self = worker;
    for (size_t i = 0; i < self->taken_count; i++) {
        if (self->wants_result[i])
            put (self->wire, "done", 4);
        delete (self->wire, self->taken[i]);
    }
    wire_flush (self->wire);
    for (size_t i = 0; i < self->taken_count; i++) {
        if (self->wants_result[i])
            expect (self->wire, "INSERTED");
        expect (self->wire, "DELETED");
    }
    size_t ended = self->taken_count;
    self->taken_count = 0;
    return ended;
}

const driver_t beanstalkd_driver = {
    .system = "beanstalkd",
    .durability = "fsync",
    .note =
        "an fsync at every write (-f 0); a claim is not stored, there is no status, and no result "
        "but a second job",
    .version = "beanstalkd -v",
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
