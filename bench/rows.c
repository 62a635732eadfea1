/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The rows: what is measured, with which clients, over which window of time.
 *
 * Each row starts its client threads, lets them warm up, then counts between two moments. CPU time
 * of the server is taken at the same two moments. */

#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CLIENTS_MAX = 64,
    WARM_UP_PERCENT = 20,  /* of the row's time, before counting begins, … */
    FILL_SECONDS_MAX = 30, /* … and at most so much more until the backlog is what it will be */
    IDLE_PAUSE_US = 1000,  /* between two operations of an idle row */
    BACKLOG_PAUSE_US = 500
};

typedef struct load {
    const driver_t *driver;
    const server_t *server;
    char queue[64];
    atomic_bool stop;   /* producers end */
    atomic_bool finish; /* workers end when nothing is left */
    atomic_bool counting;
    atomic_bool full;       /* a producer had to wait for the workers */
    atomic_ulong submitted; /* acknowledged */
    atomic_ulong ended;     /* completions acknowledged */
    atomic_ulong begun;     /* given to the system */
} load_t;

typedef struct client {
    load_t *load;
    pthread_t thread;
    histogram_t latency;
    size_t prefetch;
    unsigned long backlog_max; /* lives outstanding of all producers; 0: no limit */
} client_t;

static void pause_us (long us)
{
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep (&pause, NULL);
}

static bool counting (const load_t *load)
{
    return atomic_load_explicit (&load->counting, memory_order_relaxed);
}

static bool stopping (const load_t *load)
{
    return atomic_load_explicit (&load->stop, memory_order_relaxed);
}

static void payload_make (payload_t *out, load_t *load)
{
    memset (out, 'x', sizeof *out);
    out->wants_result = 0;
    out->lives = atomic_fetch_add_explicit (&load->begun, 1, memory_order_relaxed);
    out->sent_ns = now_ns ();
}

/* Clients. */

static unsigned long backlog (load_t *load)
{
    return atomic_load (&load->begun) - atomic_load (&load->ended);
}

/* A producer that outruns the workers would measure submits, so it waits until a quarter of the
 * backlog has ended: going on with every single one would measure how fast a producer wakes up, and
 * make every message a small one. */
static void backlog_settle (const client_t *self)
{
    load_t *load = self->load;
    if (self->backlog_max == 0 || backlog (load) < self->backlog_max)
        return;
    atomic_store_explicit (&load->full, true, memory_order_relaxed);
    while (!stopping (load) && backlog (load) > self->backlog_max * 3 / 4)
        pause_us (BACKLOG_PAUSE_US);
}

static void *producer_sync (void *argument)
{
    client_t *self = argument;
    load_t *load = self->load;
    void *producer = load->driver->producer_new (load->server, load->queue);
    payload_t payload;
    while (!stopping (load)) {
        backlog_settle (self);
        payload_make (&payload, load);
        load->driver->submit (producer, &payload);
        if (counting (load))
            histogram_add (&self->latency, now_ns () - payload.sent_ns);
        atomic_fetch_add (&load->submitted, 1);
    }
    load->driver->producer_free (producer);
    return NULL;
}

static void *producer_pipelined (void *argument)
{
    client_t *self = argument;
    load_t *load = self->load;
    void *producer = load->driver->producer_new (load->server, load->queue);
    payload_t payload;
    size_t open = 0;
    while (!stopping (load)) {
        backlog_settle (self);
        payload_make (&payload, load);
        load->driver->submit_start (producer, &payload);
        open++;
        /* Settled by halves, so that neither side runs dry. */
        if (open >= BENCH_WINDOW) {
            size_t left = load->driver->submit_settle (producer, BENCH_WINDOW / 2);
            atomic_fetch_add (&load->submitted, open - left);
            open = left;
        }
    }
    load->driver->submit_settle (producer, 0);
    load->driver->producer_free (producer);
    return NULL;
}

static void *producer_call (void *argument)
{
    client_t *self = argument;
    load_t *load = self->load;
    void *producer = load->driver->producer_new (load->server, load->queue);
    payload_t payload;
    while (!stopping (load)) {
        payload_make (&payload, load);
        payload.wants_result = 1;
        load->driver->call (producer, &payload);
        if (counting (load))
            histogram_add (&self->latency, now_ns () - payload.sent_ns);
        atomic_fetch_add (&load->submitted, 1);
        pause_us (IDLE_PAUSE_US);
    }
    load->driver->producer_free (producer);
    return NULL;
}

static void *producer_idle (void *argument)
{
    client_t *self = argument;
    load_t *load = self->load;
    void *producer = load->driver->producer_new (load->server, load->queue);
    payload_t payload;
    while (!stopping (load)) {
        unsigned long ended = atomic_load (&load->ended);
        payload_make (&payload, load);
        load->driver->submit (producer, &payload);
        while (!stopping (load) && atomic_load (&load->ended) == ended)
            pause_us (IDLE_PAUSE_US / 10);
        pause_us (IDLE_PAUSE_US);
    }
    load->driver->producer_free (producer);
    return NULL;
}

/* Takes, notes how long the task was under way, completes. One at a time, or as many as
 * there are. */
static void *worker_loop (void *argument)
{
    client_t *self = argument;
    load_t *load = self->load;
    bool sync = self->prefetch == 1;
    void *worker = load->driver->worker_new (load->server, load->queue, self->prefetch);
    payload_t *taken = need_memory (calloc (BENCH_TAKE_MAX, sizeof *taken));
    while (!atomic_load_explicit (&load->finish, memory_order_relaxed)) {
        size_t count = load->driver->take (worker, taken, sync ? 1 : BENCH_TAKE_MAX);
        uint64_t now = now_ns ();
        for (size_t i = 0; counting (load) && i < count; i++)
            histogram_add (&self->latency, now - taken[i].sent_ns);
        atomic_fetch_add (&load->ended, load->driver->finish (worker, sync));
    }
    load->driver->finish (worker, true);
    load->driver->worker_free (worker);
    free (taken);
    return NULL;
}

/* One row. */

typedef struct shape {
    void *(*producer) (void *client);
    size_t producers;
    size_t workers;
    size_t prefetch;
    unsigned long backlog_max; /* 0: no limit */
    bool count_lives;          /* else acknowledged submits */
    bool worker_latency;       /* else the producers' */
} shape_t;

static void clients_start (client_t *clients, size_t count, const client_t *as,
                           void *(*body) (void *) )
{
    for (size_t i = 0; i < count; i++) {
        clients[i] = *as;
        if (pthread_create (&clients[i].thread, NULL, body, &clients[i]) != 0)
            die ("a thread could not be started");
    }
}

static void clients_join (client_t *clients, size_t count, histogram_t *latency)
{
    for (size_t i = 0; i < count; i++) {
        pthread_join (clients[i].thread, NULL);
        if (latency)
            histogram_merge (latency, &clients[i].latency);
    }
}

/* While the backlog of a slow system fills, its submits take what lives would get later. That of
 * a fast one may never be full: then it is over when so many lives have ended. */
static void warm_up (load_t *load, const shape_t *shape, double seconds)
{
    pause_us ((long) (seconds * WARM_UP_PERCENT * 1e4));
    uint64_t end = now_ns () + FILL_SECONDS_MAX * UINT64_C (1000000000);
    while (!atomic_load (&load->full) && atomic_load (&load->ended) < shape->backlog_max &&
           now_ns () < end)
        pause_us (BACKLOG_PAUSE_US);
}

static uint64_t own_cpu_us (void)
{
    struct timespec used;
    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t) used.tv_sec * 1000000 + (uint64_t) used.tv_nsec / 1000;
}

static void run (figures_t *out, const shape_t *shape, const driver_t *driver,
                 const server_t *server, double seconds)
{
    static atomic_uint runs;
    load_t load = {.driver = driver, .server = server};
    snprintf (load.queue, sizeof load.queue, "bench-%u", atomic_fetch_add (&runs, 1));
    client_t *clients = need_memory (calloc (shape->producers + shape->workers, sizeof *clients));
    client_t *workers = clients + shape->producers;
    const client_t client = {
        .load = &load, .prefetch = shape->prefetch, .backlog_max = shape->backlog_max};
    clients_start (workers, shape->workers, &client, worker_loop);
    clients_start (clients, shape->producers, &client, shape->producer);

    warm_up (&load, shape, seconds);
    atomic_ulong *counter = shape->count_lives ? &load.ended : &load.submitted;
    atomic_store (&load.counting, true);
    uint64_t cpu = server_cpu_us (server);
    uint64_t own_cpu = own_cpu_us ();
    uint64_t begin = now_ns ();
    unsigned long first = atomic_load (counter);
    pause_us ((long) (seconds * 1e6));
    double operations = (double) (atomic_load (counter) - first);
    double elapsed = (double) (now_ns () - begin) / 1e9;
    cpu = server_cpu_us (server) - cpu;
    own_cpu = own_cpu_us () - own_cpu;
    atomic_store (&load.counting, false);
    uint64_t rss = server_rss_bytes (server);

    histogram_t *latency = need_memory (calloc (1, sizeof *latency));
    atomic_store (&load.stop, true);
    clients_join (clients, shape->producers, shape->worker_latency ? NULL : latency);
    atomic_store (&load.finish, true);
    clients_join (workers, shape->workers, shape->worker_latency ? latency : NULL);
    *out = (figures_t){
        .rate_per_s = operations / elapsed,
        .p50_us = histogram_us (latency, 0.5),
        .p99_us = histogram_us (latency, 0.99),
        .server_cpu_us = operations > 0 ? (double) cpu / operations : NAN,
        .clients_cpu_us = operations > 0 ? (double) own_cpu / operations : NAN,
        .rss_bytes = (double) rss,
    };
    for (size_t i = 0; i < TAILS; i++)
        out->tail_us[i] = histogram_us (latency, tail_shares[i]);
    free (latency);
    free (clients);
}

/* The table. */

#define ROW(name, ...)                                                                             \
    static void run_##name (figures_t *out, const driver_t *driver, const server_t *server,        \
                            double seconds)                                                        \
    {                                                                                              \
        static const shape_t shape = {__VA_ARGS__};                                                \
        run (out, &shape, driver, server, seconds);                                                \
    }

ROW (submit_sync, .producer = producer_sync, .producers = 1)
ROW (submit_pipelined, .producer = producer_pipelined, .producers = 1)
ROW (submit_16, .producer = producer_sync, .producers = 16)
ROW (life_sync, .producer = producer_sync, .producers = 8, .workers = 8, .prefetch = 1,
     .backlog_max = 8 * BENCH_BACKLOG_SYNC_MAX, .count_lives = true, .worker_latency = true)
ROW (life_pipelined, .producer = producer_pipelined, .producers = 2, .workers = 4,
     .prefetch = BENCH_PREFETCH, .backlog_max = BENCH_BACKLOG_MAX, .count_lives = true,
     .worker_latency = true)
ROW (life_sync_32, .producer = producer_sync, .producers = 32, .workers = 32, .prefetch = 1,
     .backlog_max = 32 * BENCH_BACKLOG_SYNC_MAX, .count_lives = true, .worker_latency = true)
ROW (to_worker, .producer = producer_idle, .producers = 1, .workers = 1, .prefetch = 1,
     .count_lives = true, .worker_latency = true)
ROW (notified, .producer = producer_call, .producers = 1, .workers = 1, .prefetch = 1,
     .count_lives = true)

const double tail_shares[TAILS] = {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999};

const row_t rows[] = {
    {.name = "submit_sync",
     .says = "submits, 1 client, one outstanding",
     .run = run_submit_sync,
     .tails = true},
    {.name = "submit_pipelined",
     .says = "submits, 1 client, 1,000 outstanding",
     .run = run_submit_pipelined},
    {.name = "submit_16",
     .says = "submits, 16 clients, one outstanding each",
     .run = run_submit_16},
    {.name = "life_sync",
     .says = "lives, 8 producers and 8 workers, one outstanding each",
     .run = run_life_sync},
    {.name = "life_pipelined",
     .says = "lives, 2 producers with 1,000 outstanding, 4 workers with 100",
     .run = run_life_pipelined,
     .slow = true,
     .tails = true},
    {.name = "life_sync_32",
     .says = "lives, 32 producers and 32 workers, one outstanding each",
     .run = run_life_sync_32,
     .slow = true},
    {.name = "to_worker",
     .says = "idle: from submit to the worker",
     .run = run_to_worker,
     .tails = true},
    {.name = "notified",
     .says = "idle: from submit to knowing the durable result",
     .run = run_notified,
     .needs_call = true,
     .tails = true},
};
const size_t rows_count = sizeof rows / sizeof *rows;

/* Small things. */

uint64_t now_ns (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Bucket widths of 1 %: bucket = log (ns) / log (1.01), about 2,000 for half a minute. */
static const double bucket_base = 0.00995033085316808; /* log (1.01) */

void histogram_add (histogram_t *self, uint64_t ns)
{
    double bucket = log ((double) (ns > 0 ? ns : 1)) / bucket_base;
    size_t limit = sizeof self->counts / sizeof *self->counts - 1;
    size_t index = bucket < (double) limit ? (size_t) bucket : limit;
    self->counts[index]++;
    self->total++;
}

void histogram_merge (histogram_t *self, const histogram_t *other)
{
    for (size_t i = 0; i < sizeof self->counts / sizeof *self->counts; i++)
        self->counts[i] += other->counts[i];
    self->total += other->total;
}

double histogram_us (const histogram_t *self, double quantile)
{
    double wanted = quantile * (double) self->total;
    double seen = 0;
    for (size_t i = 0; i < sizeof self->counts / sizeof *self->counts; i++) {
        seen += (double) self->counts[i];
        if (self->counts[i] > 0 && seen >= wanted)
            return exp (((double) i + 0.5) * bucket_base) / 1000;
    }
    return NAN;
}
