/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A bad network between broker and database: connections are delayed, throttled, split, swallowed,
 * reset, half closed and refused by chance, and the whole database stands still. What a commit's
 * answer was lost of is found out; nothing is lost or repeated, and the broker lives through it.
 *
 *     test_network [--percent N] [--seed N]      CI: 2 percent, seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"
#include "support/cmocka_all.h"
#include "support/load.h"
#include "support/proxy.h"
#include "support/timing.h"

enum {
    PERCENT = 2,
    FAULTS = 400,
    FAULT_MS_MAX = 600,
    PAUSES = 80,
    PAUSE_MS_MAX = 2500,
    END_MS = 180000
};

static unsigned percent = PERCENT;
static unsigned seed = 1;

static void begin (load_t *load, stage_t *stage)
{
    daemon_start (&stage->broker);
    load_options_t options = {.endpoints = {stage->broker.endpoint},
                              .submitters = 2,
                              .workers = 2,
                              .subscribers = 1,
                              .open_max = 100,
                              .timeout_ms = END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    load_start (load, &options);
    WAIT_FOR (history_completed_count (&load->history) > 0, TIMING_PATIENCE_MS);
}

static void finish (load_t *load, stage_t *stage, pid_t broker)
{
    size_t before = history_completed_count (&load->history);
    WAIT_FOR (history_completed_count (&load->history) > before, TIMING_PATIENCE_MS);
    load_finish (load, END_MS);
    print_message ("%zu tasks accepted, %zu completed\n", load->history.accepted,
                   load->history.completed);
    assert_int_equal (stage->broker.pid, broker);
    daemon_stop (&stage->broker);
    checker_tasks_file (&load->history, stage->broker.data);
    stage_check_tables (stage, &load->history);
    load_clear (load);
    stage_destroy (stage);
}

static void test_connections_that_are_cut (void **state)
{
    (void) state;
    static load_t load;
    stage_t stage;
    stage_init_tcp (&stage, NULL);
    proxy_t *proxy = proxy_new (stage.server.port, seed);
    stage_through (&stage, atoi (strrchr (proxy_endpoint (proxy), ':') + 1));
    begin (&load, &stage);
    pid_t broker = stage.broker.pid;
    for (unsigned i = 0; i < stage_part (FAULTS, percent); i++) {
        if (rand_r (&seed) % 3 != 0)
            proxy_cut (proxy, (proxy_cut_t) (rand_r (&seed) % PROXY_CUTS));
        proxy_set (proxy, (proxy_mode_t) (rand_r (&seed) % PROXY_MODES));
        timing_pause ((uint32_t) rand_r (&seed) % FAULT_MS_MAX);
        if (i % 4 == 3)
            proxy_set (proxy, PROXY_CLEAR);
    }
    proxy_set (proxy, PROXY_CLEAR);
    finish (&load, &stage, broker);
    proxy_free (proxy);
}

static void test_a_database_that_stands_still (void **state)
{
    (void) state;
    static load_t load;
    stage_t stage;
    stage_init (&stage, NULL);
    begin (&load, &stage);
    pid_t broker = stage.broker.pid;
    for (unsigned i = 0; i < stage_part (PAUSES, percent); i++) {
        postgres_signal (&stage.server, SIGSTOP);
        timing_pause ((uint32_t) rand_r (&seed) % PAUSE_MS_MAX);
        postgres_signal (&stage.server, SIGCONT);
        timing_pause ((uint32_t) rand_r (&seed) % FAULT_MS_MAX);
    }
    finish (&load, &stage, broker);
}

/* The broker itself, also in the middle of what it writes behind. */
static void test_a_broker_that_stands_still (void **state)
{
    (void) state;
    static load_t load;
    stage_t stage;
    stage_init (&stage, NULL);
    begin (&load, &stage);
    pid_t broker = stage.broker.pid;
    for (unsigned i = 0; i < stage_part (PAUSES, percent); i++) {
        daemon_signal (&stage.broker, SIGSTOP);
        timing_pause ((uint32_t) rand_r (&seed) % PAUSE_MS_MAX);
        daemon_signal (&stage.broker, SIGCONT);
        timing_pause ((uint32_t) rand_r (&seed) % FAULT_MS_MAX);
    }
    finish (&load, &stage, broker);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_connections_that_are_cut),
        cmocka_unit_test (test_a_database_that_stands_still),
        cmocka_unit_test (test_a_broker_that_stands_still),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
