/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* kill -9 of the broker while a large payload is uploaded, and a large result: the upload goes on,
 * what was accepted is there byte for byte, and what is under a name are its bytes.
 *
 *     test_kill_blobs [--kills N]      CI: 2 rounds of each */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum { KILLS = 2, BYTES = 3 * 1024 * 1024 };

static size_t kills = KILLS;
static uint8_t contents[BYTES];

typedef struct job {
    daemon_t broker;
    tmq_client_t *client;
    tmq_worker_t *worker;
    tmq_assignment_t *assignment;
    tmq_id_t id;
    int code;
    tmq_error_t error;
    atomic_bool ended;
} job_t;

/* Each payload is another one. */
static void fill (size_t round)
{
    uint32_t state = (uint32_t) round * 2654435761u + 1;
    for (size_t i = 0; i < BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        contents[i] = (uint8_t) (state >> 24);
    }
}

static void *submit (void *context)
{
    job_t *self = context;
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_submit_init (&task);
    task.id = self->id;
    task.queue = "q";
    task.payload = contents;
    task.payload_bytes = BYTES;
    self->code = tmq_submit (&receipt, self->client, &task, TIMING_PATIENCE_MS, &self->error);
    atomic_store (&self->ended, true);
    return NULL;
}

static void *complete (void *context)
{
    job_t *self = context;
    tmq_outcome_t outcome = {.result = contents, .result_bytes = BYTES};
    self->code = tmq_worker_complete (self->worker, self->assignment, &outcome, TIMING_PATIENCE_MS,
                                      &self->error);
    atomic_store (&self->ended, true);
    return NULL;
}

typedef int save_t (tmq_client_t *client, const tmq_id_t *id, int fd, uint32_t timeout_ms,
                    tmq_error_t *error);

static void expect_contents (job_t *self, save_t *save)
{
    tmq_error_t error = {0};
    FILE *file = tmpfile ();
    assert_non_null (file);
    if (save (self->client, &self->id, fileno (file), TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    uint8_t *bytes = malloc (BYTES + 1);
    rewind (file);
    assert_int_equal (fread (bytes, 1, BYTES + 1, file), BYTES);
    assert_memory_equal (bytes, contents, BYTES);
    free (bytes);
    fclose (file);
}

/* Kills until it has ended, later each time, so that each gets further than the one before. */
static void kill_while_it_runs (job_t *self, size_t round)
{
    for (useconds_t ms = 1 + (useconds_t) round; !atomic_load (&self->ended); ms *= 2) {
        usleep (ms * 1000);
        daemon_end (&self->broker, SIGKILL);
        daemon_start (&self->broker);
    }
}

static void run_through_kills (job_t *self, size_t round, void *(*run) (void *), save_t *save)
{
    pthread_t thread;
    atomic_store (&self->ended, false);
    assert_int_equal (pthread_create (&thread, NULL, run, self), 0);
    kill_while_it_runs (self, round);
    pthread_join (thread, NULL);
    if (self->code != TMQ_OK)
        fail_msg ("%d: %s", self->code, self->error.text);
    expect_contents (self, save);
    daemon_end (&self->broker, SIGKILL);
    daemon_start (&self->broker);
    expect_contents (self, save);
}

static void take_task (job_t *self)
{
    tmq_error_t error = {0};
    if (tmq_worker_next (&self->assignment, self->worker, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    assert_memory_equal (&self->assignment->task_id, &self->id, sizeof self->id);
    assert_int_equal (self->assignment->payload_blob.bytes, BYTES);
}

static void test_bodies_through_kills (void **state)
{
    (void) state;
    static job_t job;
    const char *const queue = "q";
    tmq_worker_options_t options;
    daemon_init (&job.broker);
    daemon_start (&job.broker);
    job.client = daemon_client (&job.broker);
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    assert_int_equal (tmq_worker_new (&job.worker, job.client, &options, NULL), TMQ_OK);
    for (size_t round = 0; round < kills; round++) {
        fill (2 * round);
        tmq_id_make (&job.id);
        run_through_kills (&job, round, submit, tmq_payload_save);
        take_task (&job);
        fill (2 * round + 1);
        run_through_kills (&job, round, complete, tmq_result_save);
        tmq_assignment_free (job.assignment);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test (test_bodies_through_kills)};
    return cmocka_run_group_tests (tests, NULL, NULL);
}
