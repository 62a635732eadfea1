/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions of the library with a real broker: they stall, are thousands, miss nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_support.h"
#include "support/cmocka_all.h"
#include "support/daemon.h"
#include "support/timing.h"

/* An application that stands still. */

static void a_stalled_subscriber_is_caught_up (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_client_t *other = daemon_client (&broker);
    tmq_subscription_options_t options;
    tmq_subscription_t *subscription = NULL;
    tmq_id_t ids[5000];
    tmq_subscription_options_init (&options);
    options.buffer_bytes_max = 32 * 1024;
    options.cursor = "0";
    assert_int_equal (tmq_subscription_new (&subscription, client, &options, NULL), TMQ_OK);
    assert_int_equal (tmq_subscription_ready (subscription, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    submit_batch (other, "stalled", ids, 5000); /* far more than buffer and window hold */
    uint64_t seq = 0;
    while (seq < 5000) {
        tmq_event_t *event = NULL;
        assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, NULL),
                          TMQ_OK);
        if (event->item == TMQ_ITEM_EVENT)
            assert_int_equal (event->seq, ++seq);
        else
            assert_int_equal (event->item, TMQ_ITEM_LIVE);
        tmq_event_free (event);
    }
    tmq_subscription_free (&subscription);
    tmq_client_free (&other);
    tmq_client_free (&client);
}

static void a_snapshot_is_followed_by_what_changes (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_subscription_options_t options;
    tmq_subscription_t *subscription = NULL;
    tmq_id_t ids[3000];
    tmq_event_t *event = NULL;
    submit_batch (client, "snapshot", ids, 3000);
    tmq_subscription_options_init (&options);
    options.snapshot = true;
    assert_int_equal (tmq_subscription_new (&subscription, client, &options, NULL), TMQ_OK);
    assert_int_equal (tmq_subscription_ready (subscription, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    tmq_id_t later = {{0}};
    size_t tasks = 0;
    bool done = false;
    while (!done) {
        assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, NULL),
                          TMQ_OK);
        if (event->item == TMQ_ITEM_SNAPSHOT)
            tasks++;
        else if (event->item == TMQ_ITEM_SNAPSHOT_END)
            later = submit (client, "snapshot", "x");
        else if (event->item == TMQ_ITEM_EVENT) { /* the others are in the snapshot */
            assert_memory_equal (event->task_id.bytes, later.bytes, 16);
            done = true;
        }
        tmq_event_free (event);
    }
    assert_int_equal (tasks, 3000);
    tmq_subscription_free (&subscription);
    tmq_client_free (&client);
}

static uint64_t messages_received (tmq_client_t *client)
{
    tmq_client_counters_t counters;
    tmq_client_counters (&counters, client);
    return counters.messages_received;
}

/* The broker waits with a long snapshot for an application that takes nothing of it. */
static void a_stalled_application_gets_no_more_of_a_snapshot (void **state)
{
    enum { STALLED_TASKS = 10000, PINGS = 100 };
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_subscription_options_t options;
    tmq_subscription_t *subscription = NULL;
    static tmq_id_t ids[STALLED_TASKS];
    submit_batch (client, "snapshot", ids, STALLED_TASKS);
    tmq_subscription_options_init (&options);
    options.snapshot = true;
    options.buffer_bytes_max = 16 * 1024;
    uint64_t before = messages_received (client);
    assert_int_equal (tmq_subscription_new (&subscription, client, &options, NULL), TMQ_OK);
    assert_int_equal (tmq_subscription_ready (subscription, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    for (int i = 0; i < PINGS; i++)
        assert_int_equal (tmq_ping (client, TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_true (messages_received (client) - before < PINGS + 10);
    size_t tasks = 0;
    bool done = false;
    while (!done) {
        tmq_event_t *event = NULL;
        assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, NULL),
                          TMQ_OK);
        tasks += event->item == TMQ_ITEM_SNAPSHOT ? 1 : 0;
        done = event->item == TMQ_ITEM_SNAPSHOT_END;
        tmq_event_free (event);
    }
    assert_int_equal (tasks, STALLED_TASKS);
    assert_true (messages_received (client) - before > PINGS + 20); /* it was a long one */
    tmq_subscription_free (&subscription);
    tmq_client_free (&client);
}

static void a_cursor_of_another_generation_gets_all_of_this_one (void **state)
{
    (void) state;
    tmq_client_t *client = daemon_client (&broker);
    tmq_subscription_options_t options;
    tmq_subscription_t *subscription = NULL;
    tmq_event_t *event = NULL;
    const tmq_id_t before = submit (client, "gap", "x");
    tmq_subscription_options_init (&options);
    options.cursor = "12345-1";
    assert_int_equal (tmq_subscription_new (&subscription, client, &options, NULL), TMQ_OK);
    assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, NULL),
                      TMQ_OK);
    assert_int_equal (event->item, TMQ_ITEM_GAP);
    assert_int_equal (event->gap_to, 0); /* all of this history follows */
    tmq_event_free (event);
    bool found = false;
    while (!found) {
        assert_int_equal (tmq_subscription_next (&event, subscription, TIMING_PATIENCE_MS, NULL),
                          TMQ_OK);
        found = event->item == TMQ_ITEM_EVENT &&
                memcmp (event->task_id.bytes, before.bytes, sizeof (before)) == 0;
        tmq_event_free (event);
    }
    tmq_subscription_free (&subscription);
    tmq_client_free (&client);
}

/* Thousands of subscriptions of one client. */

/* Whoever is behind looks at every event since its cursor: when the cancels overtake the return of
 * the subscriptions that is MANY times MANY looks, half a minute at the pace of ThreadSanitizer. */
#ifdef __SANITIZE_THREAD__
enum { MANY = 1500 };
#else
enum { MANY = 5000 };
#endif
enum { MANY_BY_QUEUE = 500, MANY_BY_SESSION = 500 };

typedef struct many {
    tmq_client_t *client;
    tmq_id_t ids[MANY];
    char names[MANY][16];
    tmq_subscription_t *subscriptions[MANY];
} many_t;

static bool is_by_queue (int i)
{
    return i < MANY_BY_QUEUE;
}

static bool is_by_session (int i)
{
    return i >= MANY_BY_QUEUE && i < MANY_BY_QUEUE + MANY_BY_SESSION;
}

/* Number i watches the queue, the session or the task of number i. */
static void many_subscribe (many_t *self)
{
    for (int i = 0; i < MANY; i++) {
        tmq_subscription_options_t options;
        const char *name = self->names[i];
        snprintf (self->names[i], sizeof self->names[i], "name-%d", i);
        tmq_id_make (&self->ids[i]);
        tmq_subscription_options_init (&options);
        options.filter.queues = &name;
        options.filter.queues_count = is_by_queue (i) ? 1 : 0;
        options.filter.sessions = &name;
        options.filter.sessions_count = is_by_session (i) ? 1 : 0;
        options.filter.task_ids = &self->ids[i];
        options.filter.task_ids_count = !is_by_queue (i) && !is_by_session (i) ? 1 : 0;
        assert_int_equal (
            tmq_subscription_new (&self->subscriptions[i], self->client, &options, NULL), TMQ_OK);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal (tmq_subscription_ready (self->subscriptions[i], TIMING_PATIENCE_MS, NULL),
                          TMQ_OK);
}

/* For thousands of requests at once. */
enum { MANY_PATIENCE_MS = 2 * TIMING_PATIENCE_MS };

static void many_submit (const many_t *self, tmq_client_t *client)
{
    static tmq_submit_t tasks[MANY];
    static tmq_receipt_t receipts[MANY];
    for (int i = 0; i < MANY; i++) {
        tmq_submit_init (&tasks[i]);
        tasks[i].id = self->ids[i];
        tasks[i].queue = is_by_queue (i) ? self->names[i] : "many";
        tasks[i].session = is_by_session (i) ? self->names[i] : NULL;
    }
    assert_int_equal (tmq_submit_batch (receipts, client, tasks, MANY, MANY_PATIENCE_MS, NULL),
                      TMQ_OK);
}

static void many_cancel (const many_t *self, tmq_client_t *client)
{
    for (int i = 0; i < MANY; i++)
        assert_int_equal (
            tmq_cancel_start (client, &self->ids[i], NULL, MANY_PATIENCE_MS, NULL, NULL), TMQ_OK);
    for (int left = MANY; left > 0;) {
        tmq_completion_t *completions[100];
        size_t count = 0;
        assert_int_equal (tmq_client_poll (completions, 100, &count, client, MANY_PATIENCE_MS),
                          TMQ_OK);
        left -= (int) count;
        for (size_t i = 0; i < count; i++) {
            assert_int_equal (completions[i]->code, TMQ_OK);
            tmq_completion_free (completions[i]);
        }
    }
}

/* The next event of number i is about its task, and of this kind. */
static void many_expect (const many_t *self, int i, tmq_event_kind_t kind)
{
    tmq_event_t *event = NULL;
    do {
        tmq_event_free (event);
        assert_int_equal (
            tmq_subscription_next (&event, self->subscriptions[i], MANY_PATIENCE_MS, NULL), TMQ_OK);
    } while (event->item == TMQ_ITEM_LIVE);
    assert_int_equal (event->item, TMQ_ITEM_EVENT);
    assert_int_equal (event->kind, kind);
    assert_memory_equal (event->task_id.bytes, self->ids[i].bytes, sizeof self->ids[i].bytes);
    tmq_event_free (event);
}

static bool cursor_is_behind (tmq_subscription_t *subscription, uint64_t seq)
{
    char cursor[48];
    return tmq_subscription_cursor (cursor, subscription) != TMQ_OK ||
           strtoull (strchr (cursor, '-') + 1, NULL, 10) < seq;
}

/* Everything up to seq has come, and nothing of it is left. */
static void many_expect_no_more (const many_t *self, uint64_t seq)
{
    for (int i = 0; i < MANY; i++) {
        tmq_event_t *event = NULL;
        WAIT_FOR (!cursor_is_behind (self->subscriptions[i], seq), MANY_PATIENCE_MS);
        while (tmq_subscription_next (&event, self->subscriptions[i], 0, NULL) == TMQ_OK) {
            assert_int_equal (event->item, TMQ_ITEM_LIVE);
            tmq_event_free (event);
        }
    }
}

static void thousands_of_subscriptions (void **state)
{
    (void) state;
    static many_t many;
    tmq_client_t *other = daemon_client (&broker);
    tmq_subscription_t *extra[TMQ_LINK_SUBSCRIPTIONS_MAX - MANY + 1];
    tmq_error_t error;
    size_t extras = sizeof extra / sizeof *extra;
    many.client = daemon_client (&broker);
    many_subscribe (&many);
    many_submit (&many, other);
    for (int i = 0; i < MANY; i++)
        many_expect (&many, i, TMQ_EVENT_SUBMITTED);
    many_expect_no_more (&many, MANY);
    daemon_end (&broker, SIGKILL);
    daemon_start (&broker);
    many_cancel (&many, other);
    for (int i = 0; i < MANY; i++)
        many_expect (&many, i, TMQ_EVENT_CANCELLED);
    many_expect_no_more (&many, 2 * MANY);
    for (size_t i = 0; i < extras; i++)
        assert_int_equal (tmq_subscription_new (&extra[i], many.client, NULL, NULL), TMQ_OK);
    for (size_t i = 0; i < extras - 1; i++)
        assert_int_equal (tmq_subscription_ready (extra[i], TIMING_PATIENCE_MS, NULL), TMQ_OK);
    assert_int_equal (tmq_subscription_ready (extra[extras - 1], TIMING_PATIENCE_MS, &error),
                      TMQ_LIMIT);
    assert_string_equal (error.text, "subscriptions on a link: 10000, as many as there may be");
    tmq_client_free (&other);
    tmq_client_free (&many.client);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

/* test_library_subscriptions [PATTERN]: only the tests whose names match. */
int main (int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    const struct CMUnitTest tests[] = {
        TEST (a_stalled_subscriber_is_caught_up),
        TEST (a_snapshot_is_followed_by_what_changes),
        TEST (a_stalled_application_gets_no_more_of_a_snapshot),
        TEST (a_cursor_of_another_generation_gets_all_of_this_one),
        TEST (thousands_of_subscriptions),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
