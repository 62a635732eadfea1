/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Row `transfers`: lives of tasks and heartbeats alone, beside the upload of one large body, and
 * beside ten at once. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "growth.h"

enum { MIB = 1 << 20, TRANSFERS_MAX = 10, LIVES_AT_ONCE = 1000, PAUSE_US = 1000 };

typedef struct transfer {
    const server_t *server;
    FILE *file;
    pthread_t thread;
    atomic_size_t *under_way;
} transfer_t;

typedef struct pulse {
    const server_t *server;
    histogram_t *latency;
    atomic_bool over;
} pulse_t;

/* Bytes that no other file of the run has, so that none is there already. */
static FILE *make_file (size_t mib)
{
    static uint64_t state = 1;
    FILE *file = tmpfile ();
    uint64_t *bytes = need_memory (malloc (MIB));
    for (size_t i = 0; file != NULL && i < mib; i++) {
        for (size_t k = 0; k < MIB / sizeof *bytes; k++) {
            state = state * UINT64_C (6364136223846793005) + 1442695040888963407;
            bytes[k] = state;
        }
        if (fwrite (bytes, MIB, 1, file) != 1)
            die ("a file of %zu MiB cannot be written", mib);
    }
    free (bytes);
    if (file == NULL || fflush (file) != 0)
        die ("a file of %zu MiB cannot be made", mib);
    return file;
}

static void *upload (void *argument)
{
    transfer_t *self = argument;
    tmq_client_t *client = client_connect (self->server);
    tmq_blob_t blob;
    tmq_error_t error = {0};
    client_check (
        tmq_blob_put_file (&blob, client, fileno (self->file), CLIENT_DEADLINE_MS, &error),
        "upload", &error);
    tmq_client_free (&client);
    atomic_fetch_sub (self->under_way, 1);
    return NULL;
}

static void *beat (void *argument)
{
    pulse_t *self = argument;
    tmq_client_t *client = client_connect (self->server);
    tmq_error_t error = {0};
    while (!atomic_load (&self->over)) {
        uint64_t sent = now_ns ();
        client_check (tmq_ping (client, CLIENT_DEADLINE_MS, &error), "ping", &error);
        histogram_add (self->latency, now_ns () - sent);
        growth_pause_us (PAUSE_US);
    }
    tmq_client_free (&client);
    return NULL;
}

/* Lives a second while so many files are uploaded, or for so long without one; the 99th percentile
 * of a heartbeat in that time; and MB a second of all uploads together. */
static double measure (const server_t *server, size_t transfers, size_t mib, double seconds,
                       double *beat_us, double *mb_per_s)
{
    transfer_t all[TRANSFERS_MAX];
    atomic_size_t under_way = transfers;
    pulse_t pulse = {.server = server, .latency = need_memory (calloc (1, sizeof (histogram_t)))};
    pthread_t beating;
    size_t lives = 0;
    for (size_t i = 0; i < transfers; i++)
        all[i] = (transfer_t){.server = server, .file = make_file (mib), .under_way = &under_way};
    bool good = pthread_create (&beating, NULL, beat, &pulse) == 0;
    uint64_t begin = now_ns ();
    for (size_t i = 0; good && i < transfers; i++)
        good = pthread_create (&all[i].thread, NULL, upload, &all[i]) == 0;
    if (!good)
        die ("a thread could not be started");
    while (atomic_load (&under_way) > 0 ||
           (transfers == 0 && (double) (now_ns () - begin) < seconds * 1e9)) {
        flow_t flow = {.server = server,
                       .queue = "beside",
                       .payload_bytes = BENCH_PAYLOAD_BYTES,
                       .complete = true,
                       .count = LIVES_AT_ONCE};
        flow_run (&flow);
        lives += LIVES_AT_ONCE;
    }
    double took_s = (double) (now_ns () - begin) / 1e9;
    atomic_store (&pulse.over, true);
    pthread_join (beating, NULL);
    for (size_t i = 0; i < transfers; i++) {
        pthread_join (all[i].thread, NULL);
        fclose (all[i].file);
    }
    *beat_us = histogram_us (pulse.latency, 0.99);
    *mb_per_s = (double) (transfers * mib) * MIB / 1e6 / took_s;
    free (pulse.latency);
    return (double) lives / took_s;
}

static void run (point_t *out, server_t *server, double seconds)
{
    size_t mib = (size_t) out->size;
    double beat_us;
    double mb_per_s;
    growth_start (server);
    measure (server, 0, 0, 1, &beat_us, &mb_per_s); /* warm */
    double alone = measure (server, 0, 0, seconds, &beat_us, &mb_per_s);
    point_set (out, "lives_per_s", alone);
    point_set (out, "beat_p99_us", beat_us);
    double beside = measure (server, 1, mib, seconds, &beat_us, &mb_per_s);
    point_set (out, "mb_per_s_1", mb_per_s);
    point_set (out, "lives_ratio_1", beside / alone);
    point_set (out, "beat_p99_us_1", beat_us);
    beside = measure (server, TRANSFERS_MAX, mib, seconds, &beat_us, &mb_per_s);
    point_set (out, "mb_per_s_10", mb_per_s);
    point_set (out, "lives_ratio_10", beside / alone);
    point_set (out, "beat_p99_us_10", beat_us);
}

const growth_row_t transfers_row = {
    .name = "transfers",
    .says = "lives and heartbeats beside the upload of one large body, and of ten at once",
    .sizes = "MiB of a body",
    .size_min = 1,
    .full = {1024},
    .quick = {16},
    .run = run,
};
