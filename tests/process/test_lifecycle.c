/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The real broker with the real library: from submit to result, over restarts and freezes. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/checker.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { LEASE_MS = 2000, FREEZE_MS = 3 * LEASE_MS };

static daemon_t broker;

static int set_up (void **state)
{
    (void) state;
    daemon_init_tcp (&broker);
    daemon_start (&broker);
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    daemon_destroy (&broker);
    return 0;
}

static tmq_id_t submit (tmq_client_t *client, const char *queue, const char *payload)
{
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_error_t error = {0};
    tmq_submit_init (&task);
    task.queue = queue;
    task.payload = payload;
    task.payload_bytes = strlen (payload);
    task.lease_ms = LEASE_MS;
    if (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error) != TMQ_OK) {
        fail_msg ("submit: %s", error.text);
    }
    return receipt.id;
}

static tmq_worker_t *make_worker (tmq_client_t *client, const char *queue, uint32_t capacity)
{
    tmq_worker_options_t options;
    tmq_worker_t *worker = NULL;
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    options.capacity = capacity;
    assert_int_equal (tmq_worker_new (&worker, client, &options, NULL), TMQ_OK);
    return worker;
}

static tmq_assignment_t *next (tmq_worker_t *worker)
{
    tmq_assignment_t *assignment = NULL;
    assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    return assignment;
}

static void complete (tmq_worker_t *worker, tmq_assignment_t *assignment, const char *result)
{
    tmq_outcome_t outcome = {.result = result, .result_bytes = strlen (result)};
    tmq_error_t error = {0};
    if (tmq_worker_complete (worker, assignment, &outcome, TIMING_PATIENCE_MS, &error) != TMQ_OK) {
        fail_msg ("complete: %s", error.text);
    }
    tmq_assignment_free (assignment);
}

static void assert_result (tmq_client_t *client, const tmq_id_t *id, uint32_t attempt,
                           const char *result)
{
    tmq_task_t *task = NULL;
    assert_int_equal (tmq_result (&task, client, id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_int_equal (task->attempt, attempt);
    assert_int_equal (task->body_bytes, strlen (result));
    assert_memory_equal (task->body, result, task->body_bytes);
    tmq_task_free (task);
}

static void test_submit_to_result (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 1);
    tmq_id_t id = submit (client, "work", "six times seven");

    tmq_assignment_t *assignment = next (worker);
    assert_memory_equal (&assignment->task_id, &id, sizeof id);
    assert_int_equal (assignment->attempt, 1);
    assert_int_equal (assignment->payload_bytes, 15);
    assert_memory_equal (assignment->payload, "six times seven", 15);
    complete (worker, assignment, "42");

    tmq_status_t status = TMQ_STATUS_NONE;
    assert_int_equal (tmq_wait (&status, client, &id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (status, TMQ_STATUS_COMPLETED);
    assert_result (client, &id, 1, "42");
    tmq_client_free (&client);
}

static void test_result_outlives_clean_restart (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 1);
    tmq_id_t done = submit (client, "work", "a");
    complete (worker, next (worker), "A");
    tmq_id_t waiting = submit (client, "nobody", "b");
    tmq_client_free (&client);

    daemon_stop (&broker);
    checker_databases (broker.data);
    daemon_start (&broker);

    client = daemon_client (&broker);
    assert_result (client, &done, 1, "A");
    worker = make_worker (client, "nobody", 1);
    tmq_assignment_t *assignment = next (worker);
    assert_memory_equal (&assignment->task_id, &waiting, sizeof waiting);
    assert_int_equal (assignment->attempt, 1);
    complete (worker, assignment, "B");
    assert_result (client, &waiting, 1, "B");
    tmq_client_free (&client);
}

/* The option that weakens durability is told in the log and in the counters; a kill of the broker
 * still loses nothing. */
static void test_normal_synchronisation_is_told_loudly (void **state)
{
    (void) state;
    assert_false (daemon_logged (&broker, "SYNCHRONOUS-NORMAL"));
    daemon_stop (&broker);
    broker.arguments[2] = "--synchronous"; /* after its address */
    broker.arguments[3] = "normal";
    daemon_start (&broker);
    assert_true (daemon_logged (&broker, "SYNCHRONOUS-NORMAL"));
    assert_true (daemon_logged (&broker, "a loss of power may lose"));

    tmq_client_t *client = daemon_client (&broker);
    assert_int_equal (daemon_counter (client, "synchronous_normal"), 1);

    tmq_id_t id = submit (client, "work", "kept");
    tmq_client_free (&client);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    client = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 1);
    complete (worker, next (worker), "K");
    assert_result (client, &id, 1, "K");
    tmq_client_free (&client);
}

static void test_lease_goes_on_over_crash_of_broker (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 1);
    tmq_id_t id = submit (client, "work", "long");
    tmq_assignment_t *assignment = next (worker);
    assert_int_equal (tmq_worker_started (worker, assignment, NULL), TMQ_OK);

    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);

    /* Same attempt: the worker goes on as if nothing had happened. */
    complete (worker, assignment, "done");
    assert_result (client, &id, 1, "done");
    tmq_client_free (&client);
}

static void test_frozen_broker_loses_no_lease (void **state)
{
    (void) state;
    enum { HELD = 4 };
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", HELD);
    tmq_id_t ids[HELD];
    tmq_assignment_t *held[HELD];
    for (int i = 0; i < HELD; i++) {
        ids[i] = submit (client, "work", "frozen");
    }
    for (int i = 0; i < HELD; i++) {
        held[i] = next (worker);
        assert_int_equal (tmq_worker_started (worker, held[i], NULL), TMQ_OK);
    }
    /* The pause itself is the fault: three leases long. */
    daemon_signal (&broker, SIGSTOP);
    timing_pause (FREEZE_MS);
    daemon_signal (&broker, SIGCONT);
    for (int i = 0; i < HELD; i++) {
        assert_int_equal (held[i]->attempt, 1);
        complete (worker, held[i], "thawed");
    }
    for (int i = 0; i < HELD; i++) {
        assert_result (client, &ids[i], 1, "thawed");
    }
    tmq_client_free (&client);
}

/* A lease is renewed for as long as its worker lives: nobody else gets a job that lasts longer. */
static void test_job_longer_than_its_lease_runs_once (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_client_t *other = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 1);
    tmq_id_t id = submit (client, "work", "long");
    tmq_assignment_t *assignment = next (worker);
    assert_int_equal (tmq_worker_started (worker, assignment, NULL), TMQ_OK);

    tmq_worker_t *idle = make_worker (other, "work", 1);
    tmq_assignment_t *stolen = NULL;
    assert_int_equal (tmq_worker_next (&stolen, idle, 2 * LEASE_MS, NULL), TMQ_TIMEOUT);
    assert_int_equal (tmq_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    complete (worker, assignment, "once");
    assert_result (client, &id, 1, "once");
    tmq_client_free (&other);
    tmq_client_free (&client);
}

/* What was answered is stored: a queued task is never given away, a working one is stopped. */
static void test_cancel_outlives_crash_of_broker (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_client_t *boss = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 2);
    tmq_id_t working = submit (boss, "work", "a");
    tmq_assignment_t *assignment = next (worker);
    tmq_id_t queued = submit (boss, "later", "b");
    assert_int_equal (tmq_cancel (NULL, boss, &working, "", TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_cancel (NULL, boss, &queued, "", TIMING_PATIENCE_MS, NULL), TMQ_OK);

    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);

    WAIT_FOR (tmq_worker_state (worker, assignment) == TMQ_ATTEMPT_CANCELLED, TIMING_PATIENCE_MS);
    assert_int_equal (tmq_worker_cancelled (worker, assignment, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_assignment_free (assignment);
    tmq_id_t sentinel = submit (boss, "later", "c");
    tmq_worker_t *second = make_worker (client, "later", 2);
    assignment = next (second); /* would be the cancelled one, which is older */
    assert_memory_equal (&assignment->task_id, &sentinel, sizeof sentinel);
    complete (second, assignment, "C");
    const tmq_id_t *cancelled[] = {&working, &queued};
    for (size_t i = 0; i < 2; i++) {
        tmq_task_t *task = NULL;
        assert_int_equal (tmq_get (&task, boss, cancelled[i], TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_int_equal (task->status, TMQ_STATUS_CANCELLED);
        tmq_task_free (task);
    }
    tmq_client_free (&boss);
    tmq_client_free (&client);
}

static int result_code (tmq_client_t *client, const tmq_id_t *id)
{
    tmq_task_t *task = NULL;
    int code = tmq_result (&task, client, id, TIMING_PATIENCE_MS, NULL);
    tmq_task_free (task);
    return code;
}

static void test_unknown_pending_and_expired_differ (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_id_t unknown;
    tmq_id_make (&unknown);
    tmq_id_t pending = submit (client, "work", "waits");
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_submit_init (&task);
    task.queue = "nobody";
    task.ttl_ms = 1000;
    assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);

    assert_int_equal (result_code (client, &unknown), TMQ_NOT_FOUND);
    assert_int_equal (result_code (client, &pending), TMQ_WRONG_STATUS);
    WAIT_FOR (result_code (client, &receipt.id) == TMQ_EXPIRED, TIMING_PATIENCE_MS);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    assert_int_equal (result_code (client, &unknown), TMQ_NOT_FOUND);
    assert_int_equal (result_code (client, &pending), TMQ_WRONG_STATUS);
    assert_int_equal (result_code (client, &receipt.id), TMQ_EXPIRED);
    tmq_client_free (&client);
}

/* The broker's memory follows what is open, not what was ever done. */
static void test_finished_tasks_leave_memory (void **state)
{
    (void) state;
    enum { TASKS = 300 };
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (client, "work", 10);
    tmq_id_t last = {0};
    for (int i = 0; i < TASKS; i++) {
        last = submit (client, "work", "short");
        complete (worker, next (worker), "done");
    }
    WAIT_FOR (daemon_counter (client, "live_tasks") == 0, TIMING_PATIENCE_MS);
    assert_int_equal (daemon_counter (client, "leases"), 0);
    assert_result (client, &last, 1, "done"); /* it is still there, on disk */
    tmq_client_free (&client);
}

static void test_second_broker_is_refused (void **state)
{
    (void) state;
    daemon_t second = broker;
    char pid[16];
    snprintf (pid, sizeof pid, "%d", (int) broker.pid);
    snprintf (second.log, sizeof second.log, "%s/second.log", broker.home);
    second.arguments[0] = NULL;
    daemon_spawn (&second);
    assert_int_equal (daemon_exit_code (&second), 4);
    assert_true (daemon_logged (&second, pid));

    /* The first one was not disturbed. */
    tmq_client_t *client = daemon_client (&broker);
    assert_int_equal (tmq_ping (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_client_free (&client);
}

static void test_wait_survives_crash_of_broker (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_id_t id = submit (client, "work", "waited for");
    int user = 0;
    assert_int_equal (tmq_wait_start (client, &id, 1, TIMING_PATIENCE_MS, &user, NULL), TMQ_OK);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    tmq_client_t *other = daemon_client (&broker);
    tmq_worker_t *worker = make_worker (other, "work", 1);
    complete (worker, next (worker), "ok");

    tmq_completion_t *completion = NULL;
    size_t count = 0;
    assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (completion->op, TMQ_OP_WAIT);
    assert_int_equal (completion->code, TMQ_OK);
    assert_int_equal (completion->status, TMQ_STATUS_COMPLETED);
    assert_ptr_equal (completion->user, &user);
    tmq_completion_free (completion);
    tmq_client_free (&other);
    tmq_client_free (&client);
}

static void test_bad_ids_and_sizes_are_told (void **state)
{
    (void) state;
    static char large[(16 << 20) + 1]; /* limits/blob_bytes, and one */
    tmq_client_t *client = daemon_client (&broker);
    tmq_task_t *task = NULL;
    tmq_id_t id;
    tmq_error_t error = {0};
    tmq_id_make (&id);
    assert_int_equal (tmq_get (&task, client, &id, TIMING_PATIENCE_MS, &error), TMQ_NOT_FOUND);
    tmq_status_t status;
    assert_int_equal (tmq_wait (&status, client, &id, TIMING_PATIENCE_MS, NULL), TMQ_NOT_FOUND);

    tmq_submit_t large_task;
    tmq_receipt_t receipt;
    tmq_submit_init (&large_task);
    large_task.queue = "work";
    large_task.payload = large;
    large_task.payload_bytes = sizeof large;
    assert_int_equal (tmq_submit (&receipt, client, &large_task, TIMING_PATIENCE_MS, &error),
                      TMQ_TOO_LARGE);
    assert_non_null (strstr (error.text, "limits/blob_bytes"));
    large_task.payload_bytes--;
    assert_int_equal (tmq_submit (&receipt, client, &large_task, TIMING_PATIENCE_MS, &error),
                      TMQ_OK);
    large_task.payload_bytes = TMQ_FRAME_BYTES_MAX;
    assert_int_equal (tmq_submit (&receipt, client, &large_task, TIMING_PATIENCE_MS, &error),
                      TMQ_OK);
    assert_int_equal (tmq_payload (&task, client, &receipt.id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (task->body_bytes, TMQ_FRAME_BYTES_MAX);
    tmq_task_free (task);
    tmq_client_free (&client);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_submit_to_result, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_result_outlives_clean_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_normal_synchronisation_is_told_loudly, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_lease_goes_on_over_crash_of_broker, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_frozen_broker_loses_no_lease, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_job_longer_than_its_lease_runs_once, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_cancel_outlives_crash_of_broker, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_unknown_pending_and_expired_differ, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (test_finished_tasks_leave_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_second_broker_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_wait_survives_crash_of_broker, set_up, tear_down),
        cmocka_unit_test_setup_teardown (test_bad_ids_and_sizes_are_told, set_up, tear_down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
