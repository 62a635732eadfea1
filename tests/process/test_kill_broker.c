/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* kill -9 of the broker at random moments under load: nothing acknowledged is lost or repeated.
 *
 *     test_kill_broker [--kills N] [--seed N]      CI: 30 kills, seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/load.h"
#include "support/timing.h"

enum {
    KILLS = 30,
    LIFE_MS_MAX = 400, /* between two kills */
    END_MS = 180000
};

static unsigned kills = KILLS;
static unsigned seed = 1;

static void test_nothing_is_lost (void **state)
{
    (void) state;
    static load_t load;
    daemon_t broker;
    daemon_init (&broker);
    daemon_start (&broker);
    load_options_t options = {.endpoints = {broker.endpoint},
                              .submitters = 4,
                              .workers = 4,
                              .subscribers = 2,
                              .open_max = 200,
                              .timeout_ms = END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    load_start (&load, &options);
    for (unsigned i = 0; i < kills; i++) {
        size_t before = history_completed_count (&load.history);
        timing_pause ((uint32_t) rand_r (&seed) % LIFE_MS_MAX);
        daemon_end (&broker, SIGKILL);
        daemon_spawn (&broker);
        if (i % 5 == 4) { /* sometimes in the middle of its start, sometimes after some work */
            WAIT_FOR (history_completed_count (&load.history) > before, TIMING_PATIENCE_MS);
        }
    }
    load_finish (&load, END_MS);
    print_message ("%u kills: %zu tasks accepted, %zu completed, %llu events\n", kills,
                   load.history.accepted, load.history.completed,
                   (unsigned long long) load.history.streams[0].upto);
    assert_true (load.history.completed > kills);
    daemon_stop (&broker);
    checker_files (&load.history, broker.data);
    load_clear (&load);
    daemon_destroy (&broker);
}

int main (int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp (argv[i], "--kills") == 0) {
            kills = (unsigned) strtoul (argv[i + 1], NULL, 10);
        } else if (strcmp (argv[i], "--seed") == 0) {
            seed = (unsigned) strtoul (argv[i + 1], NULL, 10);
        }
    }
    printf ("seed %u\n", seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_nothing_is_lost)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
