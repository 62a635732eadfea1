/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Clients that ask for more than their share: the others are served, and the broker stops when it
 * is told to. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/timing.h"
#include "support/zmtp.h"

enum { REQUESTS = 1000, GREEDY = 4, MESSAGES = 40, TASKS = 2000 };

static daemon_t broker;

static int set_up (void **state)
{
    (void) state;
    daemon_init_tcp (&broker);
    return 0;
}

/* Starts the broker with these lines of configuration. */
static void start_with (const char *configuration)
{
    static char path[DAEMON_PATH_MAX + 16];
    snprintf (path, sizeof (path), "%s/conf", broker.home);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (configuration, file);
    assert_int_equal (fclose (file), 0);
    size_t used = 0;
    while (broker.arguments[used] != NULL)
        used++;
    broker.arguments[used] = "--config";
    broker.arguments[used + 1] = path;
    daemon_start (&broker);
}

static uint64_t counter (const char *name)
{
    tmq_client_t *client = daemon_client (&broker);
    tmq_stats_t *stats = NULL;
    uint64_t value = UINT64_MAX;
    assert_int_equal (tmq_stats (&stats, client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    for (size_t i = 0; i < stats->counters_count; i++)
        if (strcmp (stats->counters[i].name, name) == 0)
            value = stats->counters[i].value;
    tmq_stats_free (stats);
    tmq_client_free (&client);
    return value;
}

static int tear_down (void **state)
{
    (void) state;
    daemon_destroy (&broker);
    return 0;
}

static void submit_tasks (void)
{
    tmq_client_t *client = daemon_client (&broker);
    tmq_submit_t tasks[TASKS];
    tmq_receipt_t receipts[TASKS];
    for (int i = 0; i < TASKS; i++) {
        tmq_submit_init (&tasks[i]);
        tasks[i].queue = "work";
    }
    assert_int_equal (tmq_submit_batch (receipts, client, tasks, TASKS, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal (receipts[i].code, TMQ_OK);
    tmq_client_free (&client);
}

/* A message of the link with the same request many times; its size. */
static size_t pack_many (uint8_t packed[TMQ_ENVELOPE_BYTES_MAX], raw_t *raw,
                         const Taskmq__Request *request)
{
    static Taskmq__Request requests[REQUESTS];
    static Taskmq__Request *pointers[REQUESTS];
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    for (int i = 0; i < REQUESTS; i++) {
        requests[i] = *request;
        requests[i].id = ++raw->next_id;
        pointers[i] = &requests[i];
    }
    message.requests = pointers;
    message.n_requests = REQUESTS;
    message.token.data = raw->token;
    message.token.len = sizeof raw->token;
    size_t size = taskmq__client_message__get_packed_size (&message);
    assert_true (size <= TMQ_ENVELOPE_BYTES_MAX);
    taskmq__client_message__pack (&message, packed);
    return size;
}

/* Many requests that the tables have to answer. */
static void send_counts (raw_t *raw)
{
    static Taskmq__Count count = TASKMQ__COUNT__INIT;
    static Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    static uint8_t packed[TMQ_ENVELOPE_BYTES_MAX];
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    count.filter = &filter;
    request.op_case = TASKMQ__REQUEST__OP_COUNT;
    request.count = &count;
    size_t size = pack_many (packed, raw, &request);
    const void *frames[] = {packed};
    raw_send (raw, frames, &size, 1);
}

/* More reads than can be done until a stop gives up waiting for them. */
static void test_a_stop_under_reads_is_clean (void **state)
{
    (void) state;
    raw_t greedy[GREEDY];
    daemon_start (&broker);
    submit_tasks ();
    for (int i = 0; i < GREEDY; i++) {
        raw_open (&greedy[i], broker.endpoint);
        raw_hello (&greedy[i]);
    }
    for (int i = 0; i < MESSAGES * GREEDY; i++)
        send_counts (&greedy[i % GREEDY]);
    taskmq__broker_message__free_unpacked (raw_receive (&greedy[0]), NULL);
    daemon_stop (&broker);
    for (int i = 0; i < GREEDY; i++)
        raw_close (&greedy[i]);
}

static uint32_t say_hello (raw_t *raw)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = TMQ_PROTOCOL_VERSION;
    hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.client = "raw";
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    return raw_request (raw, &request, NULL, 0);
}

/* Connections that ended make room at once, however many there were. */
static void test_clients_that_come_and_go_find_room (void **state)
{
    (void) state;
    enum { LINKS = 2, CLIENTS = 40 };
    start_with ("limits\n    links = 2\n");
    for (int i = 0; i < CLIENTS; i++) {
        tmq_client_t *client = daemon_client (&broker);
        assert_int_equal (tmq_ping (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        tmq_client_free (&client);
    }
    assert_int_equal (counter ("peers_refused"), 0);
    daemon_stop (&broker);
}

/* Twice as many connections are told apart as may have links; the next is told that it is one too
 * many, and is taken when there is room again. */
static void test_a_newcomer_without_room_is_told (void **state)
{
    (void) state;
    raw_t inside[4];
    raw_t newcomer;
    start_with ("limits\n    links = 2\n");
    for (int i = 0; i < 4; i++) {
        raw_open (&inside[i], broker.endpoint);
        say_hello (&inside[i]);
    }
    raw_open (&newcomer, broker.endpoint);
    assert_int_equal (say_hello (&newcomer), TMQ_LIMIT);
    assert_true (daemon_logged (&broker, "id=LINKS-FULL"));
    raw_close (&inside[0]);
    raw_close (&inside[1]);
    WAIT_FOR (say_hello (&newcomer) == TMQ_OK, TIMING_PATIENCE_MS);
    raw_close (&newcomer);
    raw_close (&inside[2]);
    raw_close (&inside[3]);
    daemon_stop (&broker);
}

/* ZeroMQ's own sockets take at most 255 bytes, its wire takes more. */
static void test_a_chosen_routing_id_ends_the_connection (void **state)
{
    (void) state;
    uint8_t id[300];
    daemon_start (&broker);
    memset (id, 7, sizeof (id));
    int fd = zmtp_open (broker.endpoint, "DEALER", id, sizeof (id));
    for (int i = 0; i < 10; i++)
        if (!zmtp_send (fd, false, "x", 1))
            break;
    zmtp_wait_end (fd);
    close (fd);
    assert_true (counter ("connections_cut_claimed") >= 1);
    assert_true (counter ("peers") <= 3);
    daemon_stop (&broker);
}

static void test_a_message_without_an_end_ends_the_connection (void **state)
{
    (void) state;
    enum { FRAME_BYTES = 65536, FRAMES = 1024 };
    static uint8_t frame[FRAME_BYTES];
    daemon_start (&broker);
    int fd = zmtp_open (broker.endpoint, "DEALER", NULL, 0);
    bool open = true;
    for (int i = 0; open && i < FRAMES; i++)
        open = zmtp_send (fd, true, frame, sizeof (frame));
    zmtp_wait_end (fd);
    close (fd);
    assert_int_equal (counter ("connections_cut_endless"), 1);
    daemon_stop (&broker);
}

/* A feed takes short subscriptions and nothing else. */
static void test_a_feed_bounds_what_it_is_sent (void **state)
{
    (void) state;
    enum { FRAME_BYTES = 1000, FRAMES = 65536 };
    static uint8_t frame[2 * FRAME_BYTES];
    char endpoint[64];
    char feed[96];
    snprintf (endpoint, sizeof (endpoint), "tcp://127.0.0.1:%d", daemon_free_port ());
    snprintf (feed, sizeof (feed), "default=%s", endpoint);
    size_t used = 0;
    while (broker.arguments[used] != NULL)
        used++;
    broker.arguments[used] = "--feed";
    broker.arguments[used + 1] = feed;
    daemon_start (&broker);
    int large = zmtp_open (endpoint, "SUB", NULL, 0);
    zmtp_send (large, false, frame, sizeof (frame));
    zmtp_wait_end (large);
    close (large);
    int endless = zmtp_open (endpoint, "SUB", NULL, 0);
    bool open = true;
    for (int i = 0; open && i < FRAMES; i++)
        open = zmtp_send (endless, true, frame, FRAME_BYTES);
    zmtp_wait_end (endless);
    close (endless);
    daemon_stop (&broker);
}

static void test_a_message_of_heaps_of_frames_ends_the_connection (void **state)
{
    (void) state;
    enum { FRAMES = 10000 };
    daemon_start (&broker);
    int fd = zmtp_open (broker.endpoint, "DEALER", NULL, 0);
    for (int i = 0; i < FRAMES; i++)
        assert_true (zmtp_send (fd, i + 1 < FRAMES, "x", 1));
    zmtp_wait_end (fd);
    close (fd);
    assert_int_equal (counter ("connections_cut_endless"), 1);
    daemon_stop (&broker);
}

static void test_a_connection_without_a_word_ends (void **state)
{
    (void) state;
    raw_t linked;
    start_with ("links\n    hello = 1s\n");
    raw_open (&linked, broker.endpoint);
    raw_hello (&linked);
    int fd = zmtp_open (broker.endpoint, "DEALER", NULL, 0);
    zmtp_wait_end (fd);
    close (fd);
    assert_true (counter ("connections_cut_mute") >= 1);
    raw_close (&linked);
    daemon_stop (&broker);
}

typedef struct flood {
    raw_t raw;
    uint8_t packed[TMQ_ENVELOPE_BYTES_MAX];
    size_t size;
    atomic_bool stop;
    bool deaf;
} flood_t;

/* Sends its message as fast as it is taken, and throws the answers away or never reads them. */
static void *flood (void *context)
{
    flood_t *self = context;
    char answer[1024];
    while (!atomic_load (&self->stop)) {
        zmq_send (self->raw.socket, self->packed, self->size, ZMQ_DONTWAIT);
        while (!self->deaf &&
               zmq_recv (self->raw.socket, answer, sizeof (answer), ZMQ_DONTWAIT) >= 0)
            continue;
    }
    return NULL;
}

static void flood_start (flood_t *self, pthread_t *thread, const Taskmq__Request *request)
{
    raw_open (&self->raw, broker.endpoint);
    raw_hello (&self->raw);
    self->size = pack_many (self->packed, &self->raw, request);
    atomic_init (&self->stop, false);
    assert_int_equal (pthread_create (thread, NULL, flood, self), 0);
}

static void flood_stop (flood_t *self, pthread_t thread)
{
    atomic_store (&self->stop, true);
    pthread_join (thread, NULL);
    raw_close (&self->raw);
}

/* Others are answered, and the time of tasks goes on. */
static void expect_service (void)
{
    enum { PINGS = 20 };
    tmq_client_t *client = daemon_client (&broker);
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_status_t status = TMQ_STATUS_QUEUED;
    for (int i = 0; i < PINGS; i++)
        assert_int_equal (tmq_ping (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_submit_init (&task);
    task.queue = "none";
    task.ttl_ms = 1000;
    assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_wait (&status, client, &receipt.id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (status, TMQ_STATUS_FAILED); /* it expired */
    tmq_client_free (&client);
}

/* One that never stops sending stops neither the others nor the clock. */
static void test_a_flood_stops_nobody (void **state)
{
    (void) state;
    static flood_t self;
    pthread_t thread;
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &heartbeat;
    daemon_start (&broker);
    flood_start (&self, &thread, &request);
    expect_service ();
    flood_stop (&self, thread);
    daemon_stop (&broker);
}

/* … nor does one that never reads. It keeps its own line waiting. */
static void test_a_flood_of_a_deaf_one_stops_nobody (void **state)
{
    (void) state;
    static flood_t self;
    pthread_t thread;
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_STATS;
    request.stats = &stats;
    self.deaf = true;
    daemon_start (&broker);
    flood_start (&self, &thread, &request);
    WAIT_FOR (counter ("inbox_messages") > 0, TIMING_PATIENCE_MS);
    expect_service ();
    flood_stop (&self, thread);
    WAIT_FOR (counter ("inbox_messages") == 0, TIMING_PATIENCE_MS);
    daemon_stop (&broker);
}

/* The same with requests that cost much; what does not fit into the lines is refused. */
static void test_floods_of_reads_stop_nobody (void **state)
{
    (void) state;
    enum { FLOODS = 3 };
    static flood_t floods[FLOODS];
    pthread_t threads[FLOODS];
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Request requests[FLOODS] = {TASKMQ__REQUEST__INIT, TASKMQ__REQUEST__INIT,
                                        TASKMQ__REQUEST__INIT};
    tmq_id_t id;
    tmq_id_make (&id);
    get.task_id.data = id.bytes;
    get.task_id.len = sizeof (id.bytes);
    list.filter = &filter;
    list.limit = 10;
    requests[0].op_case = TASKMQ__REQUEST__OP_STATS;
    requests[0].stats = &stats;
    requests[1].op_case = TASKMQ__REQUEST__OP_GET;
    requests[1].get = &get;
    requests[2].op_case = TASKMQ__REQUEST__OP_LIST;
    requests[2].list = &list;
    daemon_start (&broker);
    submit_tasks ();
    for (int i = 0; i < FLOODS; i++)
        flood_start (&floods[i], &threads[i], &requests[i]);
    WAIT_FOR (counter ("inbox_refused") > 0, TIMING_PATIENCE_MS);
    assert_in_range (counter ("inbox_messages"), 0, FLOODS * 64 + 64);
    expect_service ();
    for (int i = 0; i < FLOODS; i++)
        flood_stop (&floods[i], threads[i]);
    daemon_stop (&broker);
}

/* Requests without fields of their own that matter here. */
static void send_stats (raw_t *raw)
{
    static Taskmq__Stats stats = TASKMQ__STATS__INIT;
    static uint8_t packed[TMQ_ENVELOPE_BYTES_MAX];
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_STATS;
    request.stats = &stats;
    size_t size = pack_many (packed, raw, &request);
    const void *frames[] = {packed};
    raw_send (raw, frames, &size, 1);
}

static uint64_t counter_in (const Taskmq__StatsReport *stats, const char *name)
{
    for (size_t i = 0; i < stats->n_counters; i++)
        if (strcmp (stats->counters[i]->name, name) == 0)
            return stats->counters[i]->value;
    fail_msg ("no counter %s", name);
    return 0;
}

/* A long message takes many rounds, in which everybody else has their turn; its answers keep the
 * order of its requests, and so do those of the message behind it. */
static void test_a_long_message_takes_many_rounds (void **state)
{
    (void) state;
    enum { SENT = 2, ROUNDS_MIN = 20 };
    raw_t raw;
    daemon_start (&broker);
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    uint64_t next = raw.next_id + 1;
    for (int i = 0; i < SENT; i++)
        send_stats (&raw);
    uint64_t first = 0;
    uint64_t last = 0;
    while (next <= raw.next_id) {
        Taskmq__BrokerMessage *message = raw_receive (&raw);
        for (size_t i = 0; i < message->n_replies; i++) {
            const Taskmq__Reply *reply = message->replies[i];
            assert_int_equal (reply->id, next++);
            assert_int_equal (reply->body_case, TASKMQ__REPLY__BODY_STATS);
            last = counter_in (reply->stats, "server_rounds");
            first = first == 0 ? last : first;
        }
        taskmq__broker_message__free_unpacked (message, NULL);
    }
    assert_true (last - first >= ROUNDS_MIN);
    raw_close (&raw);
    WAIT_FOR (counter ("inbox_messages") == 0, TIMING_PATIENCE_MS);
    assert_int_equal (counter ("inbox_bytes"), 0);
    daemon_stop (&broker);
}

static void submit_one (raw_t *raw, tmq_id_t *id)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__TaskSpec *specs[] = {&spec};
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Request *requests[] = {&request};
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    uint8_t packed[1024];
    tmq_id_make (id);
    spec.task_id.data = id->bytes;
    spec.task_id.len = sizeof (id->bytes);
    spec.queue = "work";
    submit.tasks = specs;
    submit.n_tasks = 1;
    request.id = ++raw->next_id;
    request.op_case = TASKMQ__REQUEST__OP_SUBMIT;
    request.request_id = spec.task_id;
    request.submit = &submit;
    message.requests = requests;
    message.n_requests = 1;
    message.token.data = raw->token;
    message.token.len = sizeof (raw->token);
    size_t size = taskmq__client_message__pack (&message, packed);
    const void *frames[] = {packed};
    raw_send (raw, frames, &size, 1);
}

/* How many messages the broker has taken, this one aside (or with it, if it had to wait). */
static uint64_t messages_taken (raw_t *raw)
{
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Request *requests[] = {&request};
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    uint8_t packed[256];
    request.id = ++raw->next_id;
    request.op_case = TASKMQ__REQUEST__OP_STATS;
    request.stats = &stats;
    message.requests = requests;
    message.n_requests = 1;
    message.token.data = raw->token;
    message.token.len = sizeof (raw->token);
    size_t size = taskmq__client_message__pack (&message, packed);
    const void *frames[] = {packed};
    raw_send (raw, frames, &size, 1);
    Taskmq__BrokerMessage *answer = raw_receive (raw);
    assert_int_equal (answer->n_replies, 1);
    uint64_t value = counter_in (answer->replies[0]->stats, "server_messages");
    taskmq__broker_message__free_unpacked (answer, NULL);
    return value;
}

/* What was sent counts, also when its sender left while it still waited; what was only asked is
 * dropped. A connection that ends with unread answers loses what is on its way, so it ends when the
 * broker has taken all of it. The last message makes up for the doubt in messages_taken. */
static void test_the_last_words_of_one_who_waits_count (void **state)
{
    (void) state;
    enum { ASKED = 4, SENT = 1 + ASKED + 2 };
    tmq_id_t id;
    tmq_id_t other;
    raw_t raw;
    raw_t observer;
    daemon_start (&broker);
    raw_open (&observer, broker.endpoint);
    raw_hello (&observer);
    uint64_t before = messages_taken (&observer);
    uint64_t looks = 1;
    raw_open (&raw, broker.endpoint);
    raw_hello (&raw);
    for (int i = 0; i < ASKED; i++)
        send_stats (&raw);
    submit_one (&raw, &id);
    submit_one (&raw, &other);
    WAIT_FOR (messages_taken (&observer) >= before + looks++ + SENT, TIMING_PATIENCE_MS);
    raw_close (&raw);
    raw_close (&observer);
    tmq_client_t *client = daemon_client (&broker);
    tmq_task_t *task = NULL;
    WAIT_FOR (tmq_get (&task, client, &id, TIMING_PATIENCE_MS, NULL) == TMQ_OK, TIMING_PATIENCE_MS);
    tmq_task_free (task);
    tmq_client_free (&client);
    WAIT_FOR (counter ("inbox_messages") == 0, TIMING_PATIENCE_MS);
    daemon_stop (&broker);
}

#define TEST(name) cmocka_unit_test_setup_teardown (test_##name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_stop_under_reads_is_clean),
        TEST (a_flood_stops_nobody),
        TEST (floods_of_reads_stop_nobody),
        TEST (a_flood_of_a_deaf_one_stops_nobody),
        TEST (a_long_message_takes_many_rounds),
        TEST (the_last_words_of_one_who_waits_count),
        TEST (clients_that_come_and_go_find_room),
        TEST (a_newcomer_without_room_is_told),
        TEST (a_chosen_routing_id_ends_the_connection),
        TEST (a_message_without_an_end_ends_the_connection),
        TEST (a_feed_bounds_what_it_is_sent),
        TEST (a_message_of_heaps_of_frames_ends_the_connection),
        TEST (a_connection_without_a_word_ends),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
