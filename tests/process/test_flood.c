/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Clients that ask for more than their share: the others are served, and the broker stops when it
 * is told to. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/raw.h"
#include "support/timing.h"

enum { REQUESTS = 1000, GREEDY = 4, MESSAGES = 40, TASKS = 2000 };

static daemon_t broker;

static int set_up (void **state)
{
    (void) state;
    daemon_init_tcp (&broker);
    return 0;
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

/* One message with many requests that the tables have to answer. */
static void send_counts (raw_t *raw)
{
    static Taskmq__Count count = TASKMQ__COUNT__INIT;
    static Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    static Taskmq__Request requests[REQUESTS];
    static Taskmq__Request *pointers[REQUESTS];
    static uint8_t packed[TMQ_ENVELOPE_BYTES_MAX];
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    count.filter = &filter;
    for (int i = 0; i < REQUESTS; i++) {
        requests[i] = (Taskmq__Request) TASKMQ__REQUEST__INIT;
        requests[i].id = ++raw->next_id;
        requests[i].op_case = TASKMQ__REQUEST__OP_COUNT;
        requests[i].count = &count;
        pointers[i] = &requests[i];
    }
    message.requests = pointers;
    message.n_requests = REQUESTS;
    message.token.data = raw->token;
    message.token.len = sizeof raw->token;
    size_t size = taskmq__client_message__get_packed_size (&message);
    assert_true (size <= sizeof (packed));
    taskmq__client_message__pack (&message, packed);
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_a_stop_under_reads_is_clean, set_up, tear_down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
