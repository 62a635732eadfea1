/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* PostgreSQL as a queue: a table with FOR UPDATE SKIP LOCKED, events beside it, synchronous_commit
 * on; LISTEN and NOTIFY instead of polling. Pipelined rows go in batches of 100. */

#include "bench.h"

#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 100, OPTIONS_BYTES = 256, CONNECTIONS = 100, WAIT_MS = 100 };

static const char sql_schema[] =
    "CREATE TABLE task (id bigserial PRIMARY KEY, queue text NOT NULL, status int NOT NULL,"
    " payload bytea NOT NULL, result bytea);"
    "CREATE INDEX task_ready ON task (queue, id) WHERE status = 0;"
    "CREATE TABLE event (seq bigserial PRIMARY KEY, task bigint NOT NULL, kind int NOT NULL)";
/* Notifications serialize commits and wake all workers, so there is one only where nothing was
 * queued before: a worker goes on by itself until it finds nothing. */
static const char sql_submit[] = "WITH t AS (INSERT INTO task (queue, status, payload)"
                                 " SELECT $1, 0, p FROM unnest($2::bytea[]) p RETURNING id),"
                                 " e AS (INSERT INTO event (task, kind) SELECT id, 0 FROM t)"
                                 " SELECT pg_notify($1, '') WHERE NOT EXISTS"
                                 " (SELECT 1 FROM task WHERE queue = $1 AND status = 0)";
static const char sql_claim[] =
    "WITH t AS (UPDATE task SET status = 1 WHERE id IN (SELECT id FROM task WHERE queue = $1"
    " AND status = 0 ORDER BY id LIMIT $2::int FOR UPDATE SKIP LOCKED) RETURNING id, payload),"
    " e AS (INSERT INTO event (task, kind) SELECT id, 1 FROM t)"
    " SELECT id, payload FROM t";
static const char sql_complete[] =
    "WITH t AS (UPDATE task SET status = 2, result = 'done' WHERE id = ANY ($1::bigint[])"
    " RETURNING id)"
    " INSERT INTO event (task, kind) SELECT id, 2 FROM t";
static const char sql_notify_result[] = "SELECT pg_notify('results', '')";

typedef struct client {
    PGconn *connection;
    char queue[64];
    size_t prefetch;
    /* a producer's batch, as the text of a bytea array */
    char *batch;
    size_t batch_length;
    size_t batch_count;
    /* a worker's tasks */
    char taken[BENCH_TAKE_MAX][24];
    size_t taken_count;
    bool wants_result;
} client_t;

/* One payload as array text: a comma, quotes, backslashes, hexadecimal digits. */
#define PAYLOAD_TEXT_BYTES (2 * BENCH_PAYLOAD_BYTES + 8)

/* A new table has no statistics, so that the plans have to be told to use its indexes. */
static void start (server_t *server)
{
    char options[OPTIONS_BYTES];
    char command[POSTGRESQL_COMMAND_BYTES];
    server->port = server_free_port ();
    server->stop_signal = SIGINT; /* without waiting for clients */
    snprintf (options, sizeof options,
              "-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories= "
              "-c max_connections=%d -c synchronous_commit=on -c enable_seqscan=off",
              server->port, (int) CONNECTIONS);
    postgresql_command (command, server, options);
    server_spawn (server, (char *[]){"sh", "-c", command, NULL});
    server_wait_port (server);
}

static void check (const client_t *self, PGresult *result, ExecStatusType wanted)
{
    if (PQresultStatus (result) != wanted)
        die ("postgresql: %s", PQerrorMessage (self->connection));
}

static void run (const client_t *self, const char *sql)
{
    PGresult *result = PQexec (self->connection, sql);
    if (PQresultStatus (result) != PGRES_COMMAND_OK && PQresultStatus (result) != PGRES_TUPLES_OK)
        die ("postgresql: %s", PQerrorMessage (self->connection));
    PQclear (result);
}

static void prepare (const client_t *self, const char *name, const char *sql)
{
    PGresult *result = PQprepare (self->connection, name, sql, 0, NULL);
    check (self, result, PGRES_COMMAND_OK);
    PQclear (result);
}

static client_t *client_new (const server_t *server, const char *queue)
{
    client_t *self = need_memory (calloc (1, sizeof *self));
    char where[128];
    snprintf (where, sizeof where, "host=127.0.0.1 port=%d user=bench dbname=postgres",
              server->port);
    /* The port listens a little before the server takes clients. */
    for (int i = 0; i < 100; i++) {
        self->connection = PQconnectdb (where);
        if (PQstatus (self->connection) == CONNECTION_OK)
            break;
        PQfinish (self->connection);
        self->connection = NULL;
        poll (NULL, 0, 50);
    }
    if (!self->connection)
        die ("postgresql: no connection");
    snprintf (self->queue, sizeof self->queue, "%s", queue);
    run (self, "SELECT pg_advisory_lock(1)");
    PGresult *there = PQexec (self->connection, "SELECT to_regclass('task') IS NOT NULL");
    check (self, there, PGRES_TUPLES_OK);
    if (PQgetvalue (there, 0, 0)[0] == 'f')
        run (self, sql_schema);
    PQclear (there);
    run (self, "SELECT pg_advisory_unlock(1)");
    prepare (self, "submit", sql_submit);
    prepare (self, "claim", sql_claim);
    prepare (self, "complete", sql_complete);
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    PQfinish (self->connection);
    free (self->batch);
    free (self);
}

/* Waits for a notification, at most WAIT_MS. */
static void listen_wait (client_t *self)
{
    struct pollfd descriptor = {PQsocket (self->connection), POLLIN, 0};
    PGnotify *notify = PQnotifies (self->connection);
    if (!notify && poll (&descriptor, 1, WAIT_MS) > 0)
        PQconsumeInput (self->connection);
    for (; notify || (notify = PQnotifies (self->connection)); notify = NULL)
        PQfreemem (notify);
}

/* Producers. */

static void *producer_new (const server_t *server, const char *queue)
{
    client_t *self = client_new (server, queue);
    self->batch = need_memory (malloc (BATCH * PAYLOAD_TEXT_BYTES + 2));
    run (self, "LISTEN results");
    return self;
}

static void batch_send (client_t *self)
{
    if (self->batch_count == 0)
        return;
    memcpy (self->batch + self->batch_length, "}", sizeof "}");
    const char *values[] = {self->queue, self->batch};
    PGresult *result = PQexecPrepared (self->connection, "submit", 2, values, NULL, NULL, 0);
    check (self, result, PGRES_TUPLES_OK);
    PQclear (result);
    self->batch_count = 0;
}

static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    if (self->batch_count == 0)
        self->batch_length = 0;
    char *at = self->batch + self->batch_length;
    at += sprintf (at, "%s\"\\\\x", self->batch_count == 0 ? "{" : ",");
    const uint8_t *bytes = (const uint8_t *) payload;
    for (size_t i = 0; i < sizeof *payload; i++) {
        *at++ = "0123456789abcdef"[bytes[i] >> 4];
        *at++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *at++ = '"';
    self->batch_length = (size_t) (at - self->batch);
    if (++self->batch_count == BATCH)
        batch_send (self);
}

static size_t submit_settle (void *producer, size_t open)
{
    (void) open; /* what was sent is acknowledged */
    batch_send (producer);
    return 0;
}

static void submit (void *producer, const payload_t *payload)
{
    submit_start (producer, payload);
    batch_send (producer);
}

static void call (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    PGresult *result = NULL;
    submit (producer, payload);
    /* The newest task is ours: the row that calls has one producer. */
    static const char sql[] = "SELECT 1 FROM (SELECT status FROM task ORDER BY id DESC LIMIT 1) t"
                              " WHERE status < 2";
    bool done = false;
    while (!done) {
        listen_wait (self);
        result = PQexec (self->connection, sql);
        check (self, result, PGRES_TUPLES_OK);
        done = PQntuples (result) == 0;
        PQclear (result);
    }
}

/* Workers. */

static void *worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    client_t *self = client_new (server, queue);
    self->prefetch = prefetch;
    char sql[128];
    snprintf (sql, sizeof sql, "LISTEN \"%s\"", queue);
    run (self, sql);
    return self;
}

static size_t claim (client_t *self, payload_t *out, size_t max)
{
    char limit[16];
    snprintf (limit, sizeof limit, "%zu", max);
    const char *values[] = {self->queue, limit};
    PGresult *result = PQexecPrepared (self->connection, "claim", 2, values, NULL, NULL, 0);
    check (self, result, PGRES_TUPLES_OK);
    int count = PQntuples (result);
    for (int i = 0; i < count; i++) {
        size_t length;
        unsigned char *bytes =
            PQunescapeBytea ((const unsigned char *) PQgetvalue (result, i, 1), &length);
        need_memory (bytes);
        if (length != sizeof *out)
            die ("postgresql: an unknown payload");
        memcpy (&out[i], bytes, sizeof *out);
        PQfreemem (bytes);
        self->wants_result |= out[i].wants_result == 1;
        snprintf (self->taken[i], sizeof self->taken[i], "%s", PQgetvalue (result, i, 0));
    }
    PQclear (result);
    return (size_t) count;
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    size_t wanted = self->prefetch < max ? self->prefetch : max;
    self->taken_count = claim (self, out, wanted);
    if (self->taken_count == 0) {
        listen_wait (self);
        self->taken_count = claim (self, out, wanted);
    }
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    (void) settle; /* every statement is */
    client_t *self = worker;
    if (self->taken_count == 0)
        return 0;
    char list[BENCH_TAKE_MAX * 24 + 2] = "{";
    char *at = list + 1;
    for (size_t i = 0; i < self->taken_count; i++)
        at += sprintf (at, "%s%s", i ? "," : "", self->taken[i]);
    memcpy (at, "}", sizeof "}");
    const char *values[] = {list};
    PGresult *result = PQexecPrepared (self->connection, "complete", 1, values, NULL, NULL, 0);
    check (self, result, PGRES_COMMAND_OK);
    PQclear (result);
    if (self->wants_result)
        run (self, sql_notify_result);
    self->wants_result = false;
    size_t ended = self->taken_count;
    self->taken_count = 0;
    return ended;
}

const driver_t postgresql_driver = {
    .system = "postgresql",
    .durability = "fsync",
    .note =
        "a table with SKIP LOCKED, an event table, synchronous_commit=on, LISTEN and NOTIFY; the "
        "pipelined rows go in batches of 100",
    .version = POSTGRESQL_PROGRAMS "/postgres --version",
    .available = postgresql_available,
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
