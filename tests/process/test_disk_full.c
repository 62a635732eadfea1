/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A full disk: submissions are refused, what is there is read and finished, and when there is space
 * again the same process goes on. The disk is full by a preloaded library (support/enospc.c). */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/checker.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { HELD = 4, FILL_MAX = 20000, PAYLOAD = 4000 };

static char flag[DAEMON_PATH_MAX + 16];

static void set_full (bool full)
{
    if (full) {
        close (open (flag, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    } else {
        unlink (flag);
    }
}

static int submit (tmq_client_t *client, const char *queue, tmq_id_t *id)
{
    static const char payload[PAYLOAD];
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    tmq_error_t error = {0};
    tmq_submit_init (&task);
    task.queue = queue;
    task.payload = payload;
    task.payload_bytes = sizeof payload;
    int code = tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, &error);
    *id = receipt.id;
    return code;
}

/* Submits until the broker says that it is full; counts what it took in between. */
static size_t fill (tmq_client_t *client, tmq_id_t *taken)
{
    for (size_t i = 0; i < FILL_MAX; i++) {
        int code = submit (client, "filler", &taken[i]);
        if (code == TMQ_STORE_FULL) {
            return i;
        }
        if (code != TMQ_OK && code != TMQ_UNKNOWN) {
            fail_msg ("a submit on a full disk is answered %s", tmq_code_name (code));
        }
    }
    fail_msg ("%d tasks fit on a full disk", FILL_MAX);
    return 0;
}

static void test_full_disk (void **state)
{
    (void) state;
    static tmq_id_t taken[FILL_MAX];
    daemon_t broker;
    daemon_init (&broker);
    snprintf (flag, sizeof flag, "%s/full", broker.home);
    setenv ("TASKMQ_ENOSPC_FLAG", flag, 1);
    setenv ("TASKMQ_ENOSPC_DIR", broker.data, 1);
    broker.preload = TASKMQ_TEST_ENOSPC;
    daemon_start (&broker);

    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_options_t options;
    tmq_worker_t *worker = NULL;
    const char *queues[] = {"work"};
    tmq_worker_options_init (&options);
    options.queues = queues;
    options.queues_count = 1;
    options.capacity = HELD;
    assert_int_equal (tmq_worker_new (&worker, client, &options, NULL), TMQ_OK);
    tmq_id_t ids[HELD];
    tmq_assignment_t *held[HELD];
    for (int i = 0; i < HELD; i++) {
        assert_int_equal (submit (client, "work", &ids[i]), TMQ_OK);
        assert_int_equal (tmq_worker_next (&held[i], worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    }

    set_full (true);
    size_t count = fill (client, taken);
    print_message ("%zu tasks of %d bytes were taken before STORE_FULL\n", count, PAYLOAD);

    /* Reads are served, and what runs can be finished. */
    for (int i = 0; i < HELD; i++) {
        tmq_task_t *task = NULL;
        tmq_outcome_t outcome = {.result = "done", .result_bytes = 4};
        tmq_error_t error = {0};
        assert_int_equal (tmq_get (&task, client, &ids[i], TIMING_PATIENCE_MS, NULL), TMQ_OK);
        tmq_task_free (task);
        if (tmq_worker_complete (worker, held[i], &outcome, TIMING_PATIENCE_MS, &error) != TMQ_OK) {
            fail_msg ("complete on a full disk: %s", error.text);
        }
        tmq_assignment_free (held[i]);
    }

    set_full (false);
    tmq_id_t id;
    WAIT_FOR (submit (client, "filler", &id) == TMQ_OK, TIMING_PATIENCE_MS);
    for (size_t i = 0; i < count; i++) {
        tmq_task_t *task = NULL;
        if (tmq_get (&task, client, &taken[i], TIMING_PATIENCE_MS, NULL) != TMQ_OK) {
            fail_msg ("I1: task %zu, accepted on a full disk, is lost", i);
        }
        tmq_task_free (task);
    }
    for (int i = 0; i < HELD; i++) {
        tmq_task_t *task = NULL;
        assert_int_equal (tmq_result (&task, client, &ids[i], TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
        assert_int_equal (task->body_bytes, 4);
        tmq_task_free (task);
    }
    tmq_client_free (&client);
    daemon_stop (&broker);
    checker_databases (broker.data);
    daemon_destroy (&broker);
}

/* Somebody else filled the disk, and the broker was killed: what it held back is for its start. */
static void test_start_on_a_full_disk (void **state)
{
    (void) state;
    enum { TASKS = 50 };
    tmq_id_t ids[TASKS];
    daemon_t broker;
    daemon_init (&broker);
    snprintf (flag, sizeof flag, "%s/full", broker.home);
    setenv ("TASKMQ_ENOSPC_FLAG", flag, 1);
    setenv ("TASKMQ_ENOSPC_DIR", broker.data, 1);
    broker.preload = TASKMQ_TEST_ENOSPC;
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    for (int i = 0; i < TASKS; i++)
        assert_int_equal (submit (client, "work", &ids[i]), TMQ_OK);
    tmq_client_free (&client);
    daemon_end (&broker, SIGKILL);

    set_full (true);
    daemon_start (&broker);
    client = daemon_client (&broker);
    for (int i = 0; i < TASKS; i++) {
        tmq_task_t *task = NULL;
        assert_int_equal (tmq_get (&task, client, &ids[i], TIMING_PATIENCE_MS, NULL), TMQ_OK);
        tmq_task_free (task);
    }
    tmq_client_free (&client);
    set_full (false);
    daemon_stop (&broker);
    checker_databases (broker.data);
    daemon_destroy (&broker);
}

/* A limit on the size of files (LimitFSIZE, ulimit -f), which the export reaches first: the export
 * waits, and all else goes on. A start finds the same. */
static void test_a_limit_of_file_sizes (void **state)
{
    (void) state;
    enum { LIMIT = 17 * 1024 * 1024, BODY = 60000, LINE = 6 * BODY, TASKS = LIMIT / LINE + 2 };
    static char body[BODY];
    struct rlimit before;
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    daemon_t broker;
    assert_int_equal (getrlimit (RLIMIT_FSIZE, &before), 0);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &(struct rlimit){LIMIT, before.rlim_max}), 0);
    daemon_init (&broker);
    daemon_start (&broker);
    tmq_client_t *client = daemon_client (&broker);
    tmq_submit_init (&task);
    task.queue = "work";
    memset (body, 1, sizeof body); /* six bytes each in the export, as \u0001 */
    task.payload = body;
    task.payload_bytes = sizeof body;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    WAIT_FOR (daemon_logged (&broker, "EXPORT-STALLED"), TIMING_PATIENCE_MS);
    assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_client_free (&client);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);
    daemon_destroy (&broker);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_full_disk),
                                       cmocka_unit_test (test_start_on_a_full_disk),
                                       cmocka_unit_test (test_a_limit_of_file_sizes)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
