/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The client object with its threads and a real socket, but without a broker: what it does when
 * nobody answers, when somebody else does, and when it is used wrongly. */
#include "support/cmocka_all.h"
#include "support/timing.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "taskmq.h"

static tmq_client_t *client_to (const char *const *endpoints, size_t count)
{
    tmq_client_t *client = NULL;
    tmq_error_t error;
    tmq_client_options_t options;
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = count;
    int code = tmq_client_new (&client, &options, &error);
    if (code != TMQ_OK)
        fail_msg ("%s", error.text);
    return client;
}

static tmq_client_t *client_to_nobody (void)
{
    static const char *const endpoints[] = {"ipc:///nonexistent/taskmq-test.ipc"};
    return client_to (endpoints, 1);
}

/* Nobody there. */

static void nobody_there_is_unreachable (void **state)
{
    (void) state;
    tmq_client_t *client = client_to_nobody ();
    tmq_error_t error;
    tmq_receipt_t receipt;
    tmq_submit_t task;
    tmq_status_t status;
    tmq_task_t *out = NULL;
    tmq_id_t id;
    tmq_submit_init (&task);
    task.queue = "q";
    tmq_id_make (&id);
    assert_int_equal (tmq_client_connect (client, 2000, &error), TMQ_UNREACHABLE);
    assert_non_null (strstr (error.text, "taskmq-test.ipc"));
    assert_int_equal (tmq_submit (&receipt, client, &task, 100, &error), TMQ_UNREACHABLE);
    assert_int_equal (receipt.code, TMQ_UNREACHABLE);
    assert_true (error.retriable);
    assert_int_equal (tmq_get (&out, client, &id, 50, &error), TMQ_UNREACHABLE);
    assert_int_equal (tmq_wait (&status, client, &id, 50, &error), TMQ_UNREACHABLE);
    assert_int_equal (tmq_ping (client, 0, &error), TMQ_UNREACHABLE);
    tmq_client_free (&client);
    assert_null (client);
}

static void completions_wake_the_descriptor (void **state)
{
    (void) state;
    tmq_client_t *client = client_to_nobody ();
    tmq_completion_t *completions[10];
    size_t count = 0;
    struct pollfd descriptor = {tmq_client_fd (client), POLLIN, 0};
    assert_int_equal (poll (&descriptor, 1, 0), 0);
    assert_int_equal (tmq_client_poll (completions, 10, &count, client, 0), TMQ_TIMEOUT);
    for (intptr_t i = 1; i <= 3; i++)
        assert_int_equal (tmq_ping_start (client, 20, (void *) i, NULL), TMQ_OK);
    assert_int_equal (poll (&descriptor, 1, TIMING_PATIENCE_MS), 1);
    unsigned got = 0; /* a bit for each */
    while (got != (2 | 4 | 8)) {
        assert_int_equal (poll (&descriptor, 1, TIMING_PATIENCE_MS), 1);
        assert_int_equal (tmq_client_poll (completions, 1, &count, client, 0), TMQ_OK);
        assert_int_equal (count, 1);
        assert_int_equal (completions[0]->op, TMQ_OP_PING);
        assert_int_equal (completions[0]->code, TMQ_UNREACHABLE);
        got |= 1u << (intptr_t) completions[0]->user;
        tmq_completion_free (completions[0]);
    }
    assert_int_equal (poll (&descriptor, 1, 0), 0); /* taken: not readable any more */
    tmq_client_free (&client);
}

typedef struct blocked {
    tmq_client_t *client;
    int code;
} blocked_t;

static void *wait_long (void *argument)
{
    blocked_t *blocked = argument;
    blocked->code = tmq_ping (blocked->client, 300, NULL);
    return NULL;
}

static void a_hundred_threads_end_at_their_deadline (void **state)
{
    (void) state;
    tmq_client_t *client = client_to_nobody ();
    pthread_t threads[100];
    blocked_t blocked[100];
    for (int i = 0; i < 100; i++) {
        blocked[i] = (blocked_t){client, -1};
        assert_int_equal (pthread_create (&threads[i], NULL, wait_long, &blocked[i]), 0);
    }
    for (int i = 0; i < 100; i++) {
        pthread_join (threads[i], NULL);
        assert_int_equal (blocked[i].code, TMQ_UNREACHABLE);
    }
    tmq_client_free (&client);
}

static void freeing_forgets_what_is_open (void **state)
{
    (void) state;
    tmq_client_t *client = client_to_nobody ();
    tmq_subscription_t *subscription = NULL;
    tmq_worker_t *worker = NULL;
    tmq_id_t ids[100];
    static const char *const queues[] = {"q"};
    tmq_worker_options_t options;
    tmq_worker_options_init (&options);
    options.queues = queues;
    options.queues_count = 1;
    options.notify = true;
    for (int i = 0; i < 100; i++) {
        tmq_id_make (&ids[i]);
        assert_int_equal (tmq_ping_start (client, TMQ_FOREVER, NULL, NULL), TMQ_OK);
    }
    assert_int_equal (tmq_wait_start (client, ids, 100, TMQ_FOREVER, NULL, NULL), TMQ_OK);
    assert_int_equal (tmq_subscription_new (&subscription, client, NULL, NULL), TMQ_OK);
    assert_int_equal (tmq_worker_new (&worker, client, &options, NULL), TMQ_OK);
    tmq_client_free (&client); /* with its objects */
}

/* Somebody else. */

/* A ROUTER that answers whatever comes with these frames. */
static void *router_on_free_port (void *context, char endpoint[64])
{
    size_t size = 64;
    int linger = 0;
    void *router = zmq_socket (context, ZMQ_ROUTER);
    assert_non_null (router);
    zmq_setsockopt (router, ZMQ_LINGER, &linger, sizeof linger);
    assert_int_equal (zmq_bind (router, "tcp://127.0.0.1:*"), 0);
    assert_int_equal (zmq_getsockopt (router, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    return router;
}

/* Waits for a message and returns the routing id of its sender. */
static size_t router_receive (void *router, void *routing_id, size_t size)
{
    zmq_pollitem_t item = {router, 0, ZMQ_POLLIN, 0};
    assert_int_equal (zmq_poll (&item, 1, TIMING_PATIENCE_MS), 1);
    int bytes = zmq_recv (router, routing_id, size, 0);
    assert_in_range (bytes, 1, (int) size);
    int more = 1;
    size_t more_size = sizeof more;
    char buffer[1000];
    while (zmq_getsockopt (router, ZMQ_RCVMORE, &more, &more_size) == 0 && more != 0)
        zmq_recv (router, buffer, sizeof buffer, 0);
    return (size_t) bytes;
}

static void strange_answers_are_answered_by_a_new_connection (void **state)
{
    (void) state;
    void *context = zmq_ctx_new ();
    char endpoint[64];
    void *router = router_on_free_port (context, endpoint);
    const char *const endpoints[] = {endpoint};
    tmq_client_t *client = client_to (endpoints, 1);
    uint8_t first[32];
    uint8_t again[32];
    size_t first_bytes = router_receive (router, first, sizeof first);
    zmq_send (router, first, first_bytes, ZMQ_SNDMORE); /* four frames */
    zmq_send (router, "a", 1, ZMQ_SNDMORE);
    zmq_send (router, "b", 1, ZMQ_SNDMORE);
    zmq_send (router, "c", 1, ZMQ_SNDMORE);
    zmq_send (router, "d", 1, 0);
    size_t again_bytes = router_receive (router, again, sizeof again);
    assert_true (again_bytes != first_bytes || memcmp (first, again, first_bytes) != 0);
    zmq_send (router, again, again_bytes, ZMQ_SNDMORE); /* not protobuf */
    zmq_send (router, "\xff\xff\xff\xff", 4, 0);
    first_bytes = router_receive (router, first, sizeof first);
    assert_true (again_bytes != first_bytes || memcmp (first, again, first_bytes) != 0);
    tmq_client_free (&client);
    zmq_close (router);
    zmq_ctx_term (context);
}

/* What libzmq asks about a new connection, answered with this status; returns when asked. */
static void judge_connection (void *zap, const char *status)
{
    char version[8];
    char request[8];
    size_t sizes[2];
    zmq_pollitem_t item = {zap, 0, ZMQ_POLLIN, 0};
    assert_int_equal (zmq_poll (&item, 1, TIMING_PATIENCE_MS), 1);
    sizes[0] = (size_t) zmq_recv (zap, version, sizeof version, 0);
    sizes[1] = (size_t) zmq_recv (zap, request, sizeof request, 0);
    int more = 1;
    size_t more_size = sizeof more;
    char buffer[256];
    while (zmq_getsockopt (zap, ZMQ_RCVMORE, &more, &more_size) == 0 && more != 0)
        zmq_recv (zap, buffer, sizeof buffer, 0);
    zmq_send (zap, version, sizes[0], ZMQ_SNDMORE);
    zmq_send (zap, request, sizes[1], ZMQ_SNDMORE);
    zmq_send (zap, status, 3, ZMQ_SNDMORE);
    zmq_send (zap, "", 0, ZMQ_SNDMORE); /* text */
    zmq_send (zap, "", 0, ZMQ_SNDMORE); /* user */
    zmq_send (zap, "", 0, 0);           /* metadata */
}

static void a_refused_authentication_is_final (void **state)
{
    (void) state;
    void *context = zmq_ctx_new ();
    char endpoint[64];
    size_t size = sizeof endpoint;
    void *zap = zmq_socket (context, ZMQ_REP);
    void *router = zmq_socket (context, ZMQ_ROUTER);
    assert_int_equal (zmq_bind (zap, "inproc://zeromq.zap.01"), 0);
    assert_int_equal (zmq_setsockopt (router, ZMQ_ZAP_DOMAIN, "test", 4), 0);
    assert_int_equal (zmq_bind (router, "tcp://127.0.0.1:*"), 0);
    assert_int_equal (zmq_getsockopt (router, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    const char *const endpoints[] = {endpoint};
    tmq_client_t *client = client_to (endpoints, 1);
    tmq_error_t error;
    judge_connection (zap, "400");
    assert_int_equal (tmq_client_connect (client, TIMING_PATIENCE_MS, &error),
                      TMQ_NOT_AUTHENTICATED);
    assert_false (error.retriable);
    assert_non_null (strstr (error.text, "does not let you in"));
    assert_int_equal (tmq_ping (client, TMQ_FOREVER, &error), TMQ_NOT_AUTHENTICATED);
    tmq_client_free (&client);
    zmq_close (router);
    zmq_close (zap);
    zmq_ctx_term (context);
}

/* Another mechanism than the client's is a handshake that fails: each try is a new connection. */
static void a_failed_handshake_is_tried_again (void **state)
{
    (void) state;
    void *context = zmq_ctx_new ();
    char endpoint[64];
    size_t size = sizeof endpoint;
    int server = 1;
    void *router = zmq_socket (context, ZMQ_ROUTER);
    void *monitor = zmq_socket (context, ZMQ_PAIR);
    assert_int_equal (zmq_setsockopt (router, ZMQ_PLAIN_SERVER, &server, sizeof server), 0);
    assert_int_equal (zmq_socket_monitor (router, "inproc://handshakes", ZMQ_EVENT_ACCEPTED), 0);
    assert_int_equal (zmq_connect (monitor, "inproc://handshakes"), 0);
    assert_int_equal (zmq_bind (router, "tcp://127.0.0.1:*"), 0);
    assert_int_equal (zmq_getsockopt (router, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    const char *const endpoints[] = {endpoint};
    tmq_client_t *client = client_to (endpoints, 1);
    tmq_error_t error;
    for (int i = 0; i < 3; i++) {
        char event[6];
        zmq_pollitem_t item = {monitor, 0, ZMQ_POLLIN, 0};
        assert_int_equal (zmq_poll (&item, 1, TIMING_PATIENCE_MS), 1);
        assert_int_equal (zmq_recv (monitor, event, sizeof event, 0), 6);
        zmq_recv (monitor, event, sizeof event, 0); /* the address */
    }
    assert_int_equal (tmq_client_connect (client, 0, &error), TMQ_UNREACHABLE);
    assert_true (error.retriable);
    tmq_client_free (&client);
    zmq_socket_monitor (router, NULL, 0);
    zmq_close (monitor);
    zmq_close (router);
    zmq_ctx_term (context);
}

static void endpoints_are_tried_in_turn (void **state)
{
    (void) state;
    void *context = zmq_ctx_new ();
    char endpoint[64];
    uint8_t routing_id[32];
    void *router = router_on_free_port (context, endpoint);
    const char *const endpoints[] = {"ipc:///nonexistent/a.ipc", "tcp://127.0.0.1:1", endpoint};
    tmq_client_t *client = client_to (endpoints, 3);
    router_receive (router, routing_id, sizeof routing_id); /* the hello came through */
    tmq_client_free (&client);
    zmq_close (router);
    zmq_ctx_term (context);
}

/* Used wrongly. */

static void null_is_refused_not_followed (void **state)
{
    (void) state;
    tmq_client_t *client = NULL;
    tmq_error_t error;
    tmq_client_options_t options;
    tmq_completion_t *completion;
    size_t count;
    tmq_task_t *task;
    tmq_event_t *event;
    tmq_assignment_t *assignment;
    tmq_changed_t changed;
    tmq_id_t id = {{1}};
    tmq_client_options_init (&options);
    assert_int_equal (tmq_client_new (&client, NULL, &error), TMQ_INVALID);
    assert_int_equal (tmq_get (&task, NULL, &(tmq_id_t){{0}}, 0, &error), TMQ_INVALID);
    assert_int_equal (tmq_client_connect (NULL, 0, NULL), TMQ_INVALID);
    assert_int_equal (tmq_client_poll (&completion, 1, &count, NULL, 0), TMQ_INVALID);
    assert_int_equal (tmq_client_fd (NULL), -1);
    assert_int_equal (tmq_subscription_next (&event, NULL, 0, NULL), TMQ_INVALID);
    assert_int_equal (tmq_worker_next (&assignment, NULL, 0, NULL), TMQ_INVALID);
    assert_int_equal (tmq_worker_run (NULL, 1, NULL, NULL, NULL), TMQ_INVALID);
    assert_int_equal (tmq_retry (&changed, NULL, &id, 1, NULL, 0, &error), TMQ_INVALID);
    assert_int_equal (changed.code, TMQ_INVALID);
    tmq_client_free (NULL);
    tmq_client_free (&client);
    tmq_subscription_free (NULL);
    tmq_worker_free (NULL);
    tmq_task_free (NULL);
    tmq_event_free (NULL);
    tmq_completion_free (NULL);
    client = client_to_nobody ();
    assert_int_equal (tmq_get (&task, client, NULL, 0, &error), TMQ_INVALID);
    assert_int_equal (tmq_submit_start (client, NULL, 0, NULL, &error), TMQ_INVALID);
    assert_int_equal (tmq_wait_start (client, NULL, 1, 0, NULL, &error), TMQ_INVALID);
    assert_int_equal (tmq_client_poll (&completion, 0, &count, client, 0), TMQ_INVALID);
    tmq_client_free (&client);
}

static void a_forked_child_is_told (void **state)
{
    (void) state;
    tmq_client_t *client = client_to_nobody ();
    pid_t child = fork ();
    assert_true (child >= 0);
    if (child == 0) {
        tmq_error_t error;
        tmq_client_t *copy = client;
        tmq_completion_t *completion;
        size_t count;
        tmq_subscription_t *subscription = NULL;
        bool told = tmq_ping (client, TMQ_FOREVER, &error) == TMQ_FORKED &&
                    tmq_ping_start (client, TMQ_FOREVER, NULL, NULL) == TMQ_FORKED &&
                    tmq_client_poll (&completion, 1, &count, client, TMQ_FOREVER) == TMQ_FORKED &&
                    tmq_subscription_new (&subscription, client, NULL, NULL) == TMQ_FORKED &&
                    tmq_client_connect (client, TMQ_FOREVER, NULL) == TMQ_FORKED;
        tmq_client_free (&copy);
        _exit (told && copy == NULL ? 0 : 1);
    }
    int status = -1;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status));
    assert_int_equal (WEXITSTATUS (status), 0);
    assert_int_equal (tmq_ping (client, 20, NULL), TMQ_UNREACHABLE);
    tmq_client_free (&client);
}

static void options_by_keys (void **state)
{
    (void) state;
    tmq_client_options_t options;
    tmq_error_t error;
    tmq_client_t *client = NULL;
    char value[] = "tcp://127.0.0.1:1";
    tmq_client_options_init (&options);
    assert_int_equal (tmq_client_options_set (&options, "endpoint", value, &error), TMQ_OK);
    value[16] = '2'; /* it was copied */
    assert_int_equal (tmq_client_options_set (&options, "endpoint", value, &error), TMQ_OK);
    assert_int_equal (options.endpoints_count, 2);
    assert_string_equal (options.endpoints[0], "tcp://127.0.0.1:1");
    assert_string_equal (options.endpoints[1], "tcp://127.0.0.1:2");
    assert_int_equal (tmq_client_options_set (&options, "namespace", "ns", &error), TMQ_OK);
    assert_string_equal (options.ns, "ns");
    assert_int_equal (tmq_client_options_set (&options, "reconnect_ms_min", "250", &error), TMQ_OK);
    assert_int_equal (options.reconnect_ms_min, 250);
    assert_int_equal (tmq_client_options_set (&options, "log", "true", &error), TMQ_OK);
    assert_true (options.log);
    assert_int_equal (tmq_client_options_set (&options, "name", "me", &error), TMQ_OK);
    assert_string_equal (options.name, "me");
    assert_int_equal (tmq_client_options_set (&options, "reconnect_ms_max", "900", &error), TMQ_OK);
    assert_int_equal (options.reconnect_ms_max, 900);
    assert_int_equal (tmq_client_options_set (&options, "completions_max", "5", &error), TMQ_OK);
    assert_int_equal (options.completions_max, 5);
    assert_int_equal (tmq_client_options_set (&options, "outbox_bytes_max", "6", &error), TMQ_OK);
    assert_int_equal (options.outbox_bytes_max, 6);
    assert_int_equal (tmq_client_options_set (&options, "outbox_requests_max", "7", &error),
                      TMQ_OK);
    assert_int_equal (options.outbox_requests_max, 7);
    assert_int_equal (options.reads_max, 4);
    assert_int_equal (tmq_client_options_set (&options, "reads_max", "64", &error), TMQ_OK);
    assert_int_equal (options.reads_max, 64);
    static const char *const bad[][2] = {{"log", "yes"},
                                         {"outbox_bytes_max", "-1"},
                                         {"outbox_bytes_max", "64M"},
                                         {"reconnect_ms_max", "99999999999"},
                                         {"completions_max", "0"},
                                         {"fail_fast", "1"},
                                         {"endpoint", "localhost:5560"},
                                         {"colour", "red"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal (tmq_client_options_set (&options, bad[i][0], bad[i][1], &error),
                          TMQ_INVALID);
        assert_non_null (strstr (error.text, bad[i][0]));
    }
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_OK);
    tmq_client_options_clear (&options);
    assert_int_equal (options.endpoints_count, 0);
    tmq_client_free (&client);
    options.ns = "two words";
    assert_int_equal (tmq_client_options_set (&options, "endpoint", value, &error), TMQ_OK);
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_INVALID);
    assert_non_null (strstr (error.text, "namespace"));
    tmq_client_options_clear (&options);
}

static void log_lines_are_completions (void **state)
{
    (void) state;
    static const char *const endpoints[] = {"ipc:///nonexistent/taskmq-test.ipc"};
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_completion_t *completion;
    size_t count;
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = 1;
    options.log = true;
    assert_int_equal (tmq_client_new (&client, &options, NULL), TMQ_OK);
    assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (completion->op, TMQ_OP_LOG);
    assert_null (completion->error);
    assert_non_null (strstr (completion->text, "cannot reach"));
    tmq_completion_free (completion);
    tmq_client_free (&client);
}

static void versions_and_ids (void **state)
{
    (void) state;
    char text[37];
    tmq_id_t id;
    tmq_id_t parsed;
    assert_int_equal (tmq_version () >> 16, TMQ_VERSION_MAJOR);
    assert_true (TMQ_VERSION_CHECK ());
    assert_false (tmq_version_compatible (TMQ_VERSION_MAJOR + 1, 0));
    assert_false (tmq_version_compatible (TMQ_VERSION_MAJOR, TMQ_VERSION_MINOR + 1));
    tmq_id_make (&id);
    tmq_id_format (&id, text);
    assert_int_equal (tmq_id_parse (&parsed, text), TMQ_OK);
    assert_memory_equal (parsed.bytes, id.bytes, 16);
    assert_int_equal (text[14], '7');
    assert_int_equal (tmq_id_parse (&parsed, "not an id"), TMQ_INVALID);
    assert_int_equal (tmq_id_parse (&parsed, NULL), TMQ_INVALID);
    assert_string_equal (tmq_code_name (TMQ_UNKNOWN), "UNKNOWN");
    assert_string_equal (tmq_code_name (12345), "?");
    assert_true (tmq_code_retriable (TMQ_OVERLOADED));
    assert_string_equal (tmq_status_text (TMQ_STATUS_COMPLETED), "completed");
    assert_true (tmq_status_terminal (TMQ_STATUS_FAILED));
    assert_false (tmq_status_terminal (TMQ_STATUS_WORKING));
    assert_string_equal (tmq_event_kind_text (TMQ_EVENT_LEASE_LOST), "lease_lost");
}

static void an_endpoint_that_is_no_uri_is_invalid (void **state)
{
    (void) state;
    char path[200] = "ipc:///";
    memset (path + strlen (path), 'x', 150);
    const char *const bad[] = {"",
                               "localhost:5560",
                               "foo://127.0.0.1:5560",
                               "tcp://127.0.0.1",
                               "tcp://:5560",
                               "tcp://127.0.0.1:0",
                               "tcp://127.0.0.1:65536",
                               "tcp://127.0.0.1:5560/",
                               "tcp://one two:5560",
                               "tcp://::1:5560",
                               "ipc://",
                               path};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tmq_client_t *client = NULL;
        tmq_error_t error;
        assert_int_equal (tmq_client_open (&client, bad[i], &error), TMQ_INVALID);
        assert_non_null (strstr (error.text, "endpoint"));
    }
    static const struct {
        const char *uri;
        const char *text;
    } flaws[] = {{"localhost:5560", "tcp:// is to stand before it"},
                 {"[::1]:5560", "tcp:// is to stand before it"},
                 {"/tmp/socket", "ipc:// is to stand before it"},
                 {"foo://127.0.0.1:5560", "neither tcp://HOST:PORT nor ipc://PATH"},
                 {"tcp://", "with a port of 1 to 65535"},
                 {"tcp://a:1,tcp://b:1", "with spaces between"},
                 {"tcp://127.0.0.1", "has no port"},
                 {"tcp://[::1]", "has no port"},
                 {"tcp://127.0.0.1:65536", "a port of 1 to 65535"},
                 {"tcp://::1:5560", "in brackets"},
                 {"tcp://127.0.0.1:1?server_key=tmqpk_x", "tcp://127.0.0.1:1: server_key"},
                 {"tcp://127.0.0.1:1?secure", "tcp://127.0.0.1:1: behind '?'"}};
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        tmq_client_t *client = NULL;
        tmq_error_t error;
        assert_int_equal (tmq_client_open (&client, flaws[i].uri, &error), TMQ_INVALID);
        if (strstr (error.text, flaws[i].text) == NULL)
            fail_msg ("%s: %s", flaws[i].uri, error.text);
    }
    static const char *const good[] = {"tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://localhost:1",
                                       "ipc:///nonexistent/x", "ipc://@abstract"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        tmq_client_t *client = NULL;
        assert_int_equal (tmq_client_open (&client, good[i], NULL), TMQ_OK);
        tmq_client_free (&client);
    }
}

/* Nobody there. Each of these would wait for ever if it were not certain. */

static tmq_client_t *fast_client (const char *key, const char *value)
{
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_client_options_init (&options);
    assert_int_equal (tmq_client_options_set (&options, "fail_fast", "true", NULL), TMQ_OK);
    assert_int_equal (tmq_client_options_set (&options, key, value, NULL), TMQ_OK);
    assert_int_equal (tmq_client_new (&client, &options, NULL), TMQ_OK);
    tmq_client_options_clear (&options);
    return client;
}

static void assert_absent (const char *key, const char *value, const char *text, const char *hint)
{
    tmq_client_t *client = fast_client (key, value);
    tmq_error_t error;
    for (int round = 0; round < 3; round++) {
        int code = round == 1 ? tmq_ping (client, TMQ_FOREVER, &error)
                              : tmq_client_connect (client, TMQ_FOREVER, &error);
        assert_int_equal (code, TMQ_UNREACHABLE);
        if (strstr (error.text, text) == NULL || strstr (error.hint, hint) == NULL)
            fail_msg ("'%s', hint '%s'", error.text, error.hint);
    }
    tmq_id_t id;
    tmq_id_make (&id);
    assert_int_equal (tmq_wait (NULL, client, &id, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
    tmq_client_free (&client);
}

/* A directory of a broker, which is not running. */
static void make_directory (char out[40])
{
    strcpy (out, "/tmp/taskmq-test-XXXXXX");
    assert_non_null (mkdtemp (out));
}

static void write_file (const char *directory, const char *name, const char *text)
{
    char path[80];
    snprintf (path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen (path, "w");
    assert_non_null (file);
    fputs (text, file);
    assert_int_equal (fclose (file), 0);
}

static void remove_directory (const char *directory)
{
    static const char *const names[] = {"endpoint", "taskmq.lock", "socket"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[80];
        snprintf (path, sizeof path, "%s/%s", directory, names[i]);
        unlink (path);
    }
    assert_int_equal (rmdir (directory), 0);
}

static void fail_fast_tells_at_once_what_is_certain (void **state)
{
    (void) state;
    char directory[40];
    char uri[120];
    assert_absent ("endpoint", "ipc:///nonexistent/socket", "no such socket", "taskmqd");
    make_directory (directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf (address.sun_path, sizeof address.sun_path, "%s/socket", directory);
    int fd = socket (AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal (bind (fd, (const struct sockaddr *) &address, sizeof address), 0);
    close (fd); /* as of a broker that was killed */
    snprintf (uri, sizeof uri, "ipc://%s", address.sun_path);
    assert_absent ("endpoint", uri, "nobody listens there", "killed");
    assert_absent ("endpoint", "tcp://127.0.0.1:1", "nobody listens there", "host and port");
    assert_absent ("directory", directory, "no broker is running there", directory);
    write_file (directory, "taskmq.lock", "1\n");
    write_file (directory, "endpoint", uri);
    assert_absent ("directory", directory, "no broker is running there", "taskmqd --data");
    assert_int_equal (chmod (directory, 0777), 0);
    assert_absent ("directory", directory, "others may write", "chmod go-w");
    assert_int_equal (chmod (directory, 0700), 0);
    if (geteuid () != 0) { /* root may everything */
        assert_int_equal (chmod (directory, 0), 0);
        assert_absent ("directory", directory, "permission denied", "ask for access");
        assert_absent ("endpoint", uri, "permission denied", "ask for access");
        assert_int_equal (chmod (directory, 0700), 0);
    }
    remove_directory (directory);
}

static void a_broker_that_starts_is_waited_for (void **state)
{
    (void) state;
    char directory[40];
    char path[80];
    tmq_error_t error;
    make_directory (directory);
    write_file (directory, "taskmq.lock", "1\n");
    snprintf (path, sizeof path, "%s/taskmq.lock", directory);
    int lock = open (path, O_RDWR);
    assert_int_equal (flock (lock, LOCK_EX | LOCK_NB), 0);
    tmq_client_t *client = fast_client ("directory", directory);
    /* It would end before its time if it were taken for certain. */
    assert_int_equal (tmq_ping (client, 300, &error), TMQ_UNREACHABLE);
    assert_non_null (strstr (error.text, "starting"));
    close (lock);
    assert_int_equal (tmq_ping (client, TMQ_FOREVER, &error), TMQ_UNREACHABLE);
    assert_non_null (strstr (error.text, "no broker is running there"));
    tmq_client_free (&client);
    remove_directory (directory);
}

static void so_many_endpoints_and_each_once (void **state)
{
    (void) state;
    char uris[3 * TMQ_ENDPOINTS_MAX][40];
    const char *endpoints[3 * TMQ_ENDPOINTS_MAX];
    tmq_client_t *client = NULL;
    tmq_error_t error;
    tmq_whoami_t who = {.size = sizeof who};
    for (int i = 0; i < 3 * TMQ_ENDPOINTS_MAX; i++) {
        snprintf (uris[i], sizeof uris[i], "tcp://127.0.0.1:%d", 1 + i % TMQ_ENDPOINTS_MAX);
        endpoints[i] = uris[i];
    }
    client = client_to (endpoints, 3 * TMQ_ENDPOINTS_MAX);
    assert_int_equal (tmq_client_whoami (&who, client), TMQ_OK);
    assert_int_equal (who.endpoints_count, TMQ_ENDPOINTS_MAX);
    assert_string_equal (strrchr (who.endpoints, ' ') + 1, uris[TMQ_ENDPOINTS_MAX - 1]);
    tmq_client_free (&client);

    tmq_client_options_t options;
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = TMQ_ENDPOINTS_MAX + 1;
    strcpy (uris[TMQ_ENDPOINTS_MAX], "tcp://127.0.0.1:99");
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_INVALID);
    assert_string_equal (error.text, "endpoint: a client has at most 8 different ones, and "
                                     "'tcp://127.0.0.1:99' is one more");
    tmq_client_options_init (&options);
    for (int i = 0; i < TMQ_ENDPOINTS_MAX; i++)
        for (int k = 0; k < 2; k++)
            assert_int_equal (tmq_client_options_set (&options, "endpoint", uris[i], &error),
                              TMQ_OK);
    assert_int_equal (options.endpoints_count, TMQ_ENDPOINTS_MAX);
    assert_int_equal (tmq_client_options_set (&options, "endpoint", "ipc:///x", &error),
                      TMQ_INVALID);
    assert_non_null (strstr (error.text, "'ipc:///x' is one more"));
    assert_int_equal (options.endpoints_count, TMQ_ENDPOINTS_MAX);
    tmq_client_options_clear (&options);
}

/* What a child gets as TASKMQ_ENDPOINT is never a part. */
static void endpoints_fit_into_what_tells_them (void **state)
{
    (void) state;
    char uris[TMQ_ENDPOINTS_MAX][255 + sizeof "?insecure"];
    const char *endpoints[TMQ_ENDPOINTS_MAX];
    tmq_client_t *client = NULL;
    tmq_client_options_t options;
    tmq_error_t error;
    tmq_whoami_t who = {.size = sizeof who};
    for (int i = 0; i < TMQ_ENDPOINTS_MAX; i++) {
        snprintf (uris[i], sizeof uris[i], "tcp://%0244d:%d?insecure", 0, 5560 + i);
        endpoints[i] = uris[i];
    }
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = TMQ_ENDPOINTS_MAX;
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_INVALID);
    assert_non_null (strstr (error.text, "at most 2047 bytes together"));
    options.endpoints_count--;
    assert_int_equal (tmq_client_new (&client, &options, &error), TMQ_OK);
    assert_int_equal (tmq_client_whoami (&who, client), TMQ_OK);
    assert_string_equal (strrchr (who.endpoints, ' ') + 1, uris[TMQ_ENDPOINTS_MAX - 2]);
    tmq_client_free (&client);
}

static void without_endpoints_the_environment_counts (void **state)
{
    (void) state;
    tmq_client_t *client = NULL;
    tmq_error_t error;
    setenv ("TASKMQ_ENDPOINT", "nonsense", 1);
    assert_int_equal (tmq_client_open (&client, NULL, &error), TMQ_INVALID);
    assert_string_equal (error.text, "TASKMQ_ENDPOINT: endpoint: 'nonsense' is neither "
                                     "tcp://HOST:PORT nor ipc://PATH");
    setenv ("TASKMQ_ENDPOINT", " ipc:///nonexistent/one tcp://127.0.0.1:1\n", 1);
    assert_int_equal (tmq_client_open (&client, NULL, &error), TMQ_OK);
    tmq_client_free (&client);
    unsetenv ("TASKMQ_ENDPOINT");
    int here = open (".", O_RDONLY | O_DIRECTORY);
    assert_int_equal (chdir ("/"), 0);
    assert_int_equal (tmq_client_open (&client, NULL, &error), TMQ_UNREACHABLE);
    assert_non_null (strstr (error.text, ".taskmq"));
    assert_non_null (strstr (error.hint, "taskmqd"));
    assert_int_equal (fchdir (here), 0);
    close (here);
}

static void flush_tells_what_is_open (void **state)
{
    (void) state;
    tmq_client_t *client = client_to_nobody ();
    tmq_error_t error;
    tmq_submit_t task;
    tmq_id_t id;
    size_t count;
    int mine;
    tmq_id_make (&id);
    assert_int_equal (tmq_client_flush (client, TMQ_FOREVER, &error), TMQ_OK);
    tmq_submit_init (&task);
    task.queue = "q";
    assert_int_equal (tmq_submit_start (client, &task, TMQ_FOREVER, NULL, NULL), TMQ_OK);
    assert_int_equal (tmq_get_start (client, &id, TMQ_FOREVER, &mine, NULL), TMQ_OK);
    assert_int_equal (tmq_wait_start (client, &id, 1, TMQ_FOREVER, &mine, NULL), TMQ_OK);
    assert_int_equal (tmq_client_flush (client, 50, &error), TMQ_TIMEOUT);
    assert_non_null (strstr (error.text, "1 changes"));
    assert_int_equal (tmq_forget (&count, client, &id, &mine), TMQ_OK);
    assert_int_equal (count, 2);
    tmq_completion_t *completion;
    assert_int_equal (tmq_get_start (client, &id, 1, &mine, NULL), TMQ_OK);
    assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
    tmq_completion_free (completion);
    assert_int_equal (tmq_get_start (client, &id, 1, &mine, NULL), TMQ_OK);
    struct pollfd ready = {tmq_client_fd (client), POLLIN, 0};
    assert_int_equal (poll (&ready, 1, TIMING_PATIENCE_MS), 1); /* answered, not polled */
    assert_int_equal (tmq_forget (&count, client, NULL, &mine), TMQ_OK);
    assert_int_equal (count, 1);
    assert_int_equal (tmq_client_poll (&completion, 1, &count, client, 0), TMQ_TIMEOUT);
    tmq_client_free (&client);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (nobody_there_is_unreachable),
        cmocka_unit_test (completions_wake_the_descriptor),
        cmocka_unit_test (a_hundred_threads_end_at_their_deadline),
        cmocka_unit_test (freeing_forgets_what_is_open),
        cmocka_unit_test (strange_answers_are_answered_by_a_new_connection),
        cmocka_unit_test (a_refused_authentication_is_final),
        cmocka_unit_test (a_failed_handshake_is_tried_again),
        cmocka_unit_test (endpoints_are_tried_in_turn),
        cmocka_unit_test (null_is_refused_not_followed),
        cmocka_unit_test (a_forked_child_is_told),
        cmocka_unit_test (options_by_keys),
        cmocka_unit_test (log_lines_are_completions),
        cmocka_unit_test (an_endpoint_that_is_no_uri_is_invalid),
        cmocka_unit_test (fail_fast_tells_at_once_what_is_certain),
        cmocka_unit_test (a_broker_that_starts_is_waited_for),
        cmocka_unit_test (so_many_endpoints_and_each_once),
        cmocka_unit_test (endpoints_fit_into_what_tells_them),
        cmocka_unit_test (without_endpoints_the_environment_counts),
        cmocka_unit_test (flush_tells_what_is_open),
        cmocka_unit_test (versions_and_ids),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
