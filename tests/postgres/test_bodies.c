/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Large bodies of a broker on PostgreSQL: they outlive its data directory, cuts and crashes of the
 * database while they are put, and a full disk is told. Those that were files alone are brought in.
 *
 *     test_bodies [--percent N] [--seed N]      CI: 2 percent, seed 1 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stage.h"
#include "support/cmocka_all.h"
#include "support/proxy.h"
#include "support/timing.h"

enum { PERCENT = 2, ROUNDS = 100, BYTES = 12 * 1024 * 1024 + 5, FAULT_MS_MAX = 40 };

static unsigned percent = PERCENT;
static unsigned seed = 1;
static uint8_t contents[BYTES];

typedef struct job {
    tmq_client_t *client;
    tmq_id_t id;
    int code;
    tmq_error_t error;
    atomic_bool ended;
} job_t;

static unsigned rounds (void)
{
    return (ROUNDS * percent + 99) / 100;
}

/* Each body is another one, and no server can make it smaller. */
static void fill (void)
{
    static uint32_t state = 1;
    for (size_t i = 0; i < BYTES; i++) {
        state = state * 1664525u + 1013904223u;
        contents[i] = (uint8_t) (state >> 24);
    }
}

static void *submit (void *context)
{
    job_t *self = context;
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    tmq_submit_init (&task);
    task.id = self->id;
    task.queue = "q";
    task.payload = contents;
    task.payload_bytes = BYTES;
    self->code = tmq_submit (&receipt, self->client, &task, TIMING_PATIENCE_MS, &self->error);
    atomic_store (&self->ended, true);
    return NULL;
}

static void expect_submitted (const job_t *self)
{
    if (self->code != TMQ_OK)
        fail_msg ("%s: %s", tmq_code_name (self->code), self->error.text);
}

static void submit_now (job_t *self)
{
    fill ();
    tmq_id_make (&self->id);
    submit (self);
    expect_submitted (self);
}

typedef int save_t (tmq_client_t *client, const tmq_id_t *id, int fd, uint32_t timeout_ms,
                    tmq_error_t *error);

static void expect_contents (const job_t *self, save_t *save)
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

static void run_sql (const stage_t *stage, const char *sql)
{
    free (postgres_sql (&stage->server, sql));
}

/* The broker and its machine are gone: another one takes over. */
static void take_over (stage_t *stage, job_t *job)
{
    tmq_client_free (&job->client);
    daemon_destroy (&stage->broker);
    run_sql (stage, "UPDATE taskmq.shard SET owner = NULL");
    daemon_t fresh;
    daemon_init (&fresh);
    memcpy (fresh.arguments, stage->broker.arguments, sizeof fresh.arguments);
    stage->broker = fresh;
    daemon_start (&stage->broker);
    job->client = daemon_client (&stage->broker);
}

static void complete_large (job_t *self)
{
    tmq_worker_t *worker;
    tmq_assignment_t *assignment;
    tmq_worker_options_t options;
    const char *const queue = "q";
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    assert_int_equal (tmq_worker_new (&worker, self->client, &options, NULL), TMQ_OK);
    tmq_error_t error = {0};
    if (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    self->id = assignment->task_id;
    fill ();
    tmq_outcome_t outcome = {.result = contents, .result_bytes = BYTES};
    if (tmq_worker_complete (worker, assignment, &outcome, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    tmq_assignment_free (assignment);
    tmq_worker_free (&worker);
}

/* kill -9 right behind the acknowledgement, and nothing but the database is left. */
static void test_another_machine_has_the_bodies (void **state)
{
    (void) state;
    job_t job = {0};
    stage_t stage;
    stage_init (&stage, NULL);
    daemon_start (&stage.broker);
    job.client = daemon_client (&stage.broker);
    submit_now (&job);
    daemon_end (&stage.broker, SIGKILL);
    take_over (&stage, &job);
    expect_contents (&job, tmq_payload_save);
    assert_int_equal (daemon_counter (job.client, "blobs"), 0);
    complete_large (&job); /* its worker gets the payload from the database, too */
    daemon_end (&stage.broker, SIGKILL);
    take_over (&stage, &job);
    expect_contents (&job, tmq_result_save);
    submit_now (&job); /* and it goes on */
    expect_contents (&job, tmq_payload_save);
    WAIT_FOR (daemon_counter (job.client, "blobs_stored") == 3, TIMING_PATIENCE_MS);
    assert_int_equal (daemon_counter (job.client, "blobs_stored_bytes"), 3 * (uint64_t) BYTES);
    tmq_client_free (&job.client);
    daemon_stop (&stage.broker);
    assert_int_equal (postgres_number (&stage.server, "SELECT count (*) FROM taskmq.blob"), 3);
    stage_destroy (&stage);
}

/* One upload after the other, with faults until each has ended; then what they left is swept. */
static void run_faults (stage_t *stage, void (*fault) (stage_t *stage), const char *name)
{
    job_t job = {0};
    pthread_t thread;
    unsigned faults = 0;
    daemon_start (&stage->broker);
    pid_t broker = stage->broker.pid;
    job.client = daemon_client (&stage->broker);
    for (unsigned i = 0; i < rounds (); i++) {
        fill ();
        tmq_id_make (&job.id);
        atomic_store (&job.ended, false);
        assert_int_equal (pthread_create (&thread, NULL, submit, &job), 0);
        for (unsigned k = 0; k < 8 && !atomic_load (&job.ended); k++, faults++) {
            timing_pause (1 + (uint32_t) rand_r (&seed) % FAULT_MS_MAX);
            fault (stage);
        }
        pthread_join (thread, NULL);
        expect_submitted (&job);
        expect_contents (&job, tmq_payload_save);
    }
    print_message ("%u bodies through %u %s\n", rounds (), faults, name);
    assert_int_equal (stage->broker.pid, broker);
    WAIT_FOR (
        postgres_number (&stage->server, "SELECT count (*) FROM taskmq.blob WHERE NOT whole") == 0,
        TIMING_PATIENCE_MS);
    assert_int_equal (postgres_number (&stage->server, "SELECT count (*) FROM taskmq.blob_chunk c "
                                                       "WHERE NOT EXISTS (SELECT 1 FROM "
                                                       "taskmq.blob WHERE id = c.blob)"),
                      0);
    daemon_end (&stage->broker, SIGKILL);
    take_over (stage, &job);
    expect_contents (&job, tmq_payload_save);
    tmq_client_free (&job.client);
    daemon_stop (&stage->broker);
    stage_destroy (stage);
}

static proxy_t *proxy;

static void cut (stage_t *stage)
{
    (void) stage;
    proxy_cut (proxy, (proxy_cut_t) (rand_r (&seed) % PROXY_CUTS));
}

static void test_cuts_while_they_are_put (void **state)
{
    (void) state;
    stage_t stage;
    stage_init_tcp (&stage, NULL);
    proxy = proxy_new (stage.server.port, seed);
    stage_through (&stage, atoi (strrchr (proxy_endpoint (proxy), ':') + 1));
    run_faults (&stage, cut, "cuts");
    proxy_free (proxy);
}

static void kill_database (stage_t *stage)
{
    postgres_end (&stage->server, SIGKILL);
    postgres_start (&stage->server);
}

static void test_crashes_of_the_database (void **state)
{
    (void) state;
    stage_t stage;
    stage_init (&stage, NULL);
    run_faults (&stage, kill_database, "crashes of the database");
}

/* As data directories of before have them. */
static void test_files_are_brought_in (void **state)
{
    (void) state;
    job_t job = {0};
    stage_t stage;
    stage_init (&stage, NULL);
    daemon_start (&stage.broker);
    job.client = daemon_client (&stage.broker);
    submit_now (&job);
    daemon_end (&stage.broker, SIGKILL);
    run_sql (&stage, "DELETE FROM taskmq.blob_chunk; DELETE FROM taskmq.blob");
    daemon_start (&stage.broker);
    expect_contents (&job, tmq_payload_save);
    WAIT_FOR (daemon_logged (&stage.broker, "BLOBS-BROUGHT"), TIMING_PATIENCE_MS);
    daemon_end (&stage.broker, SIGKILL);
    take_over (&stage, &job);
    expect_contents (&job, tmq_payload_save);
    tmq_client_free (&job.client);
    daemon_stop (&stage.broker);
    stage_destroy (&stage);
}

/* Nothing is acknowledged, and nothing is said to be missing. */
static void test_while_the_database_is_away (void **state)
{
    (void) state;
    job_t job = {0};
    pthread_t thread;
    tmq_error_t error = {0};
    stage_t stage;
    stage_init (&stage, NULL);
    daemon_start (&stage.broker);
    job.client = daemon_client (&stage.broker);
    submit_now (&job);
    daemon_end (&stage.broker, SIGKILL);
    take_over (&stage, &job);
    postgres_end (&stage.server, SIGKILL);
    FILE *file = tmpfile ();
    assert_non_null (file);
    int code = tmq_payload_save (job.client, &job.id, fileno (file), 1500, &error);
    assert_true (code == TMQ_UNAVAILABLE || code == TMQ_TIMEOUT || code == TMQ_UNREACHABLE);
    fclose (file);
    assert_false (daemon_logged (&stage.broker, "BLOB-DAMAGED"));
    const tmq_id_t first = job.id;
    tmq_id_make (&job.id);
    atomic_store (&job.ended, false);
    assert_int_equal (pthread_create (&thread, NULL, submit, &job), 0);
    timing_pause (FAULT_MS_MAX);
    if (atomic_load (&job.ended))
        fail_msg ("it ended: %s: %s", tmq_code_name (job.code), job.error.text);
    postgres_start (&stage.server);
    pthread_join (thread, NULL);
    expect_submitted (&job);
    expect_contents (&job, tmq_payload_save);
    job.id = first;
    expect_contents (&job, tmq_payload_save);
    tmq_client_free (&job.client);
    daemon_stop (&stage.broker);
    stage_destroy (&stage);
}

int main (int argc, char **argv)
{
    stage_arguments (argc, argv, &percent, &seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_another_machine_has_the_bodies),
        cmocka_unit_test (test_cuts_while_they_are_put),
        cmocka_unit_test (test_crashes_of_the_database),
        cmocka_unit_test (test_files_are_brought_in),
        cmocka_unit_test (test_while_the_database_is_away),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
