/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* kill -9 of a client at random moments. The client is this program, started with --client: it
 * submits tasks, follows the events and waits for the ends, and keeps what it needs to go on in two
 * files. Each new incarnation goes on from them: the same ids again for what was not acknowledged,
 * the cursor of the last event it wrote down. In the end nothing is missing and nothing is twice.
 *
 *     test_kill_client [--kills N] [--seed N]      CI: 10 kills, seed 1 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/checker.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

enum {
    TASKS = 600,
    KILLS = 10,
    LIFE_MS_MAX = 300,
    LINE_MAX_BYTES = 200,
    EVENTS_PER_TASK = 3 /* submitted, claimed, completed */
};

/* The client's process. What it writes down in one line survives its kill whole or not at all. */

typedef struct memory {
    char ids[TASKS][37];
    bool acknowledged[TASKS];
    size_t count;
    char cursor[48];
    size_t ends; /* completions among the events */
    int submits_fd;
    int events_fd;
} memory_t;

static void append (int fd, const char *kind, const char *text)
{
    char line[LINE_MAX_BYTES];
    int length = snprintf (line, sizeof line, "%s %s\n", kind, text);
    if (write (fd, line, (size_t) length) != length) {
        _exit (3);
    }
}

static void remember (memory_t *memory, const char *path_submits, const char *path_events)
{
    char kind[16];
    char text[64];
    memset (memory, 0, sizeof *memory);
    strcpy (memory->cursor, "0");
    FILE *file = fopen (path_submits, "r");
    while (file != NULL && fscanf (file, "%15s %63s", kind, text) == 2) {
        if (strcmp (kind, "wants") == 0) {
            memcpy (memory->ids[memory->count++], text, 37);
        } else {
            memory->acknowledged[memory->count - 1] = true; /* one after the other */
        }
    }
    if (file != NULL) {
        fclose (file);
    }
    file = fopen (path_events, "r");
    while (file != NULL && fscanf (file, "%15s %63s", kind, text) == 2) {
        memcpy (memory->cursor, text, sizeof memory->cursor);
        memory->ends += strcmp (kind, "completed") == 0;
    }
    if (file != NULL) {
        fclose (file);
    }
    memory->submits_fd = open (path_submits, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    memory->events_fd = open (path_events, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static int take_events (memory_t *memory, tmq_subscription_t *subscription, uint32_t timeout_ms)
{
    tmq_event_t *event = NULL;
    int code = tmq_subscription_next (&event, subscription, timeout_ms, NULL);
    for (; code == TMQ_OK; code = tmq_subscription_next (&event, subscription, 0, NULL)) {
        if (event->item == TMQ_ITEM_GAP) {
            return TMQ_GAP;
        }
        if (event->item == TMQ_ITEM_EVENT) {
            append (memory->events_fd, tmq_event_kind_text (event->kind), event->cursor);
            memory->ends += event->kind == TMQ_EVENT_COMPLETED;
        }
        tmq_event_free (event);
    }
    return code;
}

static int submit_one (memory_t *memory, tmq_client_t *client, size_t number)
{
    tmq_submit_t task;
    tmq_receipt_t receipt;
    tmq_submit_init (&task);
    if (number == memory->count) {
        tmq_id_make (&task.id);
        tmq_id_format (&task.id, memory->ids[memory->count++]);
        append (memory->submits_fd, "wants", memory->ids[number]);
    } else {
        tmq_id_parse (&task.id, memory->ids[number]);
    }
    task.queue = "work";
    task.payload = memory->ids[number];
    task.payload_bytes = 36;
    int code = tmq_submit (&receipt, client, &task, TIMING_PATIENCE_MS, NULL);
    if (code == TMQ_OK && memcmp (&receipt.id, &task.id, sizeof task.id) == 0) {
        append (memory->submits_fd, "has", memory->ids[number]);
        memory->acknowledged[number] = true;
    }
    return code;
}

static int be_client (const char *endpoint, const char *path_submits, const char *path_events)
{
    static memory_t memory;
    tmq_client_options_t options;
    tmq_subscription_options_t wanted;
    tmq_client_t *client = NULL;
    tmq_subscription_t *subscription = NULL;
    remember (&memory, path_submits, path_events);
    tmq_client_options_init (&options);
    options.endpoints = &endpoint;
    options.endpoints_count = 1;
    tmq_subscription_options_init (&wanted);
    wanted.cursor = memory.cursor;
    if (tmq_client_new (&client, &options, NULL) != TMQ_OK ||
        tmq_subscription_new (&subscription, client, &wanted, NULL) != TMQ_OK) {
        return 1;
    }
    for (size_t i = 0; i < TASKS; i++) {
        if (!memory.acknowledged[i] && submit_one (&memory, client, i) != TMQ_OK) {
            return 1;
        }
        take_events (&memory, subscription, 0);
    }
    for (size_t i = 0; i < TASKS; i++) {
        tmq_id_t id;
        tmq_status_t status = TMQ_STATUS_NONE;
        tmq_id_parse (&id, memory.ids[i]);
        if (tmq_wait (&status, client, &id, TIMING_PATIENCE_MS, NULL) != TMQ_OK ||
            status != TMQ_STATUS_COMPLETED) {
            return 2;
        }
    }
    int64_t until_ms = timing_ms () + TIMING_PATIENCE_MS;
    while (memory.ends < TASKS && timing_ms () < until_ms) {
        take_events (&memory, subscription, 100);
    }
    tmq_client_free (&client);
    return memory.ends == TASKS ? 0 : 4;
}

/* The test's process. */

static atomic_bool stop_worker;

static void *work (void *context)
{
    const daemon_t *broker = context;
    tmq_client_t *client = daemon_client (broker);
    tmq_worker_options_t options;
    tmq_worker_t *worker = NULL;
    const char *queues[] = {"work"};
    tmq_worker_options_init (&options);
    options.queues = queues;
    options.queues_count = 1;
    options.capacity = 4;
    if (tmq_worker_new (&worker, client, &options, NULL) != TMQ_OK) {
        return NULL;
    }
    while (!atomic_load (&stop_worker)) {
        tmq_assignment_t *assignment = NULL;
        if (tmq_worker_next (&assignment, worker, 100, NULL) == TMQ_OK) {
            tmq_outcome_t outcome = {.result = "x", .result_bytes = 1};
            tmq_worker_complete (worker, assignment, &outcome, TIMING_PATIENCE_MS, NULL);
            tmq_assignment_free (assignment);
        }
    }
    tmq_client_free (&client);
    return NULL;
}

static pid_t start_client (const daemon_t *broker, const char *submits, const char *events)
{
    pid_t pid = fork ();
    if (pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        execl ("/proc/self/exe", "client", "--client", broker->endpoint, submits, events,
               (char *) NULL);
        _exit (127);
    }
    assert_true (pid > 0);
    return pid;
}

static void check_events (const char *path)
{
    char kind[16];
    unsigned long long generation;
    unsigned long long seq;
    unsigned long long last = 0;
    FILE *file = fopen (path, "r");
    assert_non_null (file);
    while (fscanf (file, "%15s %llu-%llu", kind, &generation, &seq) == 3) {
        if (seq != last + 1) {
            fail_msg ("I7: event %llu was written down after %llu", seq, last);
        }
        last = seq;
    }
    fclose (file);
    assert_int_equal (last, TASKS * EVENTS_PER_TASK);
}

static unsigned kills = KILLS;
static unsigned seed = 1;

static void test_client_goes_on_where_it_was_killed (void **state)
{
    (void) state;
    daemon_t broker;
    pthread_t worker;
    char submits[DAEMON_PATH_MAX + 16];
    char events[DAEMON_PATH_MAX + 16];
    daemon_init (&broker);
    snprintf (submits, sizeof submits, "%s/submits", broker.home);
    snprintf (events, sizeof events, "%s/events", broker.home);
    daemon_start (&broker);
    assert_int_equal (pthread_create (&worker, NULL, work, &broker), 0);
    for (unsigned i = 0; i < kills; i++) {
        pid_t client = start_client (&broker, submits, events);
        timing_pause ((uint32_t) rand_r (&seed) % LIFE_MS_MAX);
        kill (client, SIGKILL);
        assert_int_equal (waitpid (client, NULL, 0), client);
    }
    int status = 0;
    pid_t client = start_client (&broker, submits, events);
    assert_int_equal (waitpid (client, &status, 0), client);
    assert_true (WIFEXITED (status));
    assert_int_equal (WEXITSTATUS (status), 0);
    atomic_store (&stop_worker, true);
    pthread_join (worker, NULL);
    check_events (events);
    daemon_stop (&broker);
    checker_databases (broker.data);
    daemon_destroy (&broker);
}

int main (int argc, char **argv)
{
    if (argc == 5 && strcmp (argv[1], "--client") == 0) {
        return be_client (argv[2], argv[3], argv[4]);
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp (argv[i], "--kills") == 0) {
            kills = (unsigned) strtoul (argv[i + 1], NULL, 10);
        } else if (strcmp (argv[i], "--seed") == 0) {
            seed = (unsigned) strtoul (argv[i + 1], NULL, 10);
        }
    }
    print_message ("seed %u\n", seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_client_goes_on_where_it_was_killed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
