/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* taskmq-ceiling PORT DIRECTORY [log]: the bare limit of a durable broker on ZeroMQ and SQLite, or,
 * with `log`, on ZeroMQ and a plain log (ceiling_log.h), which writes the same changes and no rows.
 *
 * A ROUTER, a WAL with synchronous=FULL, group commit by a thread of its own, a row per task, three
 * events per life, the order of work in memory; every answer after its commit. Nothing else: no
 * protobuf, ids, leases, dedup, TTL, subscriptions, overload. It shows what the parts can give at
 * most; any error ends it. */

#include "ceiling.h"
#include "ceiling_log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <sqlite3.h>
#include <zmq.h>

enum {
    PEERS_MAX = 256,
    DRAIN_MAX = 1000, /* messages taken before outputs are looked at again */
    ROUTING_ID_MAX = 16,
    PATH_BYTES = 600
};

typedef struct peer {
    uint8_t id[ROUTING_ID_MAX];
    size_t id_length;
    uint64_t credit;
} peer_t;

typedef struct task {
    uint64_t number;
    uint64_t client_number;
    size_t peer; /* to which RESULT goes */
    bool wants_result;
    size_t length;
    uint8_t *payload;
} task_t;

typedef struct place {
    task_t *task;
} place_t;

typedef struct output {
    uint64_t batch;
    size_t peer;
    ceiling_head_t head;
    uint8_t *payload; /* borrowed from the task */
    size_t length;
} output_t;

typedef enum change_kind { CHANGE_SUBMIT, CHANGE_CLAIM, CHANGE_COMPLETE } change_kind_t;

typedef struct change {
    change_kind_t kind;
    task_t *task;
} change_t;

/* A growing array used as a queue from first to count. */
#define VECTOR(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t first, count, capacity;                                                             \
    }
#define VECTOR_PUSH(vector, item)                                                                  \
    do {                                                                                           \
        if ((vector).count == (vector).capacity) {                                                 \
            (vector).capacity = (vector).capacity ? 2 * (vector).capacity : 1024;                  \
            (vector).items = realloc ((vector).items, (vector).capacity * sizeof *(vector).items); \
            if (!(vector).items)                                                                   \
                ceiling_fail ("out of memory");                                                    \
        }                                                                                          \
        (vector).items[(vector).count++] = (item);                                                 \
    } while (0)
typedef VECTOR (change_t) changes_t;

static struct {
    void *router;
    peer_t peers[PEERS_MAX];
    size_t peers_count;
    VECTOR (place_t) tasks; /* by number - 1 */
    size_t ready;           /* the first task that no worker has */
    VECTOR (output_t) outputs;
    changes_t open;      /* the batch that grows */
    uint64_t open_batch; /* its number */
    uint64_t durable;    /* newest committed batch */
    bool committing;
} broker = {.open_batch = 1};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t wakeup;
    changes_t batch;
    bool given;
    bool plain_log;
    int done; /* eventfd */
} committer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .wakeup = PTHREAD_COND_INITIALIZER};

static volatile sig_atomic_t stopped;

void ceiling_fail (const char *what)
{
    fprintf (stderr, "taskmq-ceiling: %s\n", what);
    exit (1);
}

/* Committing. */

static const char sql_schema[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=4000;"
    "CREATE TABLE task (number INTEGER PRIMARY KEY, status INTEGER, payload BLOB, result BLOB);"
    "CREATE TABLE event (seq INTEGER PRIMARY KEY, task INTEGER, kind INTEGER);";
static const char sql_submit[] = "INSERT INTO task VALUES (?1, 0, ?2, NULL)";
static const char sql_claim[] = "UPDATE task SET status = 1 WHERE number = ?1";
static const char sql_complete[] = "UPDATE task SET status = 2, result = 'done' WHERE number = ?1";
static const char sql_event[] = "INSERT INTO event (task, kind) VALUES (?1, ?2)";

static sqlite3_stmt *prepare (sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2 (db, sql, -1, &statement, NULL) != SQLITE_OK)
        ceiling_fail (sqlite3_errmsg (db));
    return statement;
}

static void step (sqlite3 *db, sqlite3_stmt *statement)
{
    if (sqlite3_step (statement) != SQLITE_DONE)
        ceiling_fail (sqlite3_errmsg (db));
    sqlite3_reset (statement);
}

static struct {
    sqlite3 *db;
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *event;
    sqlite3_stmt *by_kind[3];
} tables;

static void tables_open (const char *directory)
{
    char path[PATH_BYTES];
    snprintf (path, sizeof path, "%s/ceiling.db", directory);
    if (sqlite3_open (path, &tables.db) != SQLITE_OK ||
        sqlite3_exec (tables.db, sql_schema, NULL, NULL, NULL) != SQLITE_OK)
        ceiling_fail (sqlite3_errmsg (tables.db));
    tables.begin = prepare (tables.db, "BEGIN IMMEDIATE");
    tables.commit = prepare (tables.db, "COMMIT");
    tables.event = prepare (tables.db, sql_event);
    tables.by_kind[CHANGE_SUBMIT] = prepare (tables.db, sql_submit);
    tables.by_kind[CHANGE_CLAIM] = prepare (tables.db, sql_claim);
    tables.by_kind[CHANGE_COMPLETE] = prepare (tables.db, sql_complete);
}

static void tables_commit (const changes_t *batch)
{
    sqlite3 *db = tables.db;
    step (db, tables.begin);
    for (size_t i = 0; i < batch->count; i++) {
        const change_t *change = &batch->items[i];
        sqlite3_stmt *statement = tables.by_kind[change->kind];
        sqlite3_bind_int64 (statement, 1, (sqlite3_int64) change->task->number);
        if (change->kind == CHANGE_SUBMIT)
            sqlite3_bind_blob (statement, 2, change->task->payload, (int) change->task->length,
                               SQLITE_STATIC);
        step (db, statement);
        sqlite3_bind_int64 (tables.event, 1, (sqlite3_int64) change->task->number);
        sqlite3_bind_int (tables.event, 2, (int) change->kind);
        step (db, tables.event);
    }
    step (db, tables.commit);
}

static void log_commit (const changes_t *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const change_t *change = &batch->items[i];
        uint64_t head[3] = {change->kind, change->task->number, 0};
        if (change->kind == CHANGE_SUBMIT)
            head[2] = change->task->length;
        ceiling_log_put (head, sizeof head);
        ceiling_log_put (change->task->payload, head[2]);
    }
    ceiling_log_commit ();
}

static void *committer_run (void *directory)
{
    if (committer.plain_log)
        ceiling_log_open (directory);
    else
        tables_open (directory);
    for (;;) {
        pthread_mutex_lock (&committer.mutex);
        while (!committer.given)
            pthread_cond_wait (&committer.wakeup, &committer.mutex);
        pthread_mutex_unlock (&committer.mutex);
        if (committer.plain_log)
            log_commit (&committer.batch);
        else
            tables_commit (&committer.batch);
        pthread_mutex_lock (&committer.mutex);
        committer.given = false;
        pthread_mutex_unlock (&committer.mutex);
        eventfd_write (committer.done, 1);
    }
    return NULL;
}

static void commit_hand_over (void)
{
    if (broker.committing || broker.open.count == 0)
        return;
    pthread_mutex_lock (&committer.mutex);
    changes_t empty = committer.batch;
    empty.count = 0;
    committer.batch = broker.open;
    committer.given = true;
    pthread_cond_signal (&committer.wakeup);
    pthread_mutex_unlock (&committer.mutex);
    broker.open = empty;
    broker.open_batch++;
    broker.committing = true;
}

/* The broker. */

static void output (size_t peer, ceiling_kind_t kind, uint64_t number, const task_t *task)
{
    output_t item = {.batch = broker.open_batch, .peer = peer, .head = {kind, number}};
    if (kind == CEILING_TASK) {
        item.payload = task->payload;
        item.length = task->length;
    }
    VECTOR_PUSH (broker.outputs, item);
}

static void change (change_kind_t kind, task_t *task)
{
    change_t item = {kind, task};
    VECTOR_PUSH (broker.open, item);
}

static void dispatch (void)
{
    for (size_t peer = 0; peer < broker.peers_count; peer++) {
        while (broker.peers[peer].credit > 0 && broker.ready < broker.tasks.count) {
            task_t *task = broker.tasks.items[broker.ready++].task;
            broker.peers[peer].credit--;
            change (CHANGE_CLAIM, task);
            output (peer, CEILING_TASK, task->number, task);
        }
    }
}

static size_t peer_find (const void *id, size_t length)
{
    for (size_t i = 0; i < broker.peers_count; i++) {
        if (broker.peers[i].id_length == length && memcmp (broker.peers[i].id, id, length) == 0)
            return i;
    }
    if (broker.peers_count == PEERS_MAX || length > ROUTING_ID_MAX)
        ceiling_fail ("too many peers");
    peer_t *peer = &broker.peers[broker.peers_count];
    memcpy (peer->id, id, length);
    peer->id_length = length;
    return broker.peers_count++;
}

static void submit (size_t peer, const ceiling_head_t *head, const uint8_t *payload, size_t length)
{
    task_t *task = malloc (sizeof *task);
    uint8_t *copy = malloc (length);
    if (!task || !copy)
        ceiling_fail ("out of memory");
    memcpy (copy, payload, length);
    *task = (task_t){.number = broker.tasks.count + 1,
                     .client_number = head->number,
                     .peer = peer,
                     .wants_result = head->kind == CEILING_CALL,
                     .length = length,
                     .payload = copy};
    VECTOR_PUSH (broker.tasks, (place_t){task});
    change (CHANGE_SUBMIT, task);
    output (peer, CEILING_ACCEPTED, head->number, task);
}

static void complete (size_t peer, uint64_t number)
{
    if (number == 0 || number > broker.ready)
        ceiling_fail ("a completion of an unknown task");
    task_t *task = broker.tasks.items[number - 1].task;
    broker.peers[peer].credit++;
    change (CHANGE_COMPLETE, task);
    output (peer, CEILING_COMPLETED, number, task);
    if (task->wants_result)
        output (task->peer, CEILING_RESULT, task->client_number, task);
}

static void handle (size_t peer, const uint8_t *bytes, size_t length)
{
    ceiling_head_t head;
    if (length < sizeof head)
        ceiling_fail ("a short message");
    memcpy (&head, bytes, sizeof head);
    switch (head.kind) {
    case CEILING_SUBMIT:
    case CEILING_CALL: submit (peer, &head, bytes + sizeof head, length - sizeof head); break;
    case CEILING_CREDIT: broker.peers[peer].credit = head.number; break;
    case CEILING_COMPLETE: complete (peer, head.number); break;
    default: ceiling_fail ("an unknown message");
    }
}

static void drain (void)
{
    zmq_msg_t id;
    zmq_msg_t body;
    zmq_msg_init (&id);
    zmq_msg_init (&body);
    for (int i = 0; i < DRAIN_MAX && zmq_msg_recv (&id, broker.router, ZMQ_DONTWAIT) >= 0; i++) {
        if (zmq_msg_recv (&body, broker.router, ZMQ_DONTWAIT) < 0)
            ceiling_fail ("half a message");
        handle (peer_find (zmq_msg_data (&id), zmq_msg_size (&id)), zmq_msg_data (&body),
                zmq_msg_size (&body));
    }
    zmq_msg_close (&id);
    zmq_msg_close (&body);
    dispatch ();
}

static void release (void)
{
    while (broker.outputs.first < broker.outputs.count) {
        const output_t *item = &broker.outputs.items[broker.outputs.first];
        if (item->batch > broker.durable)
            break;
        const peer_t *peer = &broker.peers[item->peer];
        zmq_msg_t message;
        if (zmq_msg_init_size (&message, sizeof item->head + item->length) != 0)
            ceiling_fail ("out of memory");
        memcpy (zmq_msg_data (&message), &item->head, sizeof item->head);
        if (item->length > 0)
            memcpy ((uint8_t *) zmq_msg_data (&message) + sizeof item->head, item->payload,
                    item->length);
        if (zmq_send (broker.router, peer->id, peer->id_length, ZMQ_SNDMORE) < 0)
            zmq_msg_close (&message); /* the client has gone */
        else
            zmq_msg_send (&message, broker.router, 0);
        broker.outputs.first++;
    }
    if (broker.outputs.first == broker.outputs.count)
        broker.outputs.first = broker.outputs.count = 0;
}

static void loop (void)
{
    zmq_pollitem_t items[] = {{broker.router, 0, ZMQ_POLLIN, 0},
                              {NULL, committer.done, ZMQ_POLLIN, 0}};
    while (!stopped) {
        if (zmq_poll (items, 2, -1) < 0)
            continue;
        if (items[1].revents) {
            eventfd_t count;
            eventfd_read (committer.done, &count);
            broker.committing = false;
            broker.durable = broker.open_batch - 1;
        }
        drain ();
        commit_hand_over ();
        release ();
    }
}

static void on_signal (int number)
{
    (void) number;
    stopped = 1;
}

/* Of the two libraries that it is made of. */
static void print_versions (void)
{
    int major;
    int minor;
    int patch;
    zmq_version (&major, &minor, &patch);
    printf ("libzmq %d.%d.%d, SQLite %s\n", major, minor, patch, sqlite3_libversion ());
}

int main (int argc, char **argv)
{
    if (argc == 2 && strcmp (argv[1], "--version") == 0) {
        print_versions ();
        return 0;
    }
    committer.plain_log = argc == 4 && strcmp (argv[3], "log") == 0;
    if (argc != 3 && !committer.plain_log)
        ceiling_fail ("usage: taskmq-ceiling PORT DIRECTORY [log]");
    struct sigaction action = {.sa_handler = on_signal};
    sigaction (SIGTERM, &action, NULL);
    sigaction (SIGINT, &action, NULL);
    committer.done = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    void *context = zmq_ctx_new ();
    broker.router = zmq_socket (context, ZMQ_ROUTER);
    int no_limit = 0;
    zmq_setsockopt (broker.router, ZMQ_SNDHWM, &no_limit, sizeof no_limit);
    zmq_setsockopt (broker.router, ZMQ_RCVHWM, &no_limit, sizeof no_limit);
    zmq_setsockopt (broker.router, ZMQ_LINGER, &no_limit, sizeof no_limit);
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "tcp://127.0.0.1:%s", argv[1]);
    if (zmq_bind (broker.router, endpoint) != 0)
        ceiling_fail (zmq_strerror (zmq_errno ()));
    pthread_t thread;
    if (pthread_create (&thread, NULL, committer_run, argv[2]) != 0)
        ceiling_fail ("a thread could not be started");
    loop ();
    return 0;
}
