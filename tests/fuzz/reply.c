/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a broker sends, into the library: a core that said hello and has something of everything
 * open. The input is a row of messages, each two frames with two bytes of length. The library
 * numbers its requests from a fixed seed, so inputs may name them. */
#include "core.h"
#include "fuzz.h"

enum { STEP_MS = 50, TAKEN_MAX = 1000, MESSAGES_MAX = 64 };

typedef struct client {
    core_t *core;
    core_subscription_t *subscription;
    core_worker_t *worker;
    int64_t now_ms;
} client_t;

static void start (client_t *self, int code, core_request_t *const *request)
{
    core_target_t target = {NULL, NULL, NULL};
    HOLDS (code == TMQ_OK);
    core_start (self->core, *request, target, CORE_NEVER, self->now_ms, NULL);
}

static void open_requests (client_t *self)
{
    static const tmq_id_t id = {{1, 2, 3, 4, 5, 6, 0x77, 8, 0x89}};
    tmq_submit_t submit;
    tmq_list_query_t list = {.limit = 0};
    tmq_filter_t filter = {.queues = NULL};
    core_request_t *request;
    tmq_submit_init (&submit);
    submit.queue = "q";
    start (self, core_request_submit (&request, &submit, &id, NULL), &request);
    start (self, core_request_get (&request, TMQ_OP_RESULT, &id, NULL), &request);
    start (self, core_request_list (&request, &list, NULL), &request);
    start (self, core_request_count (&request, &filter, NULL), &request);
    start (self, core_request_events (&request, &id, 0, 0, NULL), &request);
    start (self, core_request_resolve (&request, "abcdef", NULL), &request);
    start (self, core_request_plain (&request, TMQ_OP_STATS, NULL), &request);
    core_wait (self->core, &id, 1, (core_target_t){NULL, NULL, NULL}, CORE_NEVER, self->now_ms,
               NULL);
}

static void open_streams (client_t *self)
{
    tmq_subscription_options_t subscription;
    tmq_worker_options_t worker;
    const char *const queues[] = {"q"};
    tmq_subscription_options_init (&subscription);
    tmq_worker_options_init (&worker);
    subscription.snapshot = true;
    worker.name = "w";
    worker.queues = queues;
    worker.queues_count = 1;
    HOLDS (core_subscription_new (&self->subscription, self->core, &subscription, NULL, NULL) ==
           TMQ_OK);
    HOLDS (core_worker_new (&self->worker, self->core, &worker, NULL, NULL) == TMQ_OK);
}

/* What it sends and what it answers, as a driver would take it. */
static void drain (client_t *self)
{
    core_message_t out;
    core_answer_t *answer;
    tmq_event_t *event;
    tmq_assignment_t *assignment;
    tmq_attempt_change_t change;
    core_woken_kind_t kind;
    void *owner;
    unsigned taken = 0;
    while (core_output (self->core, &out, self->now_ms) && taken++ < TAKEN_MAX)
        HOLDS (out.envelope_bytes <= TMQ_ENVELOPE_BYTES_MAX);
    while ((answer = core_answer_next (self->core)) != NULL) {
        core_answer_taken (self->core, answer);
        if (!answer->embedded)
            core_answer_free (answer);
    }
    while (core_woken_next (self->core, &kind, &owner)) {
    }
    while (core_subscription_next (&event, self->subscription, NULL) == TMQ_OK)
        tmq_event_free (event);
    while (core_worker_next (&assignment, self->worker, NULL) == TMQ_OK)
        tmq_assignment_free (assignment);
    while (core_worker_changed (&change, self->worker) == TMQ_OK) {
    }
}

static client_t begin (void)
{
    static const char *const endpoints[] = {"tcp://127.0.0.1:1"};
    core_config_t config = {.seed = {1, 2, 3},
                            .ns = "",
                            .name = "fuzz",
                            .endpoints = endpoints,
                            .endpoints_count = 1,
                            .requests_max = 1000,
                            .request_bytes_max = 1 << 20,
                            .completions_max = 1000,
                            .reads_max = 4,
                            .reconnect_ms_min = 100,
                            .reconnect_ms_max = 5000};
    client_t self = {.now_ms = 1000000};
    self.core = core_new (&config, self.now_ms);
    HOLDS (self.core != NULL);
    core_tick (self.core, self.now_ms);
    open_requests (&self);
    open_streams (&self);
    drain (&self);
    return self;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    client_t client = begin ();
    const uint8_t *pieces[2];
    size_t sizes[2];
    for (int i = 0; i < MESSAGES_MAX && fuzz_piece (&data, &size, &pieces[0], &sizes[0]); i++) {
        if (!fuzz_piece (&data, &size, &pieces[1], &sizes[1]))
            sizes[1] = 0;
        uint8_t *envelope = fuzz_copy (pieces[0], sizes[0]);
        uint8_t *body = sizes[1] > 0 ? fuzz_copy (pieces[1], sizes[1]) : NULL;
        client.now_ms += STEP_MS;
        core_receive (client.core, envelope, sizes[0], body, sizes[1], client.now_ms);
        free (envelope);
        free (body);
        core_tick (client.core, client.now_ms);
        drain (&client);
    }
    core_subscription_free (client.subscription);
    core_worker_free (client.worker);
    core_close (client.core);
    core_answer_t *answer;
    while ((answer = core_answer_next (client.core)) != NULL) {
        if (!answer->embedded)
            core_answer_free (answer);
    }
    core_free (client.core);
    return 0;
}
