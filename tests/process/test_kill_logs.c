/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* kill -9 of the broker while a worker sends its log: what is read is what was written at that
 * offset, gaps are told, and the task ends as if nothing had been.
 *
 *     test_kill_logs [--kills N]      CI: 5 kills */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { KILLS = 5, LINE_BYTES = 16, BURST = 200 };

static size_t kills = KILLS;

typedef struct job {
    daemon_t broker;
    tmq_client_t *client;
    tmq_worker_t *worker;
    tmq_assignment_t *assignment;
    tmq_id_t id;
    uint64_t lines; /* written so far */
} job_t;

static void begin (job_t *self)
{
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_worker_options_t options;
    const char *queue = "q";
    tmq_error_t error = {0};
    daemon_init (&self->broker);
    daemon_start (&self->broker);
    self->client = daemon_client (&self->broker);
    tmq_submit_init (&task);
    tmq_id_make (&task.id);
    self->id = task.id;
    task.queue = queue;
    assert_int_equal (tmq_submit (&receipt, self->client, &task, TIMING_PATIENCE_MS, &error),
                      TMQ_OK);
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    assert_int_equal (tmq_worker_new (&self->worker, self->client, &options, &error), TMQ_OK);
    assert_int_equal (tmq_worker_next (&self->assignment, self->worker, TIMING_PATIENCE_MS, &error),
                      TMQ_OK);
    assert_int_equal (tmq_worker_started (self->worker, self->assignment, &error), TMQ_OK);
}

/* Line n says so, and so does every byte's offset. */
static void say (job_t *self)
{
    char line[32];
    tmq_error_t error = {0};
    for (size_t i = 0; i < BURST; i++) {
        snprintf (line, sizeof line, "line %010llu\n", (unsigned long long) self->lines++);
        assert_int_equal (
            tmq_worker_log (self->worker, self->assignment, TMQ_LOG_ERR, line, LINE_BYTES, &error),
            TMQ_OK);
    }
}

/* Every byte that is kept, against what was written there. Returns how many there are. */
static uint64_t check (job_t *self, uint64_t *end)
{
    uint64_t kept = 0;
    uint64_t offset = 0;
    bool more = true;
    while (more) {
        tmq_part_t *part = NULL;
        tmq_error_t error = {0};
        int code = tmq_log_read (&part, self->client, &self->id, 0, TMQ_LOG_ERR, offset, 0,
                                 TIMING_PATIENCE_MS, &error);
        if (code != TMQ_OK)
            fail_msg ("%s", error.text);
        assert_true (part->offset >= offset);
        for (size_t i = 0; i < part->length; i++) {
            char line[32];
            uint64_t at = part->offset + i;
            snprintf (line, sizeof line, "line %010llu\n", (unsigned long long) at / LINE_BYTES);
            if (part->bytes[i] != line[at % LINE_BYTES])
                fail_msg ("byte %llu is not what was written", (unsigned long long) at);
        }
        kept += part->length;
        offset = part->offset + part->length;
        more = part->length > 0;
        *end = part->total;
        tmq_part_free (part);
    }
    return kept;
}

static void wait_until_taken (job_t *self)
{
    WAIT_FOR (tmq_worker_log_pending (self->worker, self->assignment) == 0, TIMING_PATIENCE_MS);
}

static void test_a_log_through_kills (void **state)
{
    (void) state;
    static job_t job;
    uint64_t end = 0;
    tmq_error_t error = {0};
    tmq_outcome_t outcome = {.result = "done", .result_bytes = 4};
    begin (&job);
    for (size_t i = 0; i < kills; i++) {
        say (&job);
        if (i % 2 == 0)
            wait_until_taken (&job);
        daemon_end (&job.broker, SIGKILL);
        say (&job); /* for a broker that is not there */
        daemon_start (&job.broker);
        wait_until_taken (&job);
        uint64_t kept = check (&job, &end);
        assert_int_equal (end, job.lines * LINE_BYTES);
        assert_true (kept >= BURST * LINE_BYTES); /* what was said since the kill, at least */
    }
    say (&job);
    assert_int_equal (
        tmq_worker_complete (job.worker, job.assignment, &outcome, TIMING_PATIENCE_MS, &error),
        TMQ_OK);
    check (&job, &end);
    assert_int_equal (end, job.lines * LINE_BYTES); /* the outcome took it along */
    tmq_task_t *task = NULL;
    assert_int_equal (tmq_get (&task, job.client, &job.id, TIMING_PATIENCE_MS, &error), TMQ_OK);
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_int_equal (task->attempt, 1);
    tmq_task_free (task);
    tmq_assignment_free (job.assignment);
    tmq_worker_free (&job.worker);
    tmq_client_free (&job.client);
    daemon_stop (&job.broker);
    daemon_destroy (&job.broker);
}

int main (int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp (argv[i], "--kills") == 0)
            kills = strtoul (argv[i + 1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_a_log_through_kills)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
