/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows `features`, `values` and `schedules`: what those pay who use more than plain tasks. Lives
 * with fair keys, in chains and in fans stand beside plain ones of the same run and broker. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"

enum {
    PUTTERS = 64,
    FAN = 1000,
    KEYS = 1000,
    SPACE_SCHEDULES = 5000, /* half of what a namespace may have */
    VALUE_BYTES = 100,
    GETS = 2000,
    WARM_TASKS = 5000,
    MEMORY_MIN = 10000,
    FILE_MIN = 100000 /* then the tasks that warmed the broker do not count */
};

/* Lives. */

static double lives_per_s (const server_t *server, flow_shape_t shape, size_t group, double size)
{
    flow_t flow = {.server = server,
                   .queue = flow_shape_name (shape),
                   .complete = true,
                   .count = (size_t) size,
                   .shape = shape,
                   .group = group};
    double rate = flow_run (&flow);
    growth_settle (server);
    return rate;
}

static void run_features (point_t *out, server_t *server, double seconds)
{
    (void) seconds; /* so many tasks, however long they take */
    growth_start (server);
    lives_per_s (server, FLOW_PLAIN, 0, out->size); /* warm */
    double plain = lives_per_s (server, FLOW_PLAIN, 0, out->size);
    double fair = lives_per_s (server, FLOW_FAIR, KEYS, out->size);
    double fan = lives_per_s (server, FLOW_FAN, FAN, out->size);
    double chain = lives_per_s (server, FLOW_CHAIN, 0, out->size / 10);
    point_set (out, "plain_per_s", plain);
    point_set (out, "fair_per_s", fair);
    point_set (out, "fan_per_s", fan);
    point_set (out, "chain_per_s", chain);
    point_set (out, "fair_of_plain", fair / plain);
    point_set (out, "fan_of_plain", fan / plain);
}

const growth_row_t features_row = {
    .name = "features",
    .says = "lives: plain, with 1,000 fair keys, in fans of 1,000, in one chain of a tenth",
    .sizes = "tasks",
    .size_min = 10,
    .full = {1e4, 1e5},
    .quick = {1e4},
    .run = run_features,
};

/* What is put by many callers at once, each with one request outstanding. */

typedef struct putting {
    tmq_client_t *client;
    atomic_size_t next;
    size_t from;
    size_t end;
    void (*put) (tmq_client_t *client, size_t number);
} putting_t;

static void *put_some (void *argument)
{
    putting_t *self = argument;
    for (size_t at = atomic_fetch_add (&self->next, 1); at < self->end;
         at = atomic_fetch_add (&self->next, 1))
        self->put (self->client, at);
    return NULL;
}

/* Returns how many seconds it took. */
static double put_all (tmq_client_t *client, size_t from, size_t end,
                       void (*put) (tmq_client_t *client, size_t number))
{
    pthread_t threads[PUTTERS];
    putting_t putting = {.client = client, .next = from, .from = from, .end = end, .put = put};
    uint64_t begin = now_ns ();
    for (size_t i = 0; i < PUTTERS; i++) {
        if (pthread_create (&threads[i], NULL, put_some, &putting) != 0)
            die ("a thread could not be started");
    }
    for (size_t i = 0; i < PUTTERS; i++)
        pthread_join (threads[i], NULL);
    return (double) (now_ns () - begin) / 1e9;
}

static void set_memory (point_t *out, const server_t *server, double empty)
{
    double bytes = ((double) server_rss_bytes (server) - empty) / out->size;
    point_set (out, "bytes_each", out->size >= MEMORY_MIN ? bytes : NAN);
}

/* What a busy broker holds for itself is not theirs. */
static double warm_bytes (const server_t *server)
{
    flow_t warm = {.server = server, .queue = "warm", .complete = true, .count = WARM_TASKS};
    flow_run (&warm);
    growth_settle (server);
    return (double) server_rss_bytes (server);
}

/* A clean stop leaves everything in the tables' file and nothing in its log. */
static void measure_restart_and_lives (point_t *out, server_t *server, double seconds)
{
    figures_t figures;
    server_stop (server);
    double file = (double) growth_file_bytes (server, "taskmq.db");
    point_set (out, "database_bytes_each", out->size >= FILE_MIN ? file / out->size : NAN);
    point_set (out, "restart_ms", growth_start (server));
    growth_ordinary (&figures, "life_pipelined", server, seconds);
    point_set (out, "life_per_s", figures.rate_per_s);
}

/* Values. */

static void key_of (char out[32], size_t number)
{
    snprintf (out, 32, "key/%07zu", number);
}

static void put_value (tmq_client_t *client, size_t number)
{
    char key[32];
    char bytes[VALUE_BYTES];
    tmq_error_t error = {0};
    key_of (key, number);
    memset (bytes, 'v', sizeof bytes);
    client_check (tmq_value_put (NULL, client, NULL, key, bytes, sizeof bytes, TMQ_ANY_VERSION,
                                 CLIENT_DEADLINE_MS, &error),
                  "value put", &error);
}

static void measure_gets (point_t *out, tmq_client_t *client)
{
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    size_t count = (size_t) out->size;
    for (size_t i = 0; i < GETS; i++) {
        char key[32];
        tmq_value_t *value;
        tmq_error_t error = {0};
        key_of (key, i * (count / 3 + 1) % count);
        uint64_t sent = now_ns ();
        client_check (tmq_value_get (&value, client, NULL, key, CLIENT_DEADLINE_MS, &error),
                      "value get", &error);
        histogram_add (latency, now_ns () - sent);
        tmq_value_free (value);
    }
    point_set (out, "get_p50_us", histogram_us (latency, 0.5));
    point_set (out, "get_p99_us", histogram_us (latency, 0.99));
    free (latency);
}

static void run_values (point_t *out, server_t *server, double seconds)
{
    growth_start (server);
    double empty = warm_bytes (server);
    tmq_client_t *client = client_connect (server);
    point_set (out, "put_per_s", out->size / put_all (client, 0, (size_t) out->size, put_value));
    growth_settle (server);
    set_memory (out, server, empty);
    measure_gets (out, client);
    tmq_client_free (&client);
    measure_restart_and_lives (out, server, seconds);
}

const growth_row_t values_row = {
    .name = "values",
    .says = "so many values of 100 bytes, put by 64 at once, and read; lives beside them, restart",
    .sizes = "values",
    .size_min = 1,
    .full = {1e4, 1e5, 1e6},
    .quick = {1e4},
    .run = run_values,
};

/* Schedules. */

static void put_schedule (tmq_client_t *client, size_t number)
{
    char name[32];
    tmq_submit_t task;
    tmq_schedule_spec_t spec;
    tmq_schedule_report_t *report;
    tmq_error_t error = {0};
    snprintf (name, sizeof name, "every-%zu", number);
    tmq_submit_init (&task);
    task.queue = "timed";
    tmq_schedule_spec_init (&spec);
    spec.name = name;
    spec.calendar = "@every 1h";
    spec.task = &task;
    client_check (tmq_schedule_put (&report, client, &spec, CLIENT_DEADLINE_MS, &error),
                  "schedule put", &error);
    tmq_schedule_report_free (report);
}

/* In as many namespaces as it takes. */
static void run_schedules (point_t *out, server_t *server, double seconds)
{
    size_t count = (size_t) out->size;
    growth_start (server);
    double empty = warm_bytes (server);
    double took = 0;
    for (size_t from = 0; from < count; from += SPACE_SCHEDULES) {
        char ns[32];
        size_t end = from + SPACE_SCHEDULES < count ? from + SPACE_SCHEDULES : count;
        snprintf (ns, sizeof ns, "space-%zu", from / SPACE_SCHEDULES);
        tmq_client_t *client = client_connect_to (server, ns);
        took += put_all (client, from, end, put_schedule);
        tmq_client_free (&client);
    }
    point_set (out, "put_per_s", out->size / took);
    growth_settle (server);
    set_memory (out, server, empty);
    measure_restart_and_lives (out, server, seconds);
}

const growth_row_t schedules_row = {
    .name = "schedules",
    .says = "so many schedules that come each hour: to put them, lives beside them, restart",
    .sizes = "schedules",
    .size_min = 1,
    .full = {1e3, 1e4, 1e5},
    .quick = {1e3},
    .run = run_schedules,
};
