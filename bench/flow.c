/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A stream of tasks through one queue, as fast as it goes: what fills a broker before a row, and
 * what measures claims out of a deep queue. */
#include "growth.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS = 2,
    PREFETCH = 500,
    WINDOW = 4000, /* submitted and not acknowledged, or not ended */
    NAP_US = 500
};

typedef struct stream {
    flow_t *flow;
    atomic_size_t ended;
    atomic_bool over; /* workers stop */
} stream_t;

static void *work (void *argument)
{
    stream_t *self = argument;
    tmq_client_t *client = client_connect (self->flow->server);
    tmq_worker_t *worker;
    tmq_worker_options_t options;
    tmq_error_t error = {0};
    tmq_worker_options_init (&options);
    options.queues = &self->flow->queue;
    options.queues_count = 1;
    options.capacity = PREFETCH;
    client_check (tmq_worker_new (&worker, client, &options, &error), "worker", &error);
    const tmq_outcome_t outcome = {.result = "done", .result_bytes = 4};
    size_t open = 0;
    while (!atomic_load (&self->over) || open > 0) {
        tmq_assignment_t *taken;
        uint32_t timeout_ms = open > 0 ? 1 : 50;
        while (!atomic_load (&self->over) &&
               tmq_worker_next (&taken, worker, timeout_ms, &error) == TMQ_OK) {
            client_check (tmq_worker_complete_start (worker, taken, &outcome, CLIENT_DEADLINE_MS,
                                                     NULL, &error),
                          "complete", &error);
            tmq_assignment_free (taken);
            open++;
            timeout_ms = 0;
        }
        size_t ended = client_reap (client, 0, "complete");
        open -= ended;
        atomic_fetch_add (&self->ended, ended);
    }
    tmq_worker_free (&worker);
    tmq_client_free (&client);
    return NULL;
}

const char *flow_shape_name (flow_shape_t shape)
{
    static const char *const names[] = {"plain", "fair", "fan", "chain"};
    return names[shape];
}

/* head: the task that those after it wait for. */
static void submit (flow_t *self, tmq_client_t *client, const void *payload, size_t number,
                    tmq_id_t *head)
{
    tmq_submit_t task;
    tmq_error_t error = {0};
    char key[32];
    tmq_dependency_t after = {.id = *head, .policy = TMQ_AFTER_FAIL};
    bool heads = number == 0 || (self->shape == FLOW_FAN && number % (self->group + 1) == 0);
    tmq_submit_init (&task);
    task.queue = self->queue;
    task.payload = payload;
    task.payload_bytes = self->payload_bytes;
    tmq_id_make (&task.id);
    if (self->shape == FLOW_FAIR) {
        snprintf (key, sizeof key, "key-%zu", number % self->group);
        task.fair_key = key;
    } else if (self->shape != FLOW_PLAIN && !heads) {
        task.after = &after;
        task.after_count = 1;
    }
    if (heads || self->shape == FLOW_CHAIN)
        *head = task.id;
    size_t every = self->ids_max > 0 ? (self->count + self->ids_max - 1) / self->ids_max : 1;
    if (self->ids && number % every == 0)
        self->ids[self->ids_count++] = task.id;
    client_check (tmq_submit_start (client, &task, CLIENT_DEADLINE_MS, NULL, &error), "submit",
                  &error);
}

/* Returns how many tasks were submitted, all of them acknowledged. */
static size_t produce (stream_t *self, tmq_client_t *client, uint64_t end)
{
    flow_t *flow = self->flow;
    uint8_t *payload = need_memory (malloc (flow->payload_bytes + 1));
    memset (payload, 'x', flow->payload_bytes + 1);
    size_t begun = 0;
    tmq_id_t head = {{0}};
    size_t open = 0;
    while (flow->count > 0 ? begun < flow->count : now_ns () < end) {
        if (flow->complete && begun - atomic_load (&self->ended) >= WINDOW) {
            growth_pause_us (NAP_US);
        } else if (open < WINDOW) {
            submit (flow, client, payload, begun++, &head);
            open++;
            if (begun % (CLIENT_POLL_MAX / 2) != 0)
                continue;
        }
        open -= client_reap (client, open >= WINDOW ? CLIENT_DEADLINE_MS : 0, "submit");
    }
    while (open > 0)
        open -= client_reap (client, CLIENT_DEADLINE_MS, "submit");
    free (payload);
    return begun;
}

double flow_run (flow_t *self)
{
    stream_t stream = {.flow = self};
    pthread_t workers[WORKERS];
    size_t workers_count = self->complete ? WORKERS : 0;
    tmq_client_t *client = client_connect (self->server);
    for (size_t i = 0; i < workers_count; i++) {
        if (pthread_create (&workers[i], NULL, work, &stream) != 0)
            die ("a thread could not be started");
    }
    self->ids_count = 0;
    uint64_t begin = now_ns ();
    size_t tasks = produce (&stream, client, begin + (uint64_t) (self->seconds * 1e9));
    while (self->complete && self->count > 0 && atomic_load (&stream.ended) < tasks)
        growth_pause_us (NAP_US);
    double seconds = (double) (now_ns () - begin) / 1e9;
    size_t ended = atomic_load (&stream.ended);
    atomic_store (&stream.over, true);
    for (size_t i = 0; i < workers_count; i++)
        pthread_join (workers[i], NULL);
    tmq_client_free (&client);
    return (double) (self->complete ? ended : tasks) / seconds;
}
