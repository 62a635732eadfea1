/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Threads must not fail a cmocka test: what they find goes into the history. */
#include "support/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/timing.h"

enum {
    BATCH = 10,
    PREFETCH = 8,
    RECONNECT_MS_MAX = 500, /* so that much happens between two kills */
    ASK_MS = 100,           /* a reader asks anew so often where nobody answers */
    VISIT_MS = 1000,
    VISIT_LOOKS = 5,
    LOOK_MS = 100 /* how often a thread looks whether it shall end */
};

static unsigned draw (load_thread_t *self, unsigned below)
{
    return (unsigned) rand_r (&self->seed) % below;
}

static unsigned endpoints_of (const load_t *load)
{
    unsigned count = 0;
    while (count < LOAD_ENDPOINTS_MAX && load->options.endpoints[count] != NULL) {
        count++;
    }
    return count;
}

static tmq_client_t *connect_among (load_t *load, const char *const *endpoints, size_t count)
{
    tmq_client_options_t options;
    tmq_error_t error = {0};
    tmq_client_t *client = NULL;
    uint32_t most_ms = load->options.reconnect_ms_max;
    tmq_client_options_init (&options);
    options.endpoints = endpoints;
    options.endpoints_count = count;
    options.reconnect_ms_max = most_ms > 0 ? most_ms : RECONNECT_MS_MAX;
    if (tmq_client_new (&client, &options, &error) != TMQ_OK) {
        history_broken (&load->history, "no client: %s", error.text);
    }
    return client;
}

static tmq_client_t *connect_to (load_t *load)
{
    return connect_among (load, load->options.endpoints, endpoints_of (load));
}

/* Submitters. */

static size_t make_task (load_t *load, tmq_submit_t *out, char payload[CHECKER_TEXT_MAX])
{
    tmq_submit_init (out);
    size_t number = history_new_task (&load->history, &out->id, payload);
    out->queue = "load";
    out->payload = payload;
    out->payload_bytes = strlen (payload);
    out->max_attempts = 50;
    out->backoff_ms = 10;
    out->ttl_ms = 60 * 60 * 1000;
    return number;
}

void load_submit (load_t *self, tmq_client_t *client, uint32_t timeout_ms)
{
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    tmq_error_t error = {0};
    char payload[CHECKER_TEXT_MAX];
    size_t number = make_task (self, &task, payload);
    if (tmq_submit (&receipt, client, &task, timeout_ms, &error) != TMQ_OK)
        fail_msg ("%s", error.text);
    history_accepted (&self->history, number, &receipt);
}

static void submit_some (load_thread_t *self, tmq_client_t *client, size_t count)
{
    load_t *load = self->load;
    history_t *history = &load->history;
    char payloads[BATCH][CHECKER_TEXT_MAX];
    size_t numbers[BATCH];
    tmq_submit_t tasks[BATCH];
    tmq_receipt_t receipts[BATCH];
    tmq_error_t error = {0};
    memset (receipts, 0, sizeof receipts);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = make_task (load, &tasks[i], payloads[i]);
    }
    uint32_t timeout = load->options.timeout_ms;
    int code = count == 1 ? tmq_submit (&receipts[0], client, &tasks[0], timeout, &error)
                          : tmq_submit_batch (receipts, client, tasks, count, timeout, &error);
    if (code != TMQ_OK) {
        history_broken (history, "submit of %zu: %s %s", count, tmq_code_name (code), error.text);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (receipts[i].code == TMQ_OK) {
            history_accepted (history, numbers[i], &receipts[i]);
            atomic_store (&load->accepted_ms, timing_ms ());
        } else {
            history_broken (history, "submit: %s %s", tmq_code_name (receipts[i].code),
                            receipts[i].text);
        }
    }
    if (load->options.cancels && draw (self, 10) == 0) {
        code = tmq_cancel (NULL, client, &tasks[0].id, "no longer needed", timeout, &error);
        if (code == TMQ_OK) {
            history_cancelled (history, numbers[0]);
        } else if (code != TMQ_WRONG_STATUS) {
            history_broken (history, "cancel: %s %s", tmq_code_name (code), error.text);
        }
    } else if (draw (self, 20) == 0) {
        tmq_status_t status = TMQ_STATUS_NONE;
        code = tmq_wait (&status, client, &tasks[0].id, timeout, &error);
        if (code == TMQ_OK) {
            history_ended (history, numbers[0], status);
        } else {
            history_broken (history, "wait: %s %s", tmq_code_name (code), error.text);
        }
    }
}

static bool may_submit (load_t *load)
{
    size_t accepted = history_accepted_count (&load->history);
    size_t finished = history_finished_count (&load->history);
    return accepted < finished + load->options.open_max;
}

static void *submitter (void *context)
{
    load_thread_t *self = context;
    load_t *load = self->load;
    tmq_client_t *client = connect_to (load);
    while (client != NULL && !atomic_load (&load->stop_submitters)) {
        size_t most = load->options.tasks_max;
        if (most > 0 && history_accepted_count (&load->history) >= most) {
            break;
        }
        if (may_submit (load)) {
            submit_some (self, client, draw (self, 2) == 0 ? 1 : 1 + draw (self, BATCH));
        } else {
            timing_pause (1);
        }
    }
    tmq_client_free (&client);
    return NULL;
}

/* Workers. */

static void end_attempt (load_thread_t *self, tmq_worker_t *worker,
                         const tmq_assignment_t *assignment)
{
    load_t *load = self->load;
    uint32_t timeout = load->options.timeout_ms;
    char result[CHECKER_TEXT_MAX];
    tmq_error_t error = {0};
    tmq_outcome_t outcome = {0};
    int code;
    unsigned dice = load->options.faulty_workers ? draw (self, 100) : 99;
    history_assigned (&load->history, assignment, result);
    tmq_worker_started (worker, assignment, NULL);
    if (load->options.work_ms_max > 0) {
        timing_pause (draw (self, load->options.work_ms_max + 1));
    }
    if (dice < 5) {
        outcome.error_code = 7;
        outcome.error_message = "did not work";
        code = tmq_worker_fail (worker, assignment, &outcome, timeout, &error);
    } else if (dice < 8) {
        code = tmq_worker_release (worker, assignment, 0, timeout, &error);
    } else {
        if (dice < 13) {
            tmq_worker_message (worker, assignment, "half way", timeout, NULL);
        }
        outcome.result = result;
        outcome.result_bytes = strlen (result);
        code = tmq_worker_complete (worker, assignment, &outcome, timeout, &error);
        if (code == TMQ_OK) {
            history_completed (&load->history, &assignment->task_id, assignment->attempt, result);
        }
    }
    if (code != TMQ_OK && code != TMQ_STALE_LEASE && code != TMQ_WRONG_STATUS &&
        code != TMQ_CANCELLED) {
        history_broken (&load->history, "the end of an attempt: %s %s", tmq_code_name (code),
                        error.text);
    }
}

static void *worker (void *context)
{
    load_thread_t *self = context;
    load_t *load = self->load;
    tmq_client_t *client = connect_to (load);
    tmq_worker_options_t options;
    const char *queues[] = {"load"};
    tmq_worker_t *object = NULL;
    tmq_error_t error = {0};
    tmq_worker_options_init (&options);
    options.queues = queues;
    options.queues_count = 1;
    options.capacity = PREFETCH;
    if (client != NULL && tmq_worker_new (&object, client, &options, &error) != TMQ_OK) {
        history_broken (&load->history, "no worker: %s", error.text);
    }
    while (object != NULL && !atomic_load (&load->stop_workers)) {
        tmq_assignment_t *assignment = NULL;
        int code = tmq_worker_next (&assignment, object, LOOK_MS, &error);
        if (code == TMQ_OK) {
            end_attempt (self, object, assignment);
            tmq_assignment_free (assignment);
        } else if (code != TMQ_TIMEOUT) {
            history_broken (&load->history, "next: %s %s", tmq_code_name (code), error.text);
            break;
        }
    }
    tmq_worker_free (&object);
    tmq_client_free (&client);
    return NULL;
}

/* Subscribers. */

/* All events are taken, or it takes too long. */
static bool may_stop (const load_thread_t *self)
{
    load_t *load = self->load;
    unsigned long long end = atomic_load (&load->stop_subscribers_at);
    long long give_up_ms = atomic_load (&load->give_up_ms);
    return (end > 0 && load->history.streams[self->number].upto >= end) ||
           (give_up_ms > 0 && timing_ms () > give_up_ms);
}

/* Takes events until told to end; every other subscriber now and then throws client and
 * subscription away and goes on with the cursor that it has stored. */
static void take_events (load_thread_t *self, tmq_subscription_t *subscription, unsigned most,
                         char cursor[48])
{
    load_t *load = self->load;
    history_t *history = &load->history;
    for (unsigned i = 0; i < most; i++) {
        if (may_stop (self)) {
            return;
        }
        tmq_event_t *event = NULL;
        tmq_error_t error = {0};
        int code = tmq_subscription_next (&event, subscription, LOOK_MS, &error);
        if (code == TMQ_OK) {
            history_event (history, self->number, event);
            tmq_event_free (event);
        } else if (code != TMQ_TIMEOUT) {
            history_broken (history, "subscriber %u: %s %s", self->number, tmq_code_name (code),
                            error.text);
            return;
        }
    }
    tmq_subscription_cursor (cursor, subscription);
}

static void *subscriber (void *context)
{
    load_thread_t *self = context;
    load_t *load = self->load;
    char cursor[48] = "0";
    bool restarts = self->number % 2 == 1;
    while (!may_stop (self)) {
        tmq_client_t *client = connect_to (load);
        tmq_subscription_options_t options;
        tmq_subscription_t *subscription = NULL;
        tmq_error_t error = {0};
        tmq_subscription_options_init (&options);
        options.cursor = cursor;
        if (client == NULL ||
            tmq_subscription_new (&subscription, client, &options, &error) != TMQ_OK) {
            history_broken (&load->history, "no subscription: %s", error.text);
            tmq_client_free (&client);
            break;
        }
        take_events (self, subscription, restarts ? 500 + draw (self, 2000) : 1u << 30, cursor);
        tmq_subscription_free (&subscription);
        tmq_client_free (&client);
        if (load->history.broken[0] != '\0') {
            break;
        }
    }
    return NULL;
}

/* Readers and visitors. Nobody waits for what they did not hear. */

static void look (load_t *load, tmq_client_t *client, unsigned dice)
{
    asked_t asked;
    tmq_task_t *task = NULL;
    if (!history_ask (&load->history, dice, &asked)) {
        timing_pause (1);
        return;
    }
    int code = tmq_get (&task, client, &asked.id, ASK_MS, NULL);
    history_told (&load->history, &asked, code, task);
    tmq_task_free (task);
}

static void *reader (void *context)
{
    load_thread_t *self = context;
    load_t *load = self->load;
    const char *endpoint = load->options.endpoints[self->number % endpoints_of (load)];
    tmq_client_t *client = connect_among (load, &endpoint, 1);
    while (client != NULL && !atomic_load (&load->stop_workers)) {
        look (load, client, (unsigned) rand_r (&self->seed));
        timing_pause (1);
    }
    tmq_client_free (&client);
    return NULL;
}

static void visit (load_thread_t *self, tmq_client_t *client)
{
    load_t *load = self->load;
    tmq_submit_t task;
    tmq_receipt_t receipt = {0};
    char payload[CHECKER_TEXT_MAX];
    size_t number = make_task (load, &task, payload);
    if (tmq_submit (&receipt, client, &task, VISIT_MS, NULL) == TMQ_OK) {
        history_accepted (&load->history, number, &receipt);
        if (load->options.cancels &&
            tmq_cancel (NULL, client, &task.id, "a visit", VISIT_MS, NULL) == TMQ_OK) {
            history_cancelled (&load->history, number);
        }
    }
    for (unsigned i = 0; i < VISIT_LOOKS; i++) {
        look (load, client, (unsigned) rand_r (&self->seed));
    }
}

static void *visitor (void *context)
{
    load_thread_t *self = context;
    load_t *load = self->load;
    while (!atomic_load (&load->stop_submitters)) {
        const char *endpoint = load->options.endpoints[draw (self, endpoints_of (load))];
        tmq_client_t *client = may_submit (load) ? connect_among (load, &endpoint, 1) : NULL;
        if (client != NULL && tmq_client_connect (client, VISIT_MS, NULL) == TMQ_OK) {
            visit (self, client);
        }
        tmq_client_free (&client);
        timing_pause (10);
    }
    return NULL;
}

/* All of them. */

static void begin (load_t *self, void *(*run) (void *), unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        load_thread_t *thread = &self->threads[self->threads_count++];
        assert_true (self->threads_count <= LOAD_THREADS_MAX);
        thread->load = self;
        thread->number = i;
        thread->seed = self->threads_count * 7919;
        assert_int_equal (pthread_create (&thread->thread, NULL, run, thread), 0);
    }
}

void load_start (load_t *self, const load_options_t *options)
{
    memset (self, 0, sizeof *self);
    self->options = *options;
    history_init (&self->history);
    begin (self, subscriber, options->subscribers);
    begin (self, worker, options->workers);
    begin (self, reader, options->readers);
    begin (self, visitor, options->visitors);
    begin (self, submitter, options->submitters);
}

static void join (load_t *self, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        pthread_join (self->threads[i].thread, NULL);
    }
}

void load_finish (load_t *self, uint32_t ms)
{
    const load_options_t *options = &self->options;
    tmq_client_t *client = connect_to (self);
    tmq_broker_info_t info = {0};
    tmq_error_t error = {0};

    unsigned quiet = options->workers + options->readers;
    atomic_store (&self->stop_submitters, true);
    join (self, options->subscribers + quiet, options->visitors + options->submitters);
    checker_wait (&self->history, client, ms);
    atomic_store (&self->stop_workers, true);
    join (self, options->subscribers, quiet);
    tmq_client_free (&client);

    /* The workers are gone, so the newest event is the last one. */
    client = connect_to (self);
    if (client == NULL || tmq_client_connect (client, ms, &error) != TMQ_OK) {
        fail_msg ("the broker does not answer: %s", error.text);
    }
    tmq_client_info (&info, client);
    atomic_store (&self->give_up_ms, timing_ms () + ms);
    atomic_store (&self->stop_subscribers_at, info.seq);
    join (self, 0, options->subscribers);
    checker_drain (&self->history, client);
    checker_events (&self->history, options->subscribers, info.seq);
    tmq_client_free (&client);
}

void load_clear (load_t *self)
{
    history_clear (&self->history);
}
