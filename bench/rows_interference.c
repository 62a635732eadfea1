/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Row `interference`: how long a lone submit takes while others read the whole table. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "growth.h"

enum { READERS = 2, PAUSE_US = 1000, EXPORT_PAGE = 1000 };

typedef struct reader {
    const server_t *server;
    void (*read) (tmq_client_t *client);
    atomic_bool *over;
    pthread_t thread;
    unsigned long reads;
} reader_t;

static void read_page (tmq_client_t *client, const tmq_list_query_t *query, char *next,
                       size_t next_size)
{
    tmq_task_list_t *list;
    tmq_error_t error = {0};
    client_check (tmq_list (&list, client, query, CLIENT_DEADLINE_MS, &error), "list", &error);
    snprintf (next, next_size, "%s", list->next);
    tmq_task_list_free (list);
}

static void read_list (tmq_client_t *client)
{
    char next[TMQ_CURSOR_BYTES_MAX + 1];
    read_page (client, &(tmq_list_query_t){.limit = 50}, next, sizeof next);
}

static void read_count (tmq_client_t *client)
{
    uint64_t count;
    tmq_error_t error = {0};
    client_check (tmq_count (&count, client, NULL, CLIENT_DEADLINE_MS, &error), "count", &error);
}

/* Everything, page by page, as `taskctl export` and `list --all` do. */
static void read_export (tmq_client_t *client)
{
    char next[TMQ_CURSOR_BYTES_MAX + 1] = "";
    tmq_list_query_t query = {.limit = EXPORT_PAGE};
    do {
        query.cursor = next[0] != '\0' ? next : NULL;
        read_page (client, &query, next, sizeof next);
    } while (next[0] != '\0');
}

static void *read_on (void *argument)
{
    reader_t *self = argument;
    tmq_client_t *client = client_connect (self->server);
    while (!atomic_load (self->over)) {
        self->read (client);
        self->reads++;
    }
    tmq_client_free (&client);
    return NULL;
}

/* The 99th percentile of submits beside readers; read NULL: alone. */
static double measure (const server_t *server, tmq_client_t *client,
                       void (*read) (tmq_client_t *client), double seconds, double *reads_per_s)
{
    atomic_bool over = false;
    reader_t readers[READERS];
    for (size_t i = 0; read && i < READERS; i++) {
        readers[i] = (reader_t){.server = server, .read = read, .over = &over};
        if (pthread_create (&readers[i].thread, NULL, read_on, &readers[i]) != 0)
            die ("a thread could not be started");
    }
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    for (uint64_t end = now_ns () + (uint64_t) (seconds * 1e9); now_ns () < end;) {
        tmq_submit_t task;
        tmq_receipt_t receipt;
        tmq_error_t error = {0};
        tmq_submit_init (&task);
        task.queue = "beside";
        uint64_t sent = now_ns ();
        client_check (tmq_submit (&receipt, client, &task, CLIENT_DEADLINE_MS, &error), "submit",
                      &error);
        histogram_add (latency, now_ns () - sent);
        growth_pause_us (PAUSE_US);
    }
    atomic_store (&over, true);
    *reads_per_s = 0;
    for (size_t i = 0; read && i < READERS; i++) {
        pthread_join (readers[i].thread, NULL);
        *reads_per_s += (double) readers[i].reads / seconds;
    }
    double p99 = histogram_us (latency, 0.99);
    free (latency);
    return p99;
}

static const struct kind {
    void (*read) (tmq_client_t *client);
    const char *p99;
    const char *ratio;
    const char *reads;
} kinds[] = {
    {read_list, "p99_us_list", "ratio_list", "reads_per_s_list"},
    {read_count, "p99_us_count", "ratio_count", "reads_per_s_count"},
    {read_export, "p99_us_export", "ratio_export", "reads_per_s_export"},
};

/* Each kind of reader is compared with what was measured alone just before. */
static void run (point_t *out, server_t *server, double seconds)
{
    growth_start (server);
    flow_t fill = {.server = server,
                   .queue = "done",
                   .payload_bytes = BENCH_PAYLOAD_BYTES,
                   .complete = true,
                   .count = (size_t) out->size};
    flow_run (&fill);
    growth_settle (server);
    tmq_client_t *client = client_connect (server);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double reads;
        double alone = measure (server, client, NULL, seconds, &reads);
        double beside = measure (server, client, kinds[i].read, seconds, &reads);
        if (i == 0)
            point_set (out, "p99_us", alone);
        point_set (out, kinds[i].p99, beside);
        point_set (out, kinds[i].ratio, beside / alone);
        point_set (out, kinds[i].reads, reads);
    }
    tmq_client_free (&client);
}

const growth_row_t interference_row = {
    .name = "interference",
    .says = "submits every millisecond beside two clients that read without a pause",
    .sizes = "finished tasks",
    .size_min = 1,
    .full = {1e5},
    .quick = {1e4},
    .run = run,
};
