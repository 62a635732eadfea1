/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A broker whose store goes out of reach, and comes back (A99 to A101). The store is a real one
 * under a layer that the test switches (support/away_store.c).
 *
 * test_store_away [--times N] [--seed N]      CI: 8 times away under load, seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/away_store.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/load.h"
#include "support/timing.h"

enum {
    TIMES = 8,
    AWAY_MS_MAX = 600,
    LIFE_MS_MAX = 200, /* between two times */
    LEASE_MS = 300,
    END_MS = 180000,
    SHORT_MS = 300 /* less than a store that is away for good */
};

static unsigned times = TIMES;
static unsigned seed = 1;

typedef struct stage {
    daemon_t broker;
    away_switch_t *control;
    tmq_client_t *client;
} stage_t;

static void begin (stage_t *self, int64_t lease_ms)
{
    char path[DAEMON_PATH_MAX + 16];
    memset (self, 0, sizeof *self);
    daemon_init (&self->broker);
    snprintf (path, sizeof path, "%s/away", self->broker.home);
    setenv (AWAY_STORE_FILE, path, 1);
    self->broker.program = "taskmqd_away";
    self->control = away_switch_map (path);
    atomic_store (&self->control->lease_ms, lease_ms);
    daemon_start (&self->broker);
    self->client = daemon_client (&self->broker);
}

static void end (stage_t *self)
{
    tmq_client_free (&self->client);
    daemon_stop (&self->broker);
    daemon_destroy (&self->broker);
}

static int submit (tmq_client_t *client, tmq_id_t *id, uint32_t timeout_ms)
{
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    tmq_submit_init (&task);
    task.queue = "q";
    int code = tmq_submit (&receipt, client, &task, timeout_ms, NULL);
    *id = receipt.id;
    return code;
}

static int get (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms)
{
    tmq_task_t *task = NULL;
    int code = tmq_get (&task, client, id, timeout_ms, NULL);
    tmq_task_free (task);
    return code;
}

/* Memory answers, what is new is refused and repeated, what was taken is told when it is back. */
static void test_memory_goes_on (void **state)
{
    (void) state;
    stage_t stage;
    tmq_id_t id;
    tmq_id_t other;
    begin (&stage, 0);
    assert_int_equal (submit (stage.client, &id, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (daemon_counter (stage.client, "store_away_ms"), 0);
    assert_true (daemon_counter (stage.client, "lease_left_ms") == UINT64_MAX); /* there is none */
    assert_int_equal (daemon_counter (stage.client, "server_commits_inline"), 0);
    away_switch_set (stage.control, 1);
    WAIT_FOR (daemon_logged (&stage.broker, "DATABASE-AWAY"), TIMING_PATIENCE_MS);
    assert_true (daemon_counter (stage.client, "store_away_ms") > 0);
    assert_int_equal (get (stage.client, &id, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (submit (stage.client, &other, SHORT_MS), TMQ_UNAVAILABLE);
    assert_true (daemon_counter (stage.client, "unavailable") > 0);
    assert_int_equal (tmq_cancel (NULL, stage.client, &id, NULL, SHORT_MS, NULL), TMQ_UNKNOWN);
    away_switch_set (stage.control, 0);
    assert_int_equal (submit (stage.client, &other, TIMING_PATIENCE_MS), TMQ_OK);
    assert_true (daemon_logged (&stage.broker, "DATABASE-BACK"));
    tmq_task_t *task = NULL;
    assert_int_equal (tmq_get (&task, stage.client, &id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (task->status, TMQ_STATUS_CANCELLED); /* it was taken, and waited */
    tmq_task_free (task);
    end (&stage);
}

/* Past its end not even a heartbeat is answered, and hellos are refused. */
static void test_nothing_leaves_after_the_lease (void **state)
{
    (void) state;
    stage_t stage;
    tmq_id_t id;
    begin (&stage, LEASE_MS);
    assert_int_equal (submit (stage.client, &id, TIMING_PATIENCE_MS), TMQ_OK);
    assert_in_range (daemon_counter (stage.client, "lease_left_ms"), 1, LEASE_MS);
    away_switch_set (stage.control, 1);
    WAIT_FOR (daemon_logged (&stage.broker, "no longer surely ours"), TIMING_PATIENCE_MS);
    assert_int_equal (get (stage.client, &id, SHORT_MS), TMQ_UNREACHABLE); /* memory has it */
    tmq_client_t *newcomer = daemon_client (&stage.broker);
    tmq_error_t error = {0};
    assert_int_equal (tmq_ping (newcomer, SHORT_MS, &error), TMQ_UNREACHABLE);
    assert_non_null (strstr (error.text, "out of reach"));
    away_switch_set (stage.control, 0);
    assert_int_equal (get (stage.client, &id, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (tmq_ping (newcomer, TIMING_PATIENCE_MS, &error), TMQ_OK);
    tmq_client_free (&newcomer);
    end (&stage);
}

/* A commit that waits for ever does not hold a stop, and nothing that was told is lost. */
static void test_a_stop_does_not_wait_for_the_store (void **state)
{
    (void) state;
    stage_t stage;
    tmq_id_t id;
    begin (&stage, 0);
    assert_int_equal (submit (stage.client, &id, TIMING_PATIENCE_MS), TMQ_OK);
    away_switch_set (stage.control, 1);
    assert_int_equal (tmq_cancel (NULL, stage.client, &id, NULL, SHORT_MS, NULL), TMQ_UNKNOWN);
    WAIT_FOR (atomic_load (&stage.control->waiting) > 0, TIMING_PATIENCE_MS);
    daemon_signal (&stage.broker, SIGTERM);
    assert_int_equal (daemon_exit_code (&stage.broker), 0);
    assert_true (daemon_logged (&stage.broker, "STOPPED-AWAY"));
    atomic_store (&stage.control->waiting, 0);
    away_switch_set (stage.control, 0);
    daemon_start (&stage.broker);
    assert_int_equal (get (stage.client, &id, TIMING_PATIENCE_MS), TMQ_OK);
    end (&stage);
}

/* Again and again under load: some commits land without an answer, some leases run out, and some
 * brokers are killed meanwhile. */
static void test_nothing_is_lost (void **state)
{
    (void) state;
    static load_t load;
    stage_t stage;
    begin (&stage, LEASE_MS);
    load_options_t options = {.endpoints = {stage.broker.endpoint},
                              .submitters = 4,
                              .workers = 4,
                              .subscribers = 2,
                              .open_max = 200,
                              .timeout_ms = END_MS,
                              .faulty_workers = true,
                              .cancels = true};
    load_start (&load, &options);
    for (unsigned i = 0; i < times; i++) {
        size_t before = history_completed_count (&load.history);
        timing_pause ((uint32_t) rand_r (&seed) % LIFE_MS_MAX);
        atomic_store (&stage.control->lands, (int) (i % 2));
        away_switch_set (stage.control, 1);
        timing_pause ((uint32_t) rand_r (&seed) % AWAY_MS_MAX);
        if (i % 4 == 3) {
            daemon_end (&stage.broker, SIGKILL);
            atomic_store (&stage.control->waiting, 0);
            away_switch_set (stage.control, 0);
            daemon_spawn (&stage.broker);
        }
        away_switch_set (stage.control, 0);
        WAIT_FOR (history_completed_count (&load.history) > before, TIMING_PATIENCE_MS);
    }
    load_finish (&load, END_MS);
    print_message ("%u times away: %zu tasks accepted, %zu completed, %u look-ups missed, %u "
                   "commits without an answer\n",
                   times, load.history.accepted, load.history.completed,
                   atomic_load (&stage.control->missed), atomic_load (&stage.control->unknown));
    assert_true (load.history.completed > times);
    assert_true (atomic_load (&stage.control->unknown) > 0);
    tmq_client_free (&stage.client);
    daemon_stop (&stage.broker);
    checker_files (&load.history, stage.broker.data);
    load_clear (&load);
    daemon_destroy (&stage.broker);
}

int main (int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp (argv[i], "--times") == 0)
            times = (unsigned) strtoul (argv[i + 1], NULL, 10);
        else if (strcmp (argv[i], "--seed") == 0)
            seed = (unsigned) strtoul (argv[i + 1], NULL, 10);
    }
    printf ("seed %u\n", seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_memory_goes_on),
        cmocka_unit_test (test_nothing_leaves_after_the_lease),
        cmocka_unit_test (test_a_stop_does_not_wait_for_the_store),
        cmocka_unit_test (test_nothing_is_lost),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
