/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers that die or freeze. The worker is a process of its own: this program, started with
 * --worker, which takes some tasks, says so on its output, and completes them when its input ends;
 * what that is answered it says too. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { LEASE_MS = 2000, LONG_LEASE_MS = 600 * 1000, HELD = 3 };

/* In the worker's process. */
static int be_worker (const char *endpoint)
{
    tmq_client_options_t client_options;
    tmq_worker_options_t options;
    tmq_client_t *client = NULL;
    tmq_worker_t *worker = NULL;
    const char *queues[] = {"work"};
    tmq_client_options_init (&client_options);
    client_options.endpoints = &endpoint;
    client_options.endpoints_count = 1;
    tmq_worker_options_init (&options);
    options.queues = queues;
    options.queues_count = 1;
    options.capacity = HELD;
    if (tmq_client_new (&client, &client_options, NULL) != TMQ_OK ||
        tmq_worker_new (&worker, client, &options, NULL) != TMQ_OK) {
        return 1;
    }
    tmq_assignment_t *held[HELD] = {NULL};
    for (int i = 0; i < HELD; i++) {
        if (tmq_worker_next (&held[i], worker, TMQ_FOREVER, NULL) != TMQ_OK ||
            tmq_worker_started (worker, held[i], NULL) != TMQ_OK) {
            return 1;
        }
        printf ("%u\n", held[i]->attempt);
        fflush (stdout);
    }
    while (getchar () != EOF) {
    }
    for (int i = 0; i < HELD; i++) {
        tmq_outcome_t outcome = {.result = "late", .result_bytes = 4};
        printf ("%d\n", tmq_worker_complete (worker, held[i], &outcome, TIMING_PATIENCE_MS, NULL));
        fflush (stdout);
        tmq_assignment_free (held[i]);
    }
    tmq_client_free (&client);
    return 0;
}

typedef struct child {
    pid_t pid;
    int input; /* closed: it completes what it holds */
    FILE *output;
} child_t;

static child_t start_worker (const char *endpoint)
{
    int ends[2];
    int input[2];
    assert_int_equal (pipe2 (ends, O_CLOEXEC), 0);
    assert_int_equal (pipe2 (input, O_CLOEXEC), 0);
    pid_t pid = fork ();
    if (pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        dup2 (ends[1], STDOUT_FILENO);
        dup2 (input[0], STDIN_FILENO);
        execl ("/proc/self/exe", "worker", "--worker", endpoint, (char *) NULL);
        _exit (127);
    }
    assert_true (pid > 0);
    close (ends[1]);
    close (input[0]);
    return (child_t){pid, input[1], fdopen (ends[0], "r")};
}

/* Waits until the worker has taken count tasks. */
static void wait_taken (child_t *child, int count)
{
    char line[32];
    for (int i = 0; i < count; i++) {
        assert_non_null (fgets (line, sizeof line, child->output));
    }
}

static void end_worker (child_t *child)
{
    kill (child->pid, SIGKILL);
    assert_int_equal (waitpid (child->pid, NULL, 0), child->pid);
    close (child->input);
    fclose (child->output);
}

static void submit_some (tmq_client_t *client, tmq_id_t *ids, uint32_t lease_ms)
{
    for (int i = 0; i < HELD; i++) {
        tmq_submit_t task;
        tmq_receipt_t receipt;
        tmq_submit_init (&task);
        task.queue = "work";
        task.lease_ms = lease_ms;
        task.backoff_ms = 1;
        assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        ids[i] = receipt.id;
    }
}

/* It completes what it holds now, which must be refused. */
static void complete_late (child_t *child)
{
    char line[32];
    close (child->input);
    for (int i = 0; i < HELD; i++) {
        assert_non_null (fgets (line, sizeof line, child->output));
        assert_int_equal (atoi (line), TMQ_STALE_LEASE);
    }
    assert_int_equal (waitpid (child->pid, NULL, 0), child->pid);
    fclose (child->output);
}

/* Each was completed by its second attempt, and by nobody else. */
static void check_results (tmq_client_t *client, const tmq_id_t *ids)
{
    for (int i = 0; i < HELD; i++) {
        tmq_task_t *task = NULL;
        assert_int_equal (tmq_result (&task, client, &ids[i], TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
        assert_int_equal (task->attempt, 2);
        assert_int_equal (task->body_bytes, 1);
        tmq_task_free (task);
    }
}

/* Takes and completes what another worker left; each must be at least at attempt 2. */
static void finish_all (tmq_client_t *client, const tmq_id_t *ids)
{
    tmq_worker_options_t options;
    tmq_worker_t *worker = NULL;
    const char *queues[] = {"work"};
    tmq_worker_options_init (&options);
    options.queues = queues;
    options.queues_count = 1;
    assert_int_equal (tmq_worker_new (&worker, client, &options, NULL), TMQ_OK);
    for (int i = 0; i < HELD; i++) {
        tmq_assignment_t *assignment = NULL;
        tmq_outcome_t outcome = {.result = "x", .result_bytes = 1};
        assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_int_equal (assignment->attempt, 2);
        assert_int_equal (
            tmq_worker_complete (worker, assignment, &outcome, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        tmq_assignment_free (assignment);
    }
    check_results (client, ids);
    tmq_worker_free (&worker);
}

/* With a lease of ten minutes only the hint that the connection ended can requeue in time. */
static void test_killed_worker_is_noticed_within_the_grace (void **state)
{
    (void) state;
    daemon_t broker;
    tmq_id_t ids[HELD];
    daemon_init_tcp (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    submit_some (client, ids, LONG_LEASE_MS);
    child_t child = start_worker (broker.endpoint);
    wait_taken (&child, HELD);
    end_worker (&child);
    finish_all (client, ids);
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

/* A frozen worker keeps its connection: its leases run out. What it says later is stale. */
static void test_frozen_worker_loses_its_leases (void **state)
{
    (void) state;
    daemon_t broker;
    tmq_id_t ids[HELD];
    daemon_init (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    submit_some (client, ids, LEASE_MS);
    child_t child = start_worker (broker.endpoint);
    wait_taken (&child, HELD);
    assert_int_equal (kill (child.pid, SIGSTOP), 0);
    finish_all (client, ids);
    assert_int_equal (kill (child.pid, SIGCONT), 0);
    complete_late (&child);
    check_results (client, ids);
    tmq_client_free (&client);
    daemon_stop (&broker);
    daemon_destroy (&broker);
}

int main (int argc, char **argv)
{
    if (argc == 3 && strcmp (argv[1], "--worker") == 0) {
        return be_worker (argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_killed_worker_is_noticed_within_the_grace),
        cmocka_unit_test (test_frozen_worker_loses_its_leases),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
