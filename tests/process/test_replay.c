/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A replay from the tables whose filter takes hardly anything, while the broker has nothing else to
 * do: one page follows the other at once, and not when the loop wakes for another reason. That it
 * does not wake is seen to by a preloaded library (support/idle.c). */
#include <stdlib.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { TASKS = 30000, AT_ONCE = 1000 };

static void submit_all (tmq_client_t *client)
{
    tmq_submit_t task;
    tmq_error_t error = {0};
    tmq_submit_init (&task);
    size_t open = 0;
    for (size_t sent = 0; sent < TASKS || open > 0;) {
        while (sent < TASKS && open < AT_ONCE) {
            task.queue = ++sent == TASKS ? "rare" : "common";
            assert_int_equal (tmq_submit_start (client, &task, TIMING_PATIENCE_MS, NULL, &error),
                              TMQ_OK);
            open++;
        }
        tmq_completion_t *answer = NULL;
        size_t count = 0;
        assert_int_equal (tmq_client_poll (&answer, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
        assert_int_equal (answer->code, TMQ_OK);
        tmq_completion_free (answer);
        open--;
    }
}

static void test_a_rare_event_is_found_in_a_quiet_broker (void **state)
{
    (void) state;
    static const char *const QUEUE = "rare";
    daemon_t broker;
    tmq_subscription_t *subscription = NULL;
    tmq_subscription_options_t options;
    tmq_event_t *event = NULL;
    tmq_error_t error = {0};
    daemon_init (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    submit_all (client);
    tmq_client_free (&client);
    daemon_stop (&broker); /* so the events are in the tables alone */
    broker.preload = TASKMQ_TEST_IDLE;
    setenv ("TASKMQD_LINKS_HEARTBEAT", "1m", 1); /* nor do clients wake it */
    daemon_start (&broker);
    client = daemon_client (&broker);
    tmq_subscription_options_init (&options);
    options.cursor = "0";
    options.filter.queues = &QUEUE;
    options.filter.queues_count = 1;
    assert_int_equal (tmq_subscription_new (&subscription, client, &options, &error), TMQ_OK);
    assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, &error),
                      TMQ_OK);
    assert_int_equal (event->seq, TASKS);
    tmq_event_free (event);
    tmq_client_free (&client);
    daemon_destroy (&broker);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_a_rare_event_is_found_in_a_quiet_broker)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
