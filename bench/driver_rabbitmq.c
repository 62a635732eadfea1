/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* RabbitMQ with publisher confirms, in two variants: a quorum queue (of one member) and a durable
 * classic queue with persistent messages.
 *
 * AMQP does not answer a consumer's acknowledgement, so a completion counts when it is sent. A
 * result is a message of another queue. The node has its own directory, name and cookie, and its
 * own epmd on a free loopback port, which dies with it. */

#include "bench.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHANNEL = 1,
    WAIT_MS = 100,
    ANSWER_SECONDS = 60,
    PERSISTENT = 2,
    CONFIRMS_MAX = 4096, /* more than are ever outstanding */
    COMMAND_BYTES = 2048
};

static const char program[] = "/usr/lib/rabbitmq/bin/rabbitmq-server";
static const char results[] = "results";

typedef struct client {
    amqp_connection_state_t connection;
    const char *type; /* of its queues */
    char queue[64];
    size_t prefetch;
    struct client *results; /* whence a producer takes them */
    /* Confirms come in any order, one by one or all up to a number. */
    uint64_t published;
    uint64_t confirmed; /* all up to here */
    bool confirms[CONFIRMS_MAX];
    size_t open;
    /* a worker's */
    uint64_t last_taken;
    size_t taken_count;
    bool wants_result;
} client_t;

static bool available (void)
{
    char path[BENCH_PATH_MAX];
    return access (program, X_OK) == 0 && program_find ("epmd", path) &&
           program_find ("setpriv", path);
}

/* What a first start would otherwise find in /etc and /var belongs to the system's own node. */
static void start (server_t *server)
{
    server->port = server_free_port ();
    server->stop_signal = SIGKILL; /* an orderly stop takes seconds, and nothing is kept */
    char command[COMMAND_BYTES];
    int epmd = server_free_port ();
    snprintf (command, sizeof command,
              "export HOME=\"$PWD\" RUNNING_UNDER_SYSTEMD=1 RABBITMQ_CONF_ENV_FILE=/dev/null"
              " RABBITMQ_CONFIG_FILE=\"$PWD/none\" RABBITMQ_ADVANCED_CONFIG_FILE=\"$PWD/none\""
              " RABBITMQ_MNESIA_BASE=\"$PWD\" RABBITMQ_LOG_BASE=\"$PWD\" RABBITMQ_LOGS=-"
              " RABBITMQ_ENABLED_PLUGINS_FILE=\"$PWD/plugins\" RABBITMQ_PID_FILE=\"$PWD/pid\""
              " RABBITMQ_NODENAME=bench%d@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1"
              " RABBITMQ_NODE_PORT=%d RABBITMQ_DIST_PORT=%d ERL_EPMD_PORT=%d"
              " ERL_EPMD_ADDRESS=127.0.0.1"
              " RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="
              "'-kernel inet_dist_use_interface {127,0,0,1}';"
              " setpriv --pdeathsig KILL epmd -address 127.0.0.1 -port %d & exec %s",
              server->port, server->port, server_free_port (), epmd, epmd, program);
    server_spawn (server, (char *[]){"sh", "-c", command, NULL});
    server_wait_port (server);
}

static void check (int status, const char *what)
{
    if (status != AMQP_STATUS_OK)
        die ("rabbitmq: %s: %s", what, amqp_error_string2 (status));
}

static void check_reply (amqp_rpc_reply_t reply, const char *what)
{
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
        check (reply.library_error, what);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        die ("rabbitmq: %s: the server refuses it", what);
}

static void queue_declare (client_t *self, const char *name)
{
    amqp_table_entry_t entry = {.key = amqp_cstring_bytes ("x-queue-type"),
                                .value = {.kind = AMQP_FIELD_KIND_UTF8}};
    entry.value.value.bytes = amqp_cstring_bytes (self->type);
    amqp_queue_declare (self->connection, CHANNEL, amqp_cstring_bytes (name), false, true, false,
                        false, (amqp_table_t){1, &entry});
    check_reply (amqp_get_rpc_reply (self->connection), "queue");
}

static client_t *client_new (const server_t *server, const char *queue, const char *type)
{
    /* A quorum queue can be used only after whoever declared it first has been answered. */
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    client_t *self = need_memory (calloc (1, sizeof *self));
    pthread_mutex_lock (&one_at_a_time);
    self->type = type;
    snprintf (self->queue, sizeof self->queue, "%s", queue);
    self->connection = need_memory (amqp_new_connection ());
    check (amqp_socket_open (need_memory (amqp_tcp_socket_new (self->connection)), "127.0.0.1",
                             server->port),
           "connect");
    check_reply (amqp_login (self->connection, "/", 0, AMQP_DEFAULT_FRAME_SIZE, 0,
                             AMQP_SASL_METHOD_PLAIN, "guest", "guest"),
                 "login");
    amqp_channel_open (self->connection, CHANNEL);
    check_reply (amqp_get_rpc_reply (self->connection), "channel");
    queue_declare (self, self->queue);
    pthread_mutex_unlock (&one_at_a_time);
    return self;
}

static void client_free (void *client)
{
    client_t *self = client;
    if (!self)
        return;
    client_free (self->results);
    amqp_destroy_connection (self->connection);
    free (self);
}

/* Publishing. */

static void confirms_begin (client_t *self)
{
    amqp_confirm_select (self->connection, CHANNEL);
    check_reply (amqp_get_rpc_reply (self->connection), "confirm");
}

static void publish (client_t *self, const char *queue, const void *bytes, size_t length)
{
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
                                          .delivery_mode = PERSISTENT};
    amqp_bytes_t body = {length, (void *) (uintptr_t) bytes};
    check (amqp_basic_publish (self->connection, CHANNEL, amqp_empty_bytes,
                               amqp_cstring_bytes (queue), false, false, &properties, body),
           "publish");
    self->published++;
    self->open++;
}

static void confirm (client_t *self, uint64_t number)
{
    self->open -= self->confirms[number % CONFIRMS_MAX] ? 0 : 1;
    self->confirms[number % CONFIRMS_MAX] = true;
}

static void confirm_next (client_t *self)
{
    amqp_frame_t frame;
    struct timeval limit = {ANSWER_SECONDS, 0};
    amqp_maybe_release_buffers (self->connection);
    check (amqp_simple_wait_frame_noblock (self->connection, &frame, &limit), "confirm");
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        die ("rabbitmq: a message was not confirmed");
    const amqp_basic_ack_t *ack = frame.payload.method.decoded;
    if (ack->delivery_tag > self->published)
        die ("rabbitmq: a confirm for nothing");
    for (uint64_t number = ack->multiple ? self->confirmed + 1 : ack->delivery_tag;
         number <= ack->delivery_tag; number++)
        confirm (self, number);
    while (self->confirmed < self->published &&
           self->confirms[(self->confirmed + 1) % CONFIRMS_MAX]) {
        self->confirmed++;
        self->confirms[self->confirmed % CONFIRMS_MAX] = false;
    }
}

/* Producers. */

static void consume (client_t *self, bool acknowledges)
{
    amqp_basic_consume (self->connection, CHANNEL, amqp_cstring_bytes (self->queue),
                        amqp_empty_bytes, false, !acknowledges, false, amqp_empty_table);
    check_reply (amqp_get_rpc_reply (self->connection), "consume");
}

static void *producer_of (const server_t *server, const char *queue, const char *type)
{
    client_t *self = client_new (server, queue, type);
    confirms_begin (self);
    self->results = client_new (server, results, type);
    return self;
}

static void *quorum_producer_new (const server_t *server, const char *queue)
{
    return producer_of (server, queue, "quorum");
}

static void *classic_producer_new (const server_t *server, const char *queue)
{
    return producer_of (server, queue, "classic");
}

static void submit_start (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    publish (self, self->queue, payload, sizeof *payload);
}

static size_t submit_settle (void *producer, size_t open)
{
    client_t *self = producer;
    while (self->open > open)
        confirm_next (self);
    return self->open;
}

static void submit (void *producer, const payload_t *payload)
{
    submit_start (producer, payload);
    submit_settle (producer, 0);
}

/* False: nothing came in time. */
static bool delivery_next (client_t *self, amqp_envelope_t *out, struct timeval limit)
{
    amqp_maybe_release_buffers (self->connection);
    amqp_rpc_reply_t reply = amqp_consume_message (self->connection, out, &limit, 0);
    if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
        reply.library_error == AMQP_STATUS_TIMEOUT)
        return false;
    check_reply (reply, "delivery");
    return true;
}

static void call (void *producer, const payload_t *payload)
{
    client_t *self = producer;
    if (self->published == 0)
        consume (self->results, false);
    submit (producer, payload);
    amqp_envelope_t envelope;
    if (!delivery_next (self->results, &envelope, (struct timeval){ANSWER_SECONDS, 0}))
        die ("rabbitmq: no result came");
    amqp_destroy_envelope (&envelope);
}

/* Workers. */

static void *worker_of (const server_t *server, const char *queue, size_t prefetch,
                        const char *type)
{
    client_t *self = client_new (server, queue, type);
    self->prefetch = prefetch;
    confirms_begin (self);
    queue_declare (self, results);
    amqp_basic_qos (self->connection, CHANNEL, 0, (uint16_t) prefetch, false);
    check_reply (amqp_get_rpc_reply (self->connection), "prefetch");
    consume (self, true);
    return self;
}

static void *quorum_worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    return worker_of (server, queue, prefetch, "quorum");
}

static void *classic_worker_new (const server_t *server, const char *queue, size_t prefetch)
{
    return worker_of (server, queue, prefetch, "classic");
}

static size_t take (void *worker, payload_t *out, size_t max)
{
    client_t *self = worker;
    struct timeval limit = {0, WAIT_MS * 1000};
    amqp_envelope_t envelope;
    while (self->taken_count < max && delivery_next (self, &envelope, limit)) {
        if (envelope.message.body.len != sizeof *out)
            die ("rabbitmq: an unknown payload");
        memcpy (&out[self->taken_count], envelope.message.body.bytes, sizeof *out);
        self->wants_result |= out[self->taken_count++].wants_result == 1;
        self->last_taken = envelope.delivery_tag;
        amqp_destroy_envelope (&envelope);
        limit = (struct timeval){0, 0};
    }
    return self->taken_count;
}

static size_t finish (void *worker, bool settle)
{
    (void) settle; /* there is no answer to wait for */
    client_t *self = worker;
    if (self->taken_count == 0)
        return 0;
    if (self->wants_result) {
        publish (self, results, "done", 4);
        submit_settle (self, 0);
    }
    self->wants_result = false;
    check (amqp_basic_ack (self->connection, CHANNEL, self->last_taken, true), "ack");
    size_t ended = self->taken_count;
    self->taken_count = 0;
    return ended;
}

#define NOT_DONE                                                                                   \
    "; acknowledgements of workers are not confirmed, there is no status, and no result but a "    \
    "second message"
/* rabbitmqctl leaves a crash dump behind when it may not read a cookie at home. */
#define VERSION "basename /usr/lib/rabbitmq/lib/rabbitmq_server-*"

const driver_t rabbitmq_driver = {
    .system = "rabbitmq",
    .durability = "fsync",
    .note = "a quorum queue of one member, publisher confirms" NOT_DONE,
    .version = VERSION,
    .available = available,
    .start = start,
    .producer_new = quorum_producer_new,
    .producer_free = client_free,
    .submit = submit,
    .submit_start = submit_start,
    .submit_settle = submit_settle,
    .call = call,
    .worker_new = quorum_worker_new,
    .worker_free = client_free,
    .take = take,
    .finish = finish,
};

const driver_t rabbitmq_classic_driver = {
    .system = "rabbitmq-classic",
    .durability = "fsync",
    .note = "a durable classic queue, persistent messages, publisher confirms" NOT_DONE,
    .version = VERSION,
    .available = available,
    .start = start,
    .producer_new = classic_producer_new,
    .producer_free = client_free,
    .submit = submit,
    .submit_start = submit_start,
    .submit_settle = submit_settle,
    .call = call,
    .worker_new = classic_worker_new,
    .worker_free = client_free,
    .take = take,
    .finish = finish,
};
