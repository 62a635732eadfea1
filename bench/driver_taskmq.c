/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmq as the bench speaks to it: the real broker through the real library. */

#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "keys.h"

enum { TAKE_MS = 100 };

typedef struct producer {
    tmq_client_t *client;
    const char *queue;
    size_t open;
} producer_t;

typedef struct worker {
    tmq_client_t *client;
    tmq_worker_t *worker;
    tmq_assignment_t **taken;
    size_t taken_count;
    size_t open; /* completions not yet acknowledged */
} worker_t;

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return program_find ("taskmqd", path);
}

static void start_with (server_t *server, const char *synchronous)
{
    server->port = server_free_port ();
    snprintf (server->address, sizeof server->address, "tcp://127.0.0.1:%d", server->port);
    server_spawn (server,
                  (char *[]){"taskmqd", "--data", server->directory, "--listen", server->address,
                             "--synchronous", (char *) (uintptr_t) synchronous, NULL});
    server_wait_port (server);
}

static void start (server_t *server)
{
    start_with (server, "full");
}

static void start_normal (server_t *server)
{
    start_with (server, "normal");
}

/* Behind keys: the bench is listed in an access file, and the broker writes its key into the file
 * with its endpoints. */

static void write_access (const server_t *server)
{
    char path[2 * BENCH_PATH_MAX], text[KEY_TEXT_SIZE];
    key_public_t public_key;
    key_secret_t secret;
    key_make (&public_key, &secret);
    key_text_public (text, &public_key);
    snprintf (path, sizeof path, "%s/access", server->directory);
    FILE *file = fopen (path, "w");
    if (file == NULL || fchmod (fileno (file), 0600) != 0 ||
        fprintf (file,
                 "bench key:%s operator rate=10000000/s burst=10000000 tasks=1000000 bytes=1G\n",
                 text) < 0 ||
        fclose (file) != 0)
        die ("%s: %s", path, strerror (errno));
    key_text_secret (text, &secret);
    setenv ("TASKMQ_KEY", text, 1);
}

static bool read_endpoint (server_t *server)
{
    char path[2 * BENCH_PATH_MAX], line[BENCH_PATH_MAX];
    bool found = false;
    snprintf (path, sizeof path, "%s/endpoint", server->directory);
    FILE *file = fopen (path, "r");
    while (file != NULL && !found && fgets (line, sizeof line, file) != NULL) {
        line[strcspn (line, "\n")] = '\0';
        found = strncmp (line, server->address, strlen (server->address)) == 0;
    }
    if (file != NULL)
        fclose (file);
    if (found)
        memcpy (server->address, line, sizeof line);
    return found;
}

static void start_curve (server_t *server)
{
    char listen[BENCH_PATH_MAX + 8];
    server->port = server_free_port ();
    snprintf (server->address, sizeof server->address, "tcp://127.0.0.1:%d?", server->port);
    snprintf (listen, sizeof listen, "%scurve", server->address);
    write_access (server);
    server_spawn (server,
                  (char *[]){"taskmqd", "--data", server->directory, "--listen", listen, NULL});
    server_wait_port (server);
    for (int i = 0; !read_endpoint (server); i++) {
        if (i == 1000)
            die ("the broker names no endpoint with a key");
        nanosleep (&(struct timespec){0, 10000000}, NULL);
    }
}

/* On PostgreSQL: both of them count as the server, and the database dies with the broker. */

static bool available_postgresql (void)
{
    return available () && postgresql_available ();
}

static void start_postgresql (server_t *server)
{
    char path[BENCH_PATH_MAX], options[BENCH_PATH_MAX + 160];
    char database[POSTGRESQL_COMMAND_BYTES], command[POSTGRESQL_COMMAND_BYTES + 6 * BENCH_PATH_MAX];
    if (!program_find ("taskmqd", path))
        die ("taskmqd is not there");
    server->port = server_free_port ();
    snprintf (server->address, sizeof server->address, "tcp://127.0.0.1:%d", server->port);
    snprintf (options, sizeof options,
              "-c listen_addresses= -c unix_socket_directories=%s -c max_wal_size=4GB "
              "-c checkpoint_timeout=15min",
              server->directory);
    postgresql_command (database, server, options);
    snprintf (
        command, sizeof command,
        "(%s) & until [ -S .s.PGSQL.5432 ]; do sleep 0.05; done; exec %s --data %s/broker "
        "--listen %s --store postgresql --database 'postgresql:///postgres?host=%s&user=bench'",
        database, path, server->directory, server->address, server->directory);
    server_spawn (server, (char *[]){"sh", "-c", command, NULL});
    server_wait_port (server);
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    producer_t *self = need_memory (calloc (1, sizeof *self));
    self->client = client_connect (server);
    self->queue = queue;
    return self;
}

static void producer_free (void *producer)
{
    producer_t *self = producer;
    tmq_client_free (&self->client);
    free (self);
}

static void submit_fill (tmq_submit_t *out, const producer_t *self, const payload_t *payload)
{
    tmq_submit_init (out);
    out->queue = self->queue;
    out->payload = payload;
    out->payload_bytes = sizeof *payload;
}

static void submit (void *producer, const payload_t *payload)
{
    producer_t *self = producer;
    tmq_submit_t request;
    tmq_receipt_t receipt;
    tmq_error_t error = {0};
    submit_fill (&request, self, payload);
    client_check (tmq_submit (&receipt, self->client, &request, CLIENT_DEADLINE_MS, &error),
                  "submit", &error);
}

static void submit_start (void *producer, const payload_t *payload)
{
    producer_t *self = producer;
    tmq_submit_t request;
    tmq_error_t error = {0};
    submit_fill (&request, self, payload);
    client_check (tmq_submit_start (self->client, &request, CLIENT_DEADLINE_MS, NULL, &error),
                  "submit", &error);
    self->open++;
}

static size_t submit_settle (void *producer, size_t open)
{
    producer_t *self = producer;
    while (self->open > open)
        self->open -= client_reap (self->client, CLIENT_DEADLINE_MS, "submit");
    return self->open;
}

static void call (void *producer, const payload_t *payload)
{
    producer_t *self = producer;
    tmq_submit_t request;
    tmq_error_t error = {0};
    submit_fill (&request, self, payload);
    tmq_id_make (&request.id);
    client_check (tmq_submit_start (self->client, &request, CLIENT_DEADLINE_MS, NULL, &error),
                  "submit", &error);
    client_check (tmq_wait_start (self->client, &request.id, 1, CLIENT_DEADLINE_MS, NULL, &error),
                  "wait", &error);
    for (size_t open = 2; open > 0;)
        open -= client_reap (self->client, CLIENT_DEADLINE_MS, "call");
}

/* Workers. */

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    worker_t *self = need_memory (calloc (1, sizeof *self));
    self->client = client_connect (server);
    self->taken = need_memory (calloc (BENCH_TAKE_MAX, sizeof (tmq_assignment_t *)));
    tmq_worker_options_t options;
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    options.capacity = (uint32_t) prefetch;
    tmq_error_t error = {0};
    client_check (tmq_worker_new (&self->worker, self->client, &options, &error), "worker", &error);
    return self;
}

static void worker_free (void *worker)
{
    worker_t *self = worker;
    tmq_worker_free (&self->worker);
    tmq_client_free (&self->client);
    free (self->taken);
    free (self);
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    worker_t *self = worker;
    tmq_error_t error = {0};
    /* With completions under way only what is already there is taken, so that they are reaped. */
    uint32_t timeout_ms = self->open > 0 ? 1 : TAKE_MS;
    while (self->taken_count < max) {
        tmq_assignment_t *taken;
        int code = tmq_worker_next (&taken, self->worker, timeout_ms, &error);
        if (code == TMQ_TIMEOUT)
            break;
        client_check (code, "next", &error);
        if (taken->payload_bytes != sizeof *out)
            die ("taskmq: a payload of %zu bytes", taken->payload_bytes);
        memcpy (&out[self->taken_count], taken->payload, sizeof *out);
        self->taken[self->taken_count++] = taken;
        timeout_ms = 0;
    }
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    worker_t *self = worker;
    tmq_outcome_t outcome = {.result = "done", .result_bytes = 4};
    for (size_t i = 0; i < self->taken_count; i++) {
        tmq_error_t error = {0};
        client_check (tmq_worker_complete_start (self->worker, self->taken[i], &outcome,
                                                 CLIENT_DEADLINE_MS, NULL, &error),
                      "complete", &error);
        tmq_assignment_free (self->taken[i]);
    }
    self->open += self->taken_count;
    self->taken_count = 0;
    size_t ended = 0;
    do {
        size_t count = client_reap (self->client, settle && self->open > 0 ? CLIENT_DEADLINE_MS : 0,
                                    "complete");
        self->open -= count;
        ended += count;
    } while (settle && self->open > 0);
    return ended;
}

/* What all of them do alike. */
#define COMMON                                                                                     \
    .producer_new = producer_new, .producer_free = producer_free, .submit = submit,                \
    .submit_start = submit_start, .submit_settle = submit_settle, .call = call,                    \
    .worker_new = worker_new, .worker_free = worker_free, .take = take, .finish = finish

const driver_t taskmq_driver = {
    .system = "taskmq",
    .durability = "fsync",
    .note = "submit, claim and completion are durable before they are told; status, three events, "
            "result, "
            "lease, dedup by id, TTL, JSON Lines export",
    .version = "taskmqd --version",
    .available = available,
    .start = start,
    COMMON,
};

const driver_t taskmq_normal_driver = {
    .system = "taskmq-normal",
    .durability = "process",
    .note =
        "the same with --synchronous normal: an answer survives the death of the broker, not that "
        "of the machine; never compared in a headline",
    .version = "taskmqd --version",
    .available = available,
    .start = start_normal,
    COMMON,
};

const driver_t taskmq_curve_driver = {
    .system = "taskmq-curve",
    .durability = "fsync",
    .note = "the same over CURVE: encrypted, and by a key that the access file lists",
    .version = "taskmqd --version",
    .available = available,
    .start = start_curve,
    COMMON,
};

const driver_t taskmq_postgresql_driver = {
    .system = "taskmq-postgresql",
    .durability = "fsync",
    .note = "the same with --store postgresql, through a socket of the same machine; its CPU time "
            "and memory are those of the broker and of the database together",
    .version = "taskmqd --version",
    .available = available_postgresql,
    .start = start_postgresql,
    COMMON,
};
