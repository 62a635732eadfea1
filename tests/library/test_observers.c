/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Order and once-per-cursor: many subscribers behind a proxy that cuts their connections, while the
 * broker is killed again and again. Each sees every event once, in order, without a gap.
 *
 *     test_observers [--events N] [--subscribers N] [--kills N] [--seed N]
 *
 * CI: 20,000 events, 20 subscribers, 5 kills. The long run: 1,000,000 events, 50 kills. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/proxy.h"
#include "support/timing.h"

enum { SUBSCRIBERS_MAX = 100, BATCH = 500, CUT_PAUSE_MS = 150, SLOW_IN = 4 };

static uint64_t events = 20000;
static unsigned subscribers = 20;
static unsigned kills = 5;
static unsigned seed = 1;

typedef struct subscriber {
    pthread_t thread;
    const char *endpoint;
    unsigned number;
    _Atomic uint64_t seq; /* newest event that was taken */
    char wrong[160];      /* what was wrong; empty: nothing */
    uint64_t connects;
} subscriber_t;

static atomic_bool over;

static tmq_client_t *client_of (const char *endpoint)
{
    tmq_client_options_t options;
    tmq_client_t *client = NULL;
    tmq_client_options_init (&options);
    options.endpoints = &endpoint;
    options.endpoints_count = 1;
    options.reconnect_ms_max = 1000;
    return tmq_client_new (&client, &options, NULL) == TMQ_OK ? client : NULL;
}

/* False when it must not go on. */
static bool check (subscriber_t *self, const tmq_event_t *event)
{
    char cursor[48];
    if (event->item == TMQ_ITEM_LIVE)
        return true;
    if (event->item != TMQ_ITEM_EVENT) {
        snprintf (self->wrong, sizeof self->wrong, "an item of kind %d after %" PRIu64,
                  (int) event->item, self->seq);
        return false;
    }
    snprintf (cursor, sizeof cursor, "%" PRIu64 "-%" PRIu64, event->generation, event->seq);
    if (event->seq != self->seq + 1 || strcmp (cursor, event->cursor) != 0) {
        snprintf (self->wrong, sizeof self->wrong, "event %" PRIu64 " (%s) after %" PRIu64,
                  event->seq, event->cursor, self->seq);
        return false;
    }
    self->seq = event->seq;
    return true;
}

static void *subscriber_main (void *argument)
{
    subscriber_t *self = argument;
    tmq_client_t *client = client_of (self->endpoint);
    tmq_subscription_options_t options;
    tmq_subscription_t *subscription = NULL;
    tmq_client_counters_t counters;
    tmq_error_t error;
    bool good = true;
    tmq_subscription_options_init (&options);
    options.cursor = "0";
    options.buffer_bytes_max = 32 * 1024;
    int code = tmq_subscription_new (&subscription, client, &options, &error);
    while (code == TMQ_OK && good && self->seq < events && !over) {
        tmq_event_t *event = NULL;
        code = tmq_subscription_next (&event, subscription, 500, &error);
        if (code == TMQ_TIMEOUT) {
            code = TMQ_OK;
            continue;
        }
        if (code != TMQ_OK)
            break;
        good = check (self, event);
        tmq_event_free (event);
        if (self->number % SLOW_IN == 0 && self->seq % 1000 == 0)
            timing_pause (20); /* a slow application */
    }
    if (code != TMQ_OK)
        snprintf (self->wrong, sizeof self->wrong, "%.150s", error.text);
    tmq_client_counters (&counters, client);
    self->connects = counters.connects;
    tmq_client_free (&client);
    return NULL;
}

typedef struct producer {
    pthread_t thread;
    const char *endpoint;
    int code;
} producer_t;

/* One event for each task: nobody works. */
static void *producer_main (void *argument)
{
    producer_t *self = argument;
    tmq_client_t *client = client_of (self->endpoint);
    static tmq_submit_t tasks[BATCH];
    static tmq_receipt_t receipts[BATCH];
    for (uint64_t done = 0; done < events && self->code == TMQ_OK; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            tmq_submit_init (&tasks[i]);
            tasks[i].queue = "events";
        }
        self->code = tmq_submit_batch (receipts, client, tasks, BATCH, TMQ_FOREVER, NULL);
        for (size_t i = 0; i < BATCH && self->code == TMQ_OK; i++)
            self->code = receipts[i].code;
    }
    tmq_client_free (&client);
    return NULL;
}

static uint64_t slowest (const subscriber_t *all)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < subscribers; i++) {
        uint64_t seq = all[i].seq;
        if (all[i].wrong[0] != '\0')
            fail_msg ("subscriber %u: %s", i, all[i].wrong);
        least = seq < least ? seq : least;
    }
    return least;
}

/* Cuts and kills until everybody has everything. Returns false when nothing moves any more. Whoever
 * was cut off has something before the next cut: on a machine that is busy a connection may take
 * longer than from one cut to the next, and nobody would ever move. */
static bool disturb (daemon_t *broker, proxy_t *proxy, const subscriber_t *all)
{
    unsigned killed = 0;
    uint64_t before = 0;
    uint64_t at_cut = UINT64_MAX; /* what the slowest had then */
    int64_t moved_ms = timing_ms ();
    for (;;) {
        uint64_t now = slowest (all);
        if (now != before)
            moved_ms = timing_ms ();
        before = now;
        if (now >= events)
            return true;
        if (timing_ms () - moved_ms > 2 * TIMING_PATIENCE_MS)
            return false;
        if (killed < kills && now >= (killed + 1) * events / (kills + 2)) {
            killed++;
            daemon_end (broker, SIGKILL);
            timing_pause ((uint32_t) rand_r (&seed) % 300);
            daemon_start (broker);
        } else if (now != at_cut && rand_r (&seed) % 3 == 0) {
            at_cut = now;
            proxy_cut (proxy, (proxy_cut_t) (rand_r (&seed) % PROXY_CUTS));
        }
        timing_pause (CUT_PAUSE_MS);
    }
}

static void each_event_once_and_in_order (void **state)
{
    (void) state;
    static subscriber_t all[SUBSCRIBERS_MAX];
    static daemon_t broker;
    producer_t producer = {.code = TMQ_OK};
    print_message ("seed %u\n", seed);
    daemon_init_tcp (&broker);
    daemon_start (&broker);
    proxy_t *proxy = proxy_new (atoi (strrchr (broker.endpoint, ':') + 1), seed);
    producer.endpoint = broker.endpoint;
    assert_int_equal (pthread_create (&producer.thread, NULL, producer_main, &producer), 0);
    for (unsigned i = 0; i < subscribers; i++) {
        all[i].endpoint = proxy_endpoint (proxy);
        all[i].number = i;
        assert_int_equal (pthread_create (&all[i].thread, NULL, subscriber_main, &all[i]), 0);
    }
    bool finished = disturb (&broker, proxy, all);
    over = true;
    pthread_join (producer.thread, NULL);
    uint64_t connects = 0;
    for (unsigned i = 0; i < subscribers; i++) {
        pthread_join (all[i].thread, NULL);
        if (all[i].wrong[0] != '\0')
            fail_msg ("subscriber %u: %s", i, all[i].wrong);
        connects += all[i].connects;
    }
    assert_int_equal (producer.code, TMQ_OK);
    assert_true (finished);
    print_message ("%" PRIu64 " events, %u subscribers, %u kills, %" PRIu64 " connections\n",
                   events, subscribers, kills, connects);
    assert_true (connects > subscribers); /* they really were cut off */
    proxy_free (proxy);
    daemon_destroy (&broker);
}

static uint64_t option (int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp (argv[i], name) == 0)
            return strtoull (argv[i + 1], NULL, 10);
    return otherwise;
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (each_event_once_and_in_order)};
    events = option (argc, argv, "--events", events) / BATCH * BATCH;
    subscribers = (unsigned) option (argc, argv, "--subscribers", subscribers);
    subscribers = subscribers < SUBSCRIBERS_MAX ? subscribers : SUBSCRIBERS_MAX;
    kills = (unsigned) option (argc, argv, "--kills", kills);
    seed = (unsigned) option (argc, argv, "--seed", seed);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
