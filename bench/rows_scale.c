/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows `scale_live` and `scale_terminal`: what unfinished and finished tasks cost in speed, memory
 * and file, and how long a restart with them takes. */
#include <math.h>
#include <stdlib.h>

#include "growth.h"

enum { IDS_MAX = 2000, MEMORY_TASKS_MIN = 50000, PAGE = 50 };

static void measure_lives (point_t *out, const server_t *server, double seconds)
{
    figures_t figures;
    growth_ordinary (&figures, "life_pipelined", server, seconds);
    point_set_figures (
        out, (const char *[5]){"rate_per_s", NULL, NULL, "server_cpu_us", "rss_bytes"}, &figures);
    growth_ordinary (&figures, "to_worker", server, seconds);
    point_set_figures (out, (const char *[5]){NULL, "p50_us", "p99_us", NULL, NULL}, &figures);
    growth_ordinary (&figures, "submit_sync", server, seconds);
    point_set_figures (
        out, (const char *[5]){"submit_per_s", "submit_p50_us", "submit_p99_us", NULL, NULL},
        &figures);
}

static void measure_restart (point_t *out, server_t *server)
{
    uint64_t begin = now_ns ();
    server_stop (server);
    point_set (out, "stop_ms", (double) (now_ns () - begin) / 1e6);
    point_set (out, "restart_ms", growth_start (server));
}

/* Live tasks. */

/* Without payloads: those that are kept in memory have a limit of their own. */
static void run_live (point_t *out, server_t *server, double seconds)
{
    size_t count = (size_t) out->size;
    growth_start (server);
    /* What a busy broker holds for itself (batches, buffers, rings) is not the tasks' memory. */
    flow_t warm = {.server = server, .queue = "warm", .complete = true, .seconds = seconds};
    flow_run (&warm);
    growth_settle (server);
    double empty = (double) server_rss_bytes (server);
    flow_t fill = {.server = server, .queue = "deep", .count = count};
    point_set (out, "fill_per_s", flow_run (&fill));
    growth_settle (server);
    bool many = count >= MEMORY_TASKS_MIN;
    double bytes = ((double) server_rss_bytes (server) - empty) / (double) count;
    point_set (out, "bytes_each", many ? bytes : NAN);
    measure_lives (out, server, seconds);
    flow_t claim = {.server = server, .queue = "deep", .complete = true, .seconds = seconds};
    point_set (out, "deep_queue_per_s", flow_run (&claim));
    growth_settle (server);
    measure_restart (out, server);
}

const growth_row_t scale_live_row = {
    .name = "scale_live",
    .says = "with so many queued tasks: lives beside them, claims from among them, restart",
    .sizes = "queued tasks",
    .size_min = 1,
    .full = {1e3, 1e5, 1e6},
    .quick = {1e3, 1e5},
    .run = run_live,
};

/* Terminal tasks. */

static void measure_get (point_t *out, tmq_client_t *client, const flow_t *filled, double seconds)
{
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    uint64_t begin = now_ns ();
    uint64_t end = begin + (uint64_t) (seconds * 1e9);
    size_t step = filled->ids_count / 3 + 1; /* neighbours are read one after the other seldom */
    for (size_t at = 0; now_ns () < end; at = (at + step) % filled->ids_count) {
        tmq_task_t *task;
        tmq_error_t error = {0};
        uint64_t sent = now_ns ();
        client_check (tmq_get (&task, client, &filled->ids[at], CLIENT_DEADLINE_MS, &error), "get",
                      &error);
        histogram_add (latency, now_ns () - sent);
        if (!tmq_status_terminal (task->status))
            die ("taskmq: a task that had ended is %s", tmq_status_text (task->status));
        tmq_task_free (task);
    }
    point_set (out, "get_p50_us", histogram_us (latency, 0.5));
    point_set (out, "get_p99_us", histogram_us (latency, 0.99));
    free (latency);
}

static void measure_list (point_t *out, tmq_client_t *client, const char *name,
                          const tmq_filter_t *filter, double seconds)
{
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    uint64_t end = now_ns () + (uint64_t) (seconds * 1e9);
    const tmq_list_query_t query = {.filter = *filter, .limit = PAGE};
    while (now_ns () < end) {
        tmq_task_list_t *list;
        tmq_error_t error = {0};
        uint64_t sent = now_ns ();
        client_check (tmq_list (&list, client, &query, CLIENT_DEADLINE_MS, &error), "list", &error);
        histogram_add (latency, now_ns () - sent);
        if (list->count != PAGE)
            die ("taskmq: a page of %zu tasks", list->count);
        tmq_task_list_free (list);
    }
    point_set (out, name, histogram_us (latency, 0.5));
    free (latency);
}

static void measure_reads (point_t *out, const server_t *server, const flow_t *filled,
                           double seconds)
{
    static const char *const queue = "done";
    static const tmq_status_t status = TMQ_STATUS_COMPLETED;
    tmq_client_t *client = client_connect (server);
    measure_get (out, client, filled, seconds);
    measure_list (out, client, "list_us", &(tmq_filter_t){0}, seconds / 3);
    measure_list (out, client, "list_queue_us",
                  &(tmq_filter_t){.queues = &queue, .queues_count = 1}, seconds / 3);
    measure_list (out, client, "list_status_us",
                  &(tmq_filter_t){.statuses = &status, .statuses_count = 1}, seconds / 3);
    uint64_t count;
    tmq_error_t error = {0};
    uint64_t begin = now_ns ();
    client_check (tmq_count (&count, client, NULL, CLIENT_DEADLINE_MS, &error), "count", &error);
    point_set (out, "count_ms", (double) (now_ns () - begin) / 1e6);
    tmq_client_free (&client);
}

static void run_terminal (point_t *out, server_t *server, double seconds)
{
    size_t count = (size_t) out->size;
    growth_start (server);
    tmq_id_t *ids = need_memory (calloc (IDS_MAX, sizeof *ids));
    flow_t fill = {.server = server,
                   .queue = "done",
                   .payload_bytes = BENCH_PAYLOAD_BYTES,
                   .complete = true,
                   .count = count,
                   .ids = ids,
                   .ids_max = IDS_MAX};
    point_set (out, "fill_per_s", flow_run (&fill));
    growth_settle (server);
    measure_reads (out, server, &fill, seconds);
    measure_lives (out, server, seconds);
    point_set (out, "wal_bytes",
               (double) (growth_file_bytes (server, "taskmq.db-wal") +
                         growth_file_bytes (server, "journal.log")));
    growth_settle (server);
    measure_restart (out, server);
    /* A clean stop leaves everything in the tables' file and nothing in its log. */
    tmq_client_t *client = client_connect (server);
    point_set (out, "database_bytes_each",
               (double) growth_file_bytes (server, "taskmq.db") /
                   (double) growth_counter (client, "stored_tasks"));
    tmq_client_free (&client);
    free (ids);
}

const growth_row_t scale_terminal_row = {
    .name = "scale_terminal",
    .says = "with so many finished tasks of 200 bytes: lives beside them, reads, file, restart",
    .sizes = "finished tasks",
    .size_min = PAGE, /* a page is full */
    .full = {1e4, 1e5, 1e6},
    .quick = {1e4, 1e5},
    .run = run_terminal,
};
