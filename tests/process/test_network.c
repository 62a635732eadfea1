/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A bad network between library and broker: rounds of submit, work, subscribe and wait while the
 * proxy delays, throttles, splits, swallows, resets and half closes by chance. Nothing may be lost,
 * repeated or hang, and the number of descriptors stays what it was.
 *
 *     test_network [--rounds N] [--seed N]         CI: 10 rounds, seed 1 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/load.h"
#include "support/proxy.h"
#include "support/timing.h"

enum {
    ROUNDS = 10,
    FAULTS_PER_ROUND = 4,
    FAULT_MS_MAX = 500,
    BROKER_KILL_IN = 4, /* one round of so many also kills the broker */
    END_MS = 180000,
    DESCRIPTORS_SLACK = 8
};

static unsigned rounds = ROUNDS;
static unsigned seed = 1;

static size_t count_descriptors (void)
{
    size_t count = 0;
    DIR *directory = opendir ("/proc/self/fd");
    while (readdir (directory) != NULL) {
        count++;
    }
    closedir (directory);
    return count;
}

static void disturb (proxy_t *proxy, daemon_t *broker)
{
    for (int i = 0; i < FAULTS_PER_ROUND; i++) {
        if (rand_r (&seed) % 3 == 0) {
            proxy_cut (proxy, (proxy_cut_t) (rand_r (&seed) % PROXY_CUTS));
        }
        proxy_set (proxy, (proxy_mode_t) (rand_r (&seed) % PROXY_MODES));
        timing_pause ((uint32_t) rand_r (&seed) % FAULT_MS_MAX);
    }
    if (rand_r (&seed) % BROKER_KILL_IN == 0) {
        daemon_end (broker, SIGKILL);
        daemon_spawn (broker);
    }
    proxy_set (proxy, PROXY_CLEAR);
}

static void run_round (proxy_t *proxy, daemon_t *broker)
{
    static load_t load;
    load_options_t options = {.endpoints = {proxy_endpoint (proxy)},
                              .submitters = 2,
                              .workers = 2,
                              .subscribers = 2,
                              .open_max = 50,
                              .timeout_ms = END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    daemon_start (broker);
    load_start (&load, &options);
    WAIT_FOR (history_completed_count (&load.history) > 0, TIMING_PATIENCE_MS);
    disturb (proxy, broker);
    size_t before = history_completed_count (&load.history);
    WAIT_FOR (history_completed_count (&load.history) > before, TIMING_PATIENCE_MS);
    load_finish (&load, END_MS);
    daemon_stop (broker);
    checker_files (&load.history, broker->data);
    load_clear (&load);
}

static void test_rounds (void **state)
{
    (void) state;
    size_t descriptors = 0;
    for (unsigned i = 0; i < rounds; i++) {
        unsigned round_seed = seed;
        daemon_t broker;
        daemon_init_tcp (&broker);
        proxy_t *proxy = proxy_new (atoi (strrchr (broker.endpoint, ':') + 1), seed);
        print_message ("round %u, seed %u\n", i + 1, round_seed);
        run_round (proxy, &broker);
        proxy_free (proxy);
        daemon_destroy (&broker);
        if (i == 0) {
            descriptors = count_descriptors ();
        }
    }
    assert_true (count_descriptors () <= descriptors + DESCRIPTORS_SLACK);
}

int main (int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp (argv[i], "--rounds") == 0) {
            rounds = (unsigned) strtoul (argv[i + 1], NULL, 10);
        } else if (strcmp (argv[i], "--seed") == 0) {
            seed = (unsigned) strtoul (argv[i + 1], NULL, 10);
        }
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_rounds)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
