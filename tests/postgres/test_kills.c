/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* kill -9 at random moments under load: of the broker, of the database, of both, of single sessions
 * of the database. Nothing acknowledged is lost or repeated, and a broker outlives its database.
 *
 *     test_kills [--percent N] [--seed N]      CI: 2 percent, seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"
#include "support/cmocka_all.h"
#include "support/load.h"
#include "support/timing.h"

enum {
    PERCENT = 2,
    KILLS_OF_BROKER = 1000,
    KILLS_OF_DATABASE = 200,
    KILLS_OF_BOTH = 50,
    KILLS_OF_SESSIONS = 500,
    STOPS_OF_DATABASE = 50,
    LIFE_MS_MAX = 400, /* between two kills */
    AWAY_MS_MAX = 300, /* without a database */
    END_MS = 180000
};

static unsigned percent = PERCENT;
static unsigned seed = 1;

/* Ends a session of the broker, without a word to anybody. The server takes that for a crash, and
 * ends all of them. */
static void kill_session (stage_t *stage)
{
    long long pid = postgres_number (
        &stage->server, "SELECT coalesce ((SELECT pid FROM pg_stat_activity WHERE usename = "
                        "'taskmq' ORDER BY random () LIMIT 1), 0)");
    if (pid > 0)
        kill ((pid_t) pid, SIGKILL);
}

/* The server is told to end sessions, as an operator does. */
static void end_sessions (stage_t *stage)
{
    free (postgres_sql (&stage->server,
                        "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE usename = "
                        "'taskmq' AND random () < 0.5"));
}

static void kill_broker (stage_t *stage)
{
    daemon_end (&stage->broker, SIGKILL);
    daemon_spawn (&stage->broker);
}

static void kill_database (stage_t *stage)
{
    postgres_end (&stage->server, SIGKILL);
    timing_pause ((uint32_t) rand_r (&seed) % AWAY_MS_MAX);
    postgres_start (&stage->server);
}

static void stop_database (stage_t *stage)
{
    postgres_end (&stage->server, SIGINT);
    timing_pause ((uint32_t) rand_r (&seed) % AWAY_MS_MAX);
    postgres_start (&stage->server);
}

static void kill_both (stage_t *stage)
{
    postgres_end (&stage->server, SIGKILL);
    daemon_end (&stage->broker, SIGKILL);
    if (rand_r (&seed) % 2 == 0) { /* it waits for its database */
        daemon_spawn (&stage->broker);
        timing_pause ((uint32_t) rand_r (&seed) % AWAY_MS_MAX);
        postgres_start (&stage->server);
    } else {
        postgres_start (&stage->server);
        daemon_spawn (&stage->broker);
    }
}

static void run (void (*fault) (stage_t *stage), unsigned full, const char *name, bool broker_lives)
{
    unsigned kills = stage_part (full, percent);
    static load_t load;
    stage_t stage;
    stage_init (&stage, NULL);
    daemon_start (&stage.broker);
    pid_t broker = stage.broker.pid;
    load_options_t options = {.endpoints = {stage.broker.endpoint},
                              .submitters = 2,
                              .workers = 2,
                              .subscribers = 2,
                              .open_max = 200,
                              .timeout_ms = END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    load_start (&load, &options);
    for (unsigned i = 0; i < kills; i++) {
        size_t before = history_completed_count (&load.history);
        timing_pause ((uint32_t) rand_r (&seed) % LIFE_MS_MAX);
        fault (&stage);
        if (i % 4 == 3) { /* sometimes in the middle of a start, sometimes after some work */
            WAIT_FOR (history_completed_count (&load.history) > before, TIMING_PATIENCE_MS);
        }
    }
    load_finish (&load, END_MS);
    print_message ("%u kills, of %s: %zu tasks accepted, %zu completed, %llu events\n", kills, name,
                   load.history.accepted, load.history.completed,
                   (unsigned long long) load.history.streams[0].upto);
    assert_true (load.history.completed > kills);
    assert_true (!broker_lives || stage.broker.pid == broker);
    daemon_stop (&stage.broker);
    checker_tasks_file (&load.history, stage.broker.data);
    stage_check_tables (&stage, &load.history);
    load_clear (&load);
    stage_destroy (&stage);
}

static void test_of_the_broker (void **state)
{
    (void) state;
    run (kill_broker, KILLS_OF_BROKER, "the broker", false);
}

static void test_of_the_database (void **state)
{
    (void) state;
    run (kill_database, KILLS_OF_DATABASE, "the database", true);
}

static void test_of_both (void **state)
{
    (void) state;
    run (kill_both, KILLS_OF_BOTH, "both", false);
}

static void test_of_a_session (void **state)
{
    (void) state;
    run (kill_session, KILLS_OF_SESSIONS, "a session", true);
}

static void test_sessions_that_are_ended (void **state)
{
    (void) state;
    run (end_sessions, KILLS_OF_SESSIONS, "sessions, by the server", true);
}

static void test_a_database_that_is_restarted (void **state)
{
    (void) state;
    run (stop_database, STOPS_OF_DATABASE, "the database, in order", true);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_of_the_broker),
        cmocka_unit_test (test_of_the_database),
        cmocka_unit_test (test_of_both),
        cmocka_unit_test (test_of_a_session),
        cmocka_unit_test (test_sessions_that_are_ended),
        cmocka_unit_test (test_a_database_that_is_restarted),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
