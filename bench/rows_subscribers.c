/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows `subscribers` and `stalled`: many who see everything that happens, and what those cost the
 * others who do not read. 1,000 events a second come from submits at an even pace. */
#include <math.h>
#include <stdlib.h>

#include "crowd.h"
#include "growth.h"

enum {
    EVENTS_PER_S = 1000,
    HEALTHY = 10,
    STALLED_MANY = 1000,
    CATCH_UP_SECONDS_MAX = 30,
    POLL = 256,
    LONG_SECONDS = 6 /* in which 1,000 events a second are more than window and pipe can hold */
};

/* An even pace of submits, each one event. */
typedef struct pace {
    const server_t *server;
    size_t count;
    atomic_ullong *sent_ns; /* when each submit began */
    histogram_t latency;    /* of their acknowledgements */
} pace_t;

static void take_answers (pace_t *self, tmq_client_t *client, uint32_t timeout_ms, size_t *open)
{
    tmq_completion_t *done[POLL];
    size_t count = 0;
    int code = tmq_client_poll (done, POLL, &count, client, timeout_ms);
    if (code != TMQ_OK && code != TMQ_TIMEOUT)
        die ("taskmq: poll: %s", tmq_code_name (code));
    for (size_t i = 0; i < count; i++) {
        const atomic_ullong *sent = done[i]->user;
        if (done[i]->code != TMQ_OK)
            die ("taskmq: submit: %s", tmq_code_name (done[i]->code));
        histogram_add (&self->latency, now_ns () - atomic_load (sent));
        tmq_completion_free (done[i]);
    }
    *open -= count;
}

/* Returns the seconds that it took. */
static double pace_run (pace_t *self, tmq_client_t *client)
{
    uint64_t begin = now_ns ();
    size_t open = 0;
    tmq_submit_t task;
    tmq_error_t error = {0};
    tmq_submit_init (&task);
    task.queue = "events";
    task.payload = "event";
    task.payload_bytes = 5;
    for (size_t i = 0; i < self->count; i++) {
        uint64_t due = begin + i * (UINT64_C (1000000000) / EVENTS_PER_S);
        while (now_ns () < due)
            take_answers (self, client, 1, &open);
        atomic_store (&self->sent_ns[i], now_ns ());
        client_check (
            tmq_submit_start (client, &task, CLIENT_DEADLINE_MS, &self->sent_ns[i], &error),
            "submit", &error);
        open++;
    }
    while (open > 0)
        take_answers (self, client, 100, &open);
    return (double) (now_ns () - begin) / 1e9;
}

static uint64_t newest_event (const server_t *server)
{
    tmq_broker_info_t info;
    tmq_client_t *client = client_connect (server);
    if (tmq_client_info (&info, client) != TMQ_OK)
        die ("taskmq: no welcome");
    tmq_client_free (&client);
    return info.seq;
}

/* Events at the pace to `healthy` subscribers who read, beside `stalled` ones. */
static void measure (point_t *out, server_t *server, size_t healthy, size_t stalled, double seconds)
{
    growth_start (server);
    tmq_client_t *client = client_connect (server);
    pace_t *pace = need_memory (calloc (1, sizeof *pace));
    *pace = (pace_t){.server = server, .count = (size_t) (seconds * EVENTS_PER_S)};
    pace->sent_ns = need_memory (calloc (pace->count, sizeof *pace->sent_ns));
    crowd_t *frozen = NULL;
    double empty = (double) server_rss_bytes (server);
    if (stalled > 0)
        frozen = crowd_start (
            server, &(crowd_options_t){.count = stalled, .subscribes = true, .stalls = true});
    uint64_t first = newest_event (server) + 1;
    crowd_t *crowd = crowd_start (server, &(crowd_options_t){.count = healthy,
                                                             .subscribes = true,
                                                             .sent_ns = pace->sent_ns,
                                                             .sent_count = pace->count,
                                                             .sent_first = first});
    uint64_t cpu = server_cpu_us (server);
    double elapsed = pace_run (pace, client);
    crowd_expect (crowd, first + pace->count - 1, CATCH_UP_SECONDS_MAX);
    cpu = server_cpu_us (server) - cpu;
    double full = (double) server_rss_bytes (server);
    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    crowd_latency (crowd, latency);
    double events = (double) crowd_events (crowd);
    point_set (out, "rate_per_s", events / elapsed);
    point_set (out, "p50_us", histogram_us (latency, 0.5));
    point_set (out, "p99_us", histogram_us (latency, 0.99));
    point_set (out, "server_cpu_us", (double) cpu / events);
    point_set (out, "rss_bytes", full);
    point_set (out, "events_per_s", (double) pace->count / elapsed);
    point_set (out, "events_per_message", events / (double) crowd_messages (crowd));
    point_set (out, "submit_p50_us", histogram_us (&pace->latency, 0.5));
    point_set (out, "submit_p99_us", histogram_us (&pace->latency, 0.99));
    point_set (out, "server_cpu_percent", (double) cpu / (elapsed * 1e4));
    if (out->row == &stalled_row) /* of few it would be the noise of all other memory */
        point_set (out, "bytes_each_stalled",
                   stalled >= STALLED_MANY ? (full - empty) / (double) stalled : NAN);
    crowd_stop (&crowd);
    if (frozen)
        crowd_stop (&frozen);
    tmq_client_free (&client);
    free (latency);
    free (pace->sent_ns);
    free (pace);
}

static void run_subscribers (point_t *out, server_t *server, double seconds)
{
    measure (out, server, (size_t) out->size, 0, seconds);
}

const growth_row_t subscribers_row = {
    .name = "subscribers",
    .says = "so many subscribers of 1,000 events a second, each sees every one of them",
    .sizes = "subscribers",
    .size_min = 1,
    .full = {1, 10, 100, 1000},
    .quick = {1, 100},
    .run = run_subscribers,
};

static void run_stalled (point_t *out, server_t *server, double seconds)
{
    measure (out, server, HEALTHY, (size_t) out->size,
             seconds < LONG_SECONDS ? LONG_SECONDS : seconds);
}

const growth_row_t stalled_row = {
    .name = "stalled",
    .says = "10 subscribers of 1,000 events a second beside so many that do not read",
    .sizes = "stalled subscribers",
    .size_min = 0,
    .full = {0, 100, 1000},
    .quick = {0, 100},
    .run = run_stalled,
};
