/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the library promises, with a real broker behind it: few messages for many operations, waits
 * that cost no polling, workers and completions that outlive connections, and processes that are
 * killed and go on from what they had stored. */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library_support.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/proxy.h"
#include "support/timing.h"

/* Finding the broker, and hearing of it. */

static void assert_link_state (tmq_client_t *client, tmq_link_state_t state)
{
    tmq_completion_t *completion;
    size_t count;
    for (;;) { /* what was in between may be left out, or not */
        assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS),
                          TMQ_OK);
        assert_int_equal (completion->op, TMQ_OP_LINK);
        bool found = completion->link == state;
        assert_true (completion->code == TMQ_OK || completion->error->text[0] != '\0');
        tmq_completion_free (completion);
        if (found)
            return;
    }
}

static void assert_connected (tmq_client_t *client, bool connected)
{
    tmq_whoami_t who = {.size = sizeof who};
    assert_int_equal (tmq_client_whoami (&who, client), TMQ_OK);
    assert_int_equal (who.connected, connected);
}

static void a_found_broker_tells_when_it_comes_and_goes (void **state)
{
    (void) state;
    char directory[DAEMON_PATH_MAX + 32];
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_broker_info_t info;
    tmq_submit_t task;
    snprintf (directory, sizeof directory, "%s/below", broker.home);
    int here = open (".", O_RDONLY | O_DIRECTORY);
    assert_int_equal (mkdir (directory, 0700), 0);
    assert_int_equal (chdir (directory), 0);
    unsetenv ("TASKMQ_ENDPOINT");
    tmq_client_options_init (&options);
    options.link = true;
    assert_int_equal (tmq_client_new (&client, &options, NULL), TMQ_OK);
    assert_int_equal (fchdir (here), 0); /* the directory is absolute */
    close (here);
    assert_link_state (client, TMQ_LINK_UP);
    assert_int_equal (tmq_client_info (&info, client), TMQ_OK);
    assert_non_null (strstr (info.endpoint, "://"));
    assert_connected (client, true);
    daemon_end (&broker, SIGKILL);
    assert_link_state (client, TMQ_LINK_LOST);
    assert_connected (client, false);
    tmq_submit_init (&task);
    task.queue = "q";
    assert_int_equal (tmq_submit_start (client, &task, TMQ_FOREVER, NULL, NULL), TMQ_OK);
    daemon_start (&broker);
    assert_int_equal (tmq_client_flush (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_link_state (client, TMQ_LINK_BACK);
    tmq_completion_t *completion;
    size_t count;
    assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (completion->op, TMQ_OP_SUBMIT);
    assert_int_equal (completion->code, TMQ_OK);
    tmq_completion_free (completion);
    tmq_client_free (&client);
    rmdir (directory);
}

/* Few messages. */

enum { SUBMITTERS = 100, SUBMITS = 100 };

static void *submit_many (void *argument)
{
    tmq_client_t *client = argument;
    for (int i = 0; i < SUBMITS; i++) {
        tmq_submit_t task;
        tmq_receipt_t receipt;
        tmq_submit_init (&task);
        task.queue = "many";
        if (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL) != TMQ_OK)
            return NULL;
    }
    return argument;
}

static void a_hundred_threads_share_messages (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    pthread_t threads[SUBMITTERS];
    tmq_client_counters_t counters;
    uint64_t count = 0;
    for (int i = 0; i < SUBMITTERS; i++)
        assert_int_equal (pthread_create (&threads[i], NULL, submit_many, client), 0);
    for (int i = 0; i < SUBMITTERS; i++) {
        void *good = NULL;
        pthread_join (threads[i], &good);
        assert_non_null (good);
    }
    tmq_client_counters (&counters, client);
    assert_int_equal (counters.requests, SUBMITTERS * SUBMITS);
    print_message ("%.3f sends per submit\n",
                   (double) counters.messages_sent / (double) counters.requests);
    assert_true (counters.messages_sent * 5 < counters.requests); /* under 0.2 sends per submit */
    assert_int_equal (tmq_count (&count, client, NULL, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (count, SUBMITTERS * SUBMITS);
    tmq_client_free (&client);
}

/* Calls that follow each other closely are driven by their caller; what they leave behind, and what
 * comes between them, is not forgotten. */
static void a_lone_caller_drives_its_calls (void **state)
{
    (void) state;
    enum { CALLS = 200 };
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = worker_of (client, "alone", 1);
    tmq_client_counters_t counters;
    for (int i = 0; i < CALLS; i++) {
        tmq_assignment_t *assignment = NULL;
        tmq_outcome_t outcome = {0};
        tmq_id_t id = submit (client, "alone", "x");
        assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_memory_equal (assignment->task_id.bytes, id.bytes, sizeof id.bytes);
        assert_int_equal (tmq_worker_complete_start (worker, assignment, &outcome,
                                                     TIMING_PATIENCE_MS, NULL, NULL),
                          TMQ_OK);
        tmq_assignment_free (assignment);
        tmq_status_t status;
        assert_int_equal (tmq_wait (&status, client, &id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    }
    tmq_client_counters (&counters, client);
    assert_true (counters.calls_driven > 0);
    size_t count = 0;
    tmq_completion_t *completion = NULL;
    for (int i = 0; i < CALLS; i++) {
        assert_int_equal (tmq_client_poll (&completion, 1, &count, client, TIMING_PATIENCE_MS),
                          TMQ_OK);
        assert_int_equal (completion->code, TMQ_OK);
        tmq_completion_free (completion);
    }
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

enum { WAITS = 10000 };

/* Takes completions of that kind, all of them good, until there were count. */
static void take (tmq_client_t *client, tmq_op_t op, size_t count)
{
    tmq_completion_t *completions[256];
    size_t got = 0;
    while (got < count) {
        size_t some = 0;
        assert_int_equal (tmq_client_poll (completions, 256, &some, client, TIMING_PATIENCE_MS),
                          TMQ_OK);
        for (size_t i = 0; i < some; i++) {
            assert_int_equal (completions[i]->op, op);
            assert_int_equal (completions[i]->code, TMQ_OK);
            tmq_completion_free (completions[i]);
        }
        got += some;
    }
    assert_int_equal (got, count);
}

static void ten_thousand_waits_cost_ten_requests (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_client_t *other = daemon_client (&broker);
    tmq_client_counters_t before;
    tmq_client_counters_t after;
    tmq_id_t *ids = calloc (WAITS, sizeof *ids);
    assert_non_null (ids);
    submit_batch (client, "waits", ids, WAITS);
    int64_t start_ms = timing_ms ();
    tmq_client_counters (&before, client);
    assert_int_equal (tmq_wait_start (client, ids, WAITS, TMQ_FOREVER, NULL, NULL), TMQ_OK);
    tmq_worker_t *worker = worker_of (other, "waits", 1000);
    for (int i = 0; i < WAITS; i++) {
        tmq_assignment_t *assignment = NULL;
        assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_int_equal (
            tmq_worker_complete_start (worker, assignment, NULL, TIMING_PATIENCE_MS, NULL, NULL),
            TMQ_OK);
        tmq_assignment_free (assignment);
    }
    take (client, TMQ_OP_WAIT, WAITS);
    tmq_client_counters (&after, client);
    /* Ten requests, and a heartbeat every two seconds. */
    uint64_t heartbeats = (uint64_t) (timing_ms () - start_ms) / TMQ_HEARTBEAT_MS + 1;
    assert_in_range (after.messages_sent - before.messages_sent, 1, 10 + heartbeats);
    take (other, TMQ_OP_COMPLETE, WAITS);
    tmq_worker_free (&worker);
    tmq_client_free (&other);
    tmq_client_free (&client);
    free (ids);
}

/* Workers. */

enum { RUN_TASKS = 200, RUN_THREADS = 4 };

typedef struct run {
    pthread_mutex_t lock;
    int handled;
    pthread_t threads[RUN_THREADS];
    int threads_seen;
} run_t;

static void run_note (run_t *run, tmq_worker_t *worker)
{
    pthread_mutex_lock (&run->lock);
    int known = 0;
    while (known < run->threads_seen && !pthread_equal (run->threads[known], pthread_self ()))
        known++;
    if (known == run->threads_seen && known < RUN_THREADS)
        run->threads[run->threads_seen++] = pthread_self ();
    if (++run->handled == RUN_TASKS)
        tmq_worker_drain (worker, NULL);
    pthread_mutex_unlock (&run->lock);
}

/* Every tenth fails once, every other tenth is given back once, the rest is completed. */
static tmq_run_end_t handle (void *context, tmq_worker_t *worker,
                             const tmq_assignment_t *assignment, tmq_outcome_t *outcome)
{
    int number = atoi (assignment->payload);
    if (assignment->attempt == 1 && number % 10 == 1) {
        outcome->error_code = 7;
        outcome->error_message = "once";
        return TMQ_RUN_FAIL;
    }
    if (assignment->attempt == 1 && number % 10 == 2)
        return TMQ_RUN_RELEASE;
    char *result = malloc (32);
    assert_non_null (result);
    outcome->result_bytes =
        (size_t) snprintf (result, 32, "%d squared is %d", number, number * number);
    outcome->result = result;
    outcome->release = free;
    run_note (context, worker);
    return TMQ_RUN_COMPLETE;
}

static void the_convenient_loop_handles_all (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    run_t run = {.lock = PTHREAD_MUTEX_INITIALIZER};
    tmq_id_t ids[RUN_TASKS];
    char text[64];
    tmq_error_t error;
    for (int i = 0; i < RUN_TASKS; i++) {
        tmq_submit_t task;
        tmq_receipt_t receipt;
        snprintf (text, sizeof text, "%d", i);
        tmq_submit_init (&task);
        task.queue = "run";
        task.payload = text;
        task.payload_bytes = strlen (text) + 1;
        task.backoff_ms = 1;
        assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        ids[i] = receipt.id;
    }
    tmq_worker_t *worker = worker_of (client, "run", RUN_THREADS);
    int code = tmq_worker_run (worker, RUN_THREADS, handle, &run, &error);
    if (code != TMQ_OK)
        fail_msg ("%s", error.text);
    assert_int_equal (run.handled, RUN_TASKS);
    assert_int_equal (run.threads_seen, RUN_THREADS);
    for (int i = 0; i < RUN_TASKS; i++) {
        snprintf (text, sizeof text, "%d squared is %d", i, i * i);
        assert_result (client, &ids[i], text);
    }
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* What cannot be sent. */

enum { UNFIT_BYTES = 16 * 1024 * 1024 + 1 }; /* more than the broker takes */
enum { UNFIT_MESSAGE, UNFIT_DATA, UNFIT_TYPE, UNFIT_RESULT, UNFIT_CODE, UNFIT_TEXT, UNFIT_KINDS };

typedef struct unfit {
    char message[6001];
    char type[301];
    char *result;
    int handled;
} unfit_t;

static tmq_run_end_t handle_unfit (void *context, tmq_worker_t *worker,
                                   const tmq_assignment_t *assignment, tmq_outcome_t *outcome)
{
    unfit_t *unfit = context;
    int kind = atoi (assignment->payload);
    *outcome = (tmq_outcome_t){
        .result = "r", .result_bytes = 1, .error_code = 7, .error_message = "why", .final = true};
    switch (kind) {
    case UNFIT_MESSAGE: outcome->error_message = unfit->message; break;
    case UNFIT_DATA: outcome->error_data = "no json"; break;
    case UNFIT_TYPE: outcome->result_type = unfit->type; break;
    case UNFIT_CODE: outcome->error_code = TMQ_TASK_ERROR_EXPIRED; break;
    case UNFIT_TEXT: outcome->error_message = "\xff!"; break;
    default: outcome->result = unfit->result; outcome->result_bytes = UNFIT_BYTES;
    }
    if (++unfit->handled == UNFIT_KINDS)
        tmq_worker_drain (worker, NULL);
    return kind == UNFIT_TYPE || kind == UNFIT_RESULT ? TMQ_RUN_COMPLETE : TMQ_RUN_FAIL;
}

static void assert_unfit (tmq_client_t *client, const tmq_id_t *id, int kind)
{
    static const char *const texts[] = {"[the message of 6000 bytes was cut]",
                                        "why [error_data was left out: it is no JSON]",
                                        "",
                                        "16777217 bytes, at most 16777216 (limits/blob_bytes)",
                                        "why [the code -33001 is the broker's]",
                                        "?!"};
    static const int codes[] = {7, 7, 0, TMQ_TASK_ERROR_TOO_LARGE, 0, 7};
    tmq_task_t *task = NULL;
    tmq_error_t error;
    if (tmq_result (&task, client, id, TIMING_PATIENCE_MS, &error) != TMQ_OK)
        fail_msg ("kind %d: %s", kind, error.text);
    assert_int_equal (task->status, kind == UNFIT_TYPE ? TMQ_STATUS_COMPLETED : TMQ_STATUS_FAILED);
    assert_int_equal (task->attempt, 1);
    assert_int_equal (task->error_code, codes[kind]);
    assert_true (strlen (task->error_message) <= TMQ_ERROR_MESSAGE_BYTES_MAX);
    assert_non_null (strstr (task->error_message, texts[kind]));
    if (kind == UNFIT_TYPE)
        assert_string_equal (task->result_type, "text/plain");
    tmq_task_free (task);
}

static void an_outcome_that_cannot_be_sent_ends_its_attempt (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_id_t ids[UNFIT_KINDS];
    unfit_t unfit = {.handled = 0};
    for (size_t i = 0; i + 1 < sizeof unfit.message; i += 2)
        memcpy (unfit.message + i, "\xc3\xa9", 2); /* é */
    memset (unfit.type, 'x', sizeof unfit.type - 1);
    unfit.result = calloc (1, UNFIT_BYTES);
    assert_non_null (unfit.result);
    for (int kind = 0; kind < UNFIT_KINDS; kind++) {
        char text[8];
        snprintf (text, sizeof text, "%d", kind);
        ids[kind] = submit (client, "unfit", text);
    }
    tmq_worker_t *worker = worker_of (client, "unfit", 1);
    assert_int_equal (tmq_worker_run (worker, 1, handle_unfit, &unfit, NULL), TMQ_OK);
    assert_int_equal (tmq_worker_held (worker), 0);
    for (int kind = 0; kind < UNFIT_KINDS; kind++)
        assert_unfit (client, &ids[kind], kind);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
    free (unfit.result);
}

/* A result that is larger than a frame, out of memory and out of a file, whole and in pieces. */
static void a_large_result_comes_back (void **state)
{
    (void) state;
    enum { LARGE_BYTES = 700000 };
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = worker_of (client, "large", 1);
    uint8_t *bytes = malloc (LARGE_BYTES);
    uint8_t *got = malloc (LARGE_BYTES + 1);
    FILE *in = tmpfile ();
    assert_true (bytes != NULL && got != NULL && in != NULL);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        bytes[i] = (uint8_t) (i * 31 + i / 977);
    assert_int_equal (fwrite (bytes, 1, LARGE_BYTES, in), LARGE_BYTES);
    assert_int_equal (fflush (in), 0);
    for (int round = 0; round < 3; round++) {
        tmq_assignment_t *assignment = NULL;
        tmq_task_t *task = NULL;
        tmq_part_t *part = NULL;
        tmq_error_t error = {0};
        tmq_outcome_t outcome = {.result = bytes, .result_bytes = LARGE_BYTES};
        tmq_id_t id = submit (client, "large", "p");
        assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        if (round == 2) /* a short one out of a file */
            assert_int_equal (ftruncate (fileno (in), 1000), 0);
        int code = round == 0 ? tmq_worker_complete (worker, assignment, &outcome,
                                                     TIMING_PATIENCE_MS, &error)
                              : tmq_worker_complete_file (worker, assignment, NULL, fileno (in),
                                                          TIMING_PATIENCE_MS, &error);
        if (code != TMQ_OK)
            fail_msg ("%s", error.text);
        tmq_assignment_free (assignment);
        size_t length = round == 2 ? 1000 : LARGE_BYTES;
        assert_int_equal (tmq_result (&task, client, &id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        assert_int_equal (task->result_bytes, length);
        assert_int_equal (task->result_blob.bytes, round == 2 ? 0 : length);
        assert_int_equal (task->body_bytes, round == 2 ? length : 0);
        tmq_task_free (task);
        FILE *out = tmpfile ();
        assert_non_null (out);
        assert_int_equal (tmq_result_save (client, &id, fileno (out), TIMING_PATIENCE_MS, &error),
                          TMQ_OK);
        rewind (out);
        assert_int_equal (fread (got, 1, LARGE_BYTES + 1, out), length);
        assert_memory_equal (got, bytes, length);
        fclose (out);
        code = tmq_result_read (&part, client, &id, 5, 10, TIMING_PATIENCE_MS, &error);
        assert_int_equal (code, round == 2 ? TMQ_NO_BLOB : TMQ_OK);
        if (code == TMQ_OK)
            assert_memory_equal (part->bytes, bytes + 5, 10);
        tmq_part_free (part);
    }
    fclose (in);
    free (bytes);
    free (got);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

typedef struct completion {
    tmq_worker_t *worker;
    const tmq_assignment_t *assignment;
    int code;
} completion_t;

static void *complete (void *argument)
{
    completion_t *completion = argument;
    tmq_outcome_t outcome = {.result = "kept", .result_bytes = 4};
    completion->code = tmq_worker_complete (completion->worker, completion->assignment, &outcome,
                                            TIMING_PATIENCE_MS, NULL);
    return NULL;
}

/* The answer is swallowed by the network, the connection then cut: the library says it again on
 * the next one, and gets the stored answer. */
static void a_completion_meets_a_lost_connection (void **state)
{
    (void) state;
    tmq_client_t *observer = daemon_client (&broker);
    int port = atoi (strrchr (broker.endpoint, ':') + 1);
    proxy_t *proxy = proxy_new (port, 1);
    tmq_client_t *client = client_of (proxy_endpoint (proxy));
    tmq_worker_t *worker = worker_of (client, "lost", 1);
    tmq_assignment_t *assignment = NULL;
    tmq_id_t id = submit (observer, "lost", "x");
    assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_worker_started (worker, assignment, NULL);
    proxy_set (proxy, PROXY_BLACKHOLE_DOWN);
    completion_t completion = {worker, assignment, -1};
    pthread_t thread;
    tmq_status_t status;
    assert_int_equal (pthread_create (&thread, NULL, complete, &completion), 0);
    assert_int_equal (tmq_wait (&status, observer, &id, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (status,
                      TMQ_STATUS_COMPLETED); /* the broker has it, the worker does not know */
    proxy_cut (proxy, PROXY_CUT_RESET);
    WAIT_FOR (tmq_client_connect (client, 0, NULL) != TMQ_OK, TIMING_PATIENCE_MS);
    proxy_set (proxy, PROXY_CLEAR);
    pthread_join (thread, NULL);
    assert_int_equal (completion.code, TMQ_OK);
    assert_result (observer, &id, "kept");
    tmq_client_counters_t counters;
    tmq_client_counters (&counters, client);
    assert_true (counters.connects >= 2);
    assert_true (counters.resent >= 1);
    tmq_assignment_free (assignment);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
    tmq_client_free (&observer);
    proxy_free (proxy);
}

static void a_cancel_reaches_a_worker_at_work (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = worker_of (client, "cancel", 1);
    tmq_assignment_t *assignment = NULL;
    tmq_attempt_change_t change;
    tmq_id_t id = submit (client, "cancel", "x");
    assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_cancel (NULL, client, &id, "enough", TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_worker_changed (&change, worker, TIMING_PATIENCE_MS), TMQ_OK);
    assert_int_equal (change.state, TMQ_ATTEMPT_CANCELLED);
    assert_string_equal (change.message, "enough");
    assert_int_equal (tmq_worker_cancelled (worker, assignment, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_worker_held (worker), 0);
    tmq_assignment_free (assignment);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* What a worker keeps is there for the next attempt, also when the broker was killed. */
static void a_checkpoint_outlives_worker_and_broker (void **state)
{
    (void) state;
    static char large[TMQ_CHECKPOINT_BYTES_MAX + 1];
    tmq_client_t *client = daemon_client (&broker);
    tmq_worker_t *worker = worker_of (client, "keep", 1);
    tmq_assignment_t *first = NULL;
    tmq_assignment_t *second = NULL;
    tmq_part_t *kept = NULL;
    tmq_changed_t changed;
    tmq_outcome_t outcome = {.error_code = 5, .error_message = "for good", .final = true};
    tmq_id_t id = submit (client, "keep", "x");
    memset (large, 'k', sizeof large);
    assert_int_equal (tmq_worker_next (&first, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (first->checkpoint_bytes, 0);
    assert_int_equal (
        tmq_worker_checkpoint (worker, first, large, sizeof large, TIMING_PATIENCE_MS, NULL),
        TMQ_TOO_LARGE);
    assert_int_equal (
        tmq_worker_checkpoint (worker, first, large, sizeof large - 1, TIMING_PATIENCE_MS, NULL),
        TMQ_OK);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    assert_int_equal (tmq_worker_fail (worker, first, &outcome, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_resume (&changed, client, &id, 1, NULL, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (changed.code, TMQ_OK);
    assert_int_equal (changed.status, TMQ_STATUS_QUEUED);
    assert_int_equal (tmq_worker_next (&second, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (second->checkpoint_bytes, sizeof large - 1);
    assert_int_equal (tmq_worker_checkpoint_read (&kept, worker, second, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (kept->length, sizeof large - 1);
    assert_memory_equal (kept->bytes, large, sizeof large - 1);
    assert_int_equal (tmq_worker_checkpoint (worker, first, "late", 4, TIMING_PATIENCE_MS, NULL),
                      TMQ_STALE_LEASE);
    outcome = (tmq_outcome_t){.result = "r", .result_bytes = 1};
    assert_int_equal (tmq_worker_complete (worker, second, &outcome, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (tmq_retry (&changed, client, &id, 1, NULL, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (changed.code, TMQ_WRONG_STATUS);
    assert_non_null (strstr (changed.text, "the task is completed"));
    tmq_part_free (kept);
    tmq_assignment_free (first);
    tmq_assignment_free (second);
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* Processes that are killed. */

enum { KILLS = 8, STORED_TASKS = 400 };

/* A program that submits, and stores each id before the submit and a cursor after each event, as
 * one does who wants to survive. It is killed at random moments. */
static void program (const char *ids_path, const char *cursor_path)
{
    tmq_client_t *client = daemon_client (&broker);
    tmq_subscription_options_t options;
    tmq_subscription_t *subscription = NULL;
    tmq_event_t *event = NULL;
    char cursor[64] = "0";
    int ids = open (ids_path, O_RDWR | O_CREAT | O_APPEND, 0600);
    int cursors = open (cursor_path, O_RDWR | O_CREAT, 0600);
    ssize_t got = pread (cursors, cursor, 63, 0);
    if (got <= 0)
        strcpy (cursor, "0");
    tmq_subscription_options_init (&options);
    options.cursor = cursor;
    tmq_subscription_new (&subscription, client, &options, NULL);
    for (;;) {
        tmq_submit_t task;
        tmq_receipt_t receipt;
        tmq_submit_init (&task);
        task.queue = "stored";
        tmq_id_make (&task.id);
        if (write (ids, task.id.bytes, 16) != 16)
            _exit (1);
        tmq_submit (&receipt, client, &task, TMQ_FOREVER, NULL);
        while (tmq_subscription_next (&event, subscription, 1, NULL) == TMQ_OK) {
            char record[64] = "";
            int length = snprintf (record, sizeof record, "%s", event->cursor);
            /* The number of the event is the application's data: it is checked by the parent. */
            if (event->item == TMQ_ITEM_EVENT &&
                (pwrite (cursors, record, sizeof record, 0) != (ssize_t) sizeof record ||
                 pwrite (cursors, &event->seq, sizeof event->seq,
                         64 + (off_t) (event->seq * sizeof event->seq)) < 0))
                _exit (1);
            tmq_event_free (event);
            (void) length;
        }
    }
}

static size_t stored_ids (const char *path, tmq_id_t **out)
{
    FILE *file = fopen (path, "rb");
    assert_non_null (file);
    fseek (file, 0, SEEK_END);
    size_t count = (size_t) ftell (file) / 16;
    rewind (file);
    *out = calloc (count + 1, sizeof **out);
    assert_non_null (*out);
    assert_int_equal (fread (*out, 16, count, file), count);
    fclose (file);
    return count;
}

static void a_killed_client_goes_on (void **state)
{
    (void) state;
    char ids_path[DAEMON_PATH_MAX + 16];
    char cursor_path[DAEMON_PATH_MAX + 16];
    snprintf (ids_path, sizeof ids_path, "%s/ids", broker.home);
    snprintf (cursor_path, sizeof cursor_path, "%s/cursor", broker.home);
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork ();
        assert_true (child >= 0);
        if (child == 0) {
            program (ids_path, cursor_path);
            _exit (1);
        }
        timing_pause (100 + (uint32_t) i * 40);
        kill (child, SIGKILL);
        int status = 0;
        assert_int_equal (waitpid (child, &status, 0), child);
        assert_true (WIFSIGNALED (status));
    }
    /* Repeating every stored submit tells which of them had arrived: none twice, all the same. */
    tmq_client_t *client = daemon_client (&broker);
    tmq_id_t *ids = NULL;
    size_t count = stored_ids (ids_path, &ids);
    uint64_t before = 0;
    uint64_t after = 0;
    size_t existing = 0;
    assert_true (count > KILLS);
    assert_int_equal (tmq_count (&before, client, NULL, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    for (size_t i = 0; i < count; i++) {
        tmq_submit_t task;
        tmq_receipt_t receipt;
        tmq_submit_init (&task);
        task.queue = "stored";
        task.id = ids[i];
        assert_int_equal (tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        existing += receipt.existing ? 1 : 0;
    }
    assert_int_equal (existing, before);
    assert_true (count - existing <= KILLS); /* one at most was open at each kill */
    assert_int_equal (tmq_count (&after, client, NULL, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (after, count);
    /* Every event up to the stored cursor was seen; nothing before it was skipped. */
    FILE *file = fopen (cursor_path, "rb");
    char cursor[64] = "";
    assert_non_null (file);
    assert_int_equal (fread (cursor, 1, 64, file), 64);
    uint64_t last = strtoull (strchr (cursor, '-') + 1, NULL, 10);
    uint64_t seq = 0;
    assert_int_equal (fseek (file, 64 + (long) sizeof seq, SEEK_SET), 0);
    for (uint64_t i = 1; i <= last; i++) {
        assert_int_equal (fread (&seq, sizeof seq, 1, file), 1);
        assert_int_equal (seq, i);
    }
    fclose (file);
    free (ids);
    tmq_client_free (&client);
}

/* Nothing grows. */

enum { FLAT_ROUNDS = 20, FLAT_TASKS = 500, FLAT_BYTES = 256 * 1024 };

static size_t descriptors (void)
{
    size_t count = 0;
    DIR *directory = opendir ("/proc/self/fd");
    assert_non_null (directory);
    while (readdir (directory) != NULL)
        count++;
    closedir (directory);
    return count;
}

/* A client that submits, works, watches and waits, and is freed in the middle of it. */
static void live_once (void)
{
    tmq_client_t *client = daemon_client (&broker);
    tmq_subscription_t *subscription = NULL;
    tmq_event_t *event = NULL;
    tmq_id_t ids[FLAT_TASKS];
    assert_int_equal (tmq_subscription_new (&subscription, client, NULL, NULL), TMQ_OK);
    tmq_worker_t *worker = worker_of (client, "flat", 100);
    submit_batch (client, "flat", ids, FLAT_TASKS);
    assert_int_equal (tmq_wait_start (client, ids, FLAT_TASKS, TMQ_FOREVER, NULL, NULL), TMQ_OK);
    for (int i = 0; i < FLAT_TASKS; i++) {
        tmq_assignment_t *assignment = NULL;
        assert_int_equal (tmq_worker_next (&assignment, worker, TIMING_PATIENCE_MS, NULL), TMQ_OK);
        tmq_worker_started (worker, assignment, NULL);
        if (i % 2 == 0) /* the others are given back by the goodbye */
            tmq_worker_complete (worker, assignment, NULL, TIMING_PATIENCE_MS, NULL);
        tmq_assignment_free (assignment);
        if (tmq_worker_held (worker) > 90)
            break;
    }
    assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    tmq_event_free (event);
    tmq_client_free (&client);
}

static void memory_and_descriptors_stay_flat (void **state)
{
    (void) state;
    live_once ();
    live_once ();
    size_t descriptors_before = descriptors ();
    size_t bytes_before = mallinfo2 ().uordblks;
    for (int i = 0; i < FLAT_ROUNDS; i++)
        live_once ();
    size_t bytes_after = mallinfo2 ().uordblks;
    assert_int_equal (descriptors (), descriptors_before);
    print_message ("%zu bytes before, %zu after\n", bytes_before, bytes_after);
    assert_true (bytes_after < bytes_before + FLAT_BYTES);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

/* test_library [PATTERN]: only the tests whose names match. */
int main (int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    const struct CMUnitTest tests[] = {
        TEST (a_found_broker_tells_when_it_comes_and_goes),
        TEST (a_lone_caller_drives_its_calls),
        TEST (a_hundred_threads_share_messages),
        TEST (ten_thousand_waits_cost_ten_requests),
        TEST (the_convenient_loop_handles_all),
        TEST (an_outcome_that_cannot_be_sent_ends_its_attempt),
        TEST (a_large_result_comes_back),
        TEST (a_completion_meets_a_lost_connection),
        TEST (a_cancel_reaches_a_worker_at_work),
        TEST (a_checkpoint_outlives_worker_and_broker),
        TEST (a_killed_client_goes_on),
        TEST (memory_and_descriptors_stay_flat),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
