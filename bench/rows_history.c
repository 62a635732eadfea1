/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Row `history`: first pages of lists and searches over a history with texts, labels, sessions and
 * turns, while submissions go on. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"

enum {
    WORDS = 1000, /* of the vocabulary, each as often as the others */
    WORDS_EACH = 25,
    TEXT_SIZE = WORDS_EACH * 12,
    SESSIONS = 1000,
    KINDS = 100,
    PREFETCH = 500,
    WINDOW = 2000,
    ROUNDS = 60, /* of each kind of page */
    PAGE = 50,
    PAUSE_US = 5000, /* between two submissions beside the reads */
    INDEX_SECONDS_MAX = 600
};

static const char *const queue = "history";

/* Texts that differ: "common word17 word523 ...". */
static void make_text (char out[TEXT_SIZE], size_t number)
{
    uint64_t state = number * UINT64_C (6364136223846793005) + 1442695040888963407;
    size_t used = (size_t) snprintf (out, TEXT_SIZE, "common");
    for (size_t i = 1; i < WORDS_EACH; i++) {
        state = state * UINT64_C (6364136223846793005) + 1442695040888963407;
        used += (size_t) snprintf (out + used, TEXT_SIZE - used, " word%u",
                                   (unsigned) (state >> 33) % WORDS);
    }
}

static void submit_one (tmq_client_t *client, size_t number)
{
    char text[TEXT_SIZE];
    char session[32];
    char kind[32];
    tmq_label_t label = {"kind", kind};
    tmq_submit_t task;
    tmq_error_t error = {0};
    make_text (text, number);
    snprintf (session, sizeof session, "session-%zu", number % SESSIONS);
    snprintf (kind, sizeof kind, "k%zu", number % KINDS);
    tmq_submit_init (&task);
    task.queue = queue;
    task.session = session;
    task.labels = &label;
    task.labels_count = 1;
    task.payload = text;
    task.payload_bytes = strlen (text);
    client_check (tmq_submit_start (client, &task, CLIENT_DEADLINE_MS, NULL, &error), "submit",
                  &error);
}

static void submit_all (const server_t *server, size_t count)
{
    tmq_client_t *client = client_connect (server);
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        submit_one (client, i);
        if (++open >= WINDOW)
            open -= client_reap (client, CLIENT_DEADLINE_MS, "submit");
    }
    while (open > 0)
        open -= client_reap (client, CLIENT_DEADLINE_MS, "submit");
    tmq_client_free (&client);
}

static void settle (tmq_client_t *client, size_t open, const char *what)
{
    while (open > 0)
        open -= client_reap (client, CLIENT_DEADLINE_MS, what);
}

/* Each of them gets one turn and a result; a turn may have to wait for the disk, and is told before
 * its task ends. */
static void end_some (tmq_client_t *client, tmq_worker_t *worker, tmq_assignment_t **taken,
                      size_t count)
{
    tmq_error_t error = {0};
    char text[TEXT_SIZE];
    const tmq_outcome_t outcome = {.result = "done", .result_bytes = 4};
    static size_t number;
    for (size_t i = 0; i < count; i++) {
        tmq_turn_t turn;
        make_text (text, SIZE_MAX - number++);
        tmq_turn_init (&turn);
        turn.agent = "planner";
        turn.content = text;
        client_check (
            tmq_worker_turn_start (worker, taken[i], &turn, CLIENT_DEADLINE_MS, NULL, &error),
            "turn", &error);
    }
    settle (client, count, "turn");
    for (size_t i = 0; i < count; i++) {
        client_check (tmq_worker_complete_start (worker, taken[i], &outcome, CLIENT_DEADLINE_MS,
                                                 NULL, &error),
                      "complete", &error);
        tmq_assignment_free (taken[i]);
    }
    settle (client, count, "complete");
}

static void end_all (const server_t *server, size_t count)
{
    tmq_client_t *client = client_connect (server);
    tmq_worker_t *worker;
    tmq_worker_options_t options;
    tmq_error_t error = {0};
    tmq_worker_options_init (&options);
    options.queues = &queue;
    options.queues_count = 1;
    options.capacity = PREFETCH;
    client_check (tmq_worker_new (&worker, client, &options, &error), "worker", &error);
    for (size_t ended = 0; ended < count;) {
        tmq_assignment_t *taken[PREFETCH];
        size_t held = 0;
        while (held < PREFETCH && ended + held < count &&
               tmq_worker_next (&taken[held], worker, held == 0 ? 1000 : 1, &error) == TMQ_OK)
            held++;
        end_some (client, worker, taken, held);
        ended += held;
    }
    tmq_worker_free (&worker);
    tmq_client_free (&client);
}

/* Submissions beside the reads. */

typedef struct stream {
    const server_t *server;
    atomic_bool over;
} stream_t;

static void *submit_on (void *argument)
{
    stream_t *self = argument;
    tmq_client_t *client = client_connect (self->server);
    for (size_t i = 0; !atomic_load (&self->over); i++) {
        size_t open = 1;
        submit_one (client, i);
        while (open > 0)
            open -= client_reap (client, CLIENT_DEADLINE_MS, "submit");
        growth_pause_us (PAUSE_US);
    }
    tmq_client_free (&client);
    return NULL;
}

/* Pages. */

static void measure_list (point_t *out, tmq_client_t *client, const char *name,
                          const tmq_filter_t *filter)
{
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    const tmq_list_query_t query = {.filter = *filter, .limit = PAGE};
    for (size_t i = 0; i < ROUNDS; i++) {
        tmq_task_list_t *list;
        tmq_error_t error = {0};
        uint64_t sent = now_ns ();
        client_check (tmq_list (&list, client, &query, CLIENT_DEADLINE_MS, &error), "list", &error);
        histogram_add (latency, now_ns () - sent);
        tmq_task_list_free (list);
    }
    point_set (out, name, histogram_us (latency, 0.5) / 1e3);
    free (latency);
}

static void measure_search (point_t *out, tmq_client_t *client, const char *name, const char *text,
                            const tmq_filter_t *filter, bool ranked)
{
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    tmq_search_t search;
    tmq_search_init (&search);
    search.text = text;
    search.filter = *filter;
    search.limit = PAGE;
    search.ranked = ranked;
    for (size_t i = 0; i < ROUNDS; i++) {
        tmq_found_list_t *list;
        tmq_error_t error = {0};
        uint64_t sent = now_ns ();
        client_check (tmq_search (&list, client, &search, CLIENT_DEADLINE_MS, &error), "search",
                      &error);
        histogram_add (latency, now_ns () - sent);
        if (list->tasks->count == 0)
            die ("taskmq: %s finds nothing", text);
        tmq_found_list_free (list);
    }
    point_set (out, name, histogram_us (latency, 0.5) / 1e3);
    free (latency);
}

static void measure_pages (point_t *out, tmq_client_t *client)
{
    static const char *const session = "session-7";
    static const tmq_label_t label = {"kind", "k7"};
    static const tmq_status_t status = TMQ_STATUS_COMPLETED;
    const tmq_filter_t all = {0};
    const tmq_filter_t labelled = {.labels = &label, .labels_count = 1};
    const tmq_filter_t of_session = {.sessions = &session, .sessions_count = 1};
    measure_list (out, client, "list_ms", &all);
    measure_list (out, client, "queue_ms", &(tmq_filter_t){.queues = &queue, .queues_count = 1});
    measure_list (out, client, "status_ms",
                  &(tmq_filter_t){.statuses = &status, .statuses_count = 1});
    measure_list (out, client, "session_ms", &of_session);
    measure_list (out, client, "label_ms", &labelled);
    measure_list (out, client, "since_ms", &(tmq_filter_t){.created_since = 1});
    measure_search (out, client, "word_ms", "word17", &all, false);
    measure_search (out, client, "common_ms", "common", &all, false);
    measure_search (out, client, "phrase_ms", "\"common word17\"", &all, false);
    measure_search (out, client, "prefix_ms", "word17*", &all, false);
    measure_search (out, client, "wide_prefix_ms", "word*", &all, false);
    measure_search (out, client, "not_ms", "word17 NOT word523", &all, false);
    measure_search (out, client, "word_label_ms", "word17", &labelled, false);
    measure_search (out, client, "common_session_ms", "common", &of_session, false);
    measure_search (out, client, "ranked_ms", "word17", &all, true);
}

/* Waits until the index has it all; how long that took. */
static double index_seconds (tmq_client_t *client)
{
    uint64_t begin = now_ns ();
    bool whole = false;
    tmq_search_t search;
    tmq_search_init (&search);
    search.text = "common";
    search.limit = 1;
    while (!whole) {
        tmq_found_list_t *list;
        tmq_error_t error = {0};
        client_check (tmq_search (&list, client, &search, CLIENT_DEADLINE_MS, &error), "search",
                      &error);
        whole = !list->behind && !list->building;
        tmq_found_list_free (list);
        if (now_ns () - begin > INDEX_SECONDS_MAX * UINT64_C (1000000000))
            die ("taskmq: the index lags for %d s", INDEX_SECONDS_MAX);
    }
    return (double) (now_ns () - begin) / 1e9;
}

static void run_history (point_t *out, server_t *server, double seconds)
{
    size_t count = (size_t) out->size;
    stream_t stream = {.server = server};
    pthread_t thread;
    (void) seconds; /* so many pages of each kind */
    growth_start (server);
    submit_all (server, count);
    end_all (server, count);
    growth_settle (server);
    tmq_client_t *client = client_connect (server);
    point_set (out, "index_s", index_seconds (client));
    point_set (out, "index_bytes_each",
               (double) growth_file_bytes (server, "search.db") / (double) count);
    if (pthread_create (&thread, NULL, submit_on, &stream) != 0)
        die ("a thread could not be started");
    measure_pages (out, client);
    atomic_store (&stream.over, true);
    pthread_join (thread, NULL);
    tmq_client_free (&client);
}

const growth_row_t history_row = {
    .name = "history",
    .says = "first pages over a history with texts, labels and turns, while submissions go on",
    .sizes = "tasks",
    .size_min = 1e4, /* with fewer some words find nothing */
    .full = {1e4, 1e5, 1e6},
    .quick = {1e4},
    .run = run_history,
};
