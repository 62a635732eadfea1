/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A store that is out of reach, and one that somebody else may own (A100, A101). */
#include <string.h>

#include "core_rig.h"
#include "ids.h"

enum { WORKER = 100 };

static int setup (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.ring_bytes = 300;
    config.payload_cache_bytes = 0; /* the tables have every payload */
    config.round.dependents = 1;
    rig_t *rig = rig_new_with (&config);
    rig->features = TMQ_FEATURE_UNAVAILABLE;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    *state = rig;
    return 0;
}

static void be_away (rig_t *rig, bool away)
{
    rig->away = away;
    engine_set_away (rig->engine, away, rig->now);
}

static void expect_unavailable (const rig_t *rig, size_t peer, uint64_t request)
{
    const rig_item_t *item = rig_reply (rig, peer, request);
    assert_non_null (item);
    assert_int_equal (item->reply->code, TMQ_UNAVAILABLE);
    assert_int_equal (item->reply->retry_after_ms, 500);
    assert_int_equal (item->reply->body_case, TASKMQ__REPLY__BODY__NOT_SET);
}

/* Tasks 1 to count have ended, and memory has forgotten them. */
static void end_tasks (rig_t *rig, unsigned count)
{
    for (unsigned n = 1; n <= count; n++)
        rig_submit (rig, 0, n, "q", "some words");
    rig_commit (rig);
    for (unsigned n = 1; n <= count; n++)
        rig_cancel (rig, 0, n);
    rig_settle (rig);
}

static uint64_t say_hello (rig_t *rig, size_t peer, uint32_t features)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.features = features;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    return rig_send (rig, peer, &request, NULL, 0);
}

static void memory_goes_on_and_nothing_new_is_taken (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_run (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    be_away (rig, true);
    uint64_t record = rig_get_record (rig, 0, 1);
    uint64_t fresh = rig_submit (rig, 0, 3, "q", "");
    uint64_t listed = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0, NULL}, 5);
    uint64_t state_of = rig_checkpoint (rig, 1, assignment, "half");
    uint64_t cancelled = rig_cancel (rig, 0, 2);
    uint64_t completed = rig_complete (rig, 1, assignment, "done");
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, record), TMQ_OK);
    expect_unavailable (rig, 0, fresh);
    expect_unavailable (rig, 0, listed);
    expect_unavailable (rig, 1, state_of);
    assert_null (rig_reply (rig, 0, cancelled)); /* they wait for their commit */
    assert_null (rig_reply (rig, 1, completed));
    be_away (rig, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, cancelled), TMQ_OK);
    assert_int_equal (rig_code (rig, 1, completed), TMQ_OK);
    fresh = rig_submit (rig, 0, 3, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, fresh), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_COMPLETED);
}

/* What memory does not have is neither there nor not there. */
static void what_cannot_be_looked_up_is_refused (void **state)
{
    rig_t *rig = *state;
    end_tasks (rig, 2);
    rig->away = true; /* nobody has noticed yet */
    rig_gather (rig);
    uint64_t ended = rig_get_record (rig, 0, 1);
    uint64_t again = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 2);
    uint64_t stats = rig_stats (rig, 0);
    rig_send_gathered (rig, 0);
    rig_outputs (rig);
    expect_unavailable (rig, 0, ended);
    expect_unavailable (rig, 0, again);
    assert_int_equal (rig_code (rig, 0, stats), TMQ_OK);
    uint64_t maybe = rig_submit (rig, 0, 1, "q", "some words"); /* it may be there */
    rig_outputs (rig);
    expect_unavailable (rig, 0, maybe);
    be_away (rig, false);
    uint64_t there = rig_submit (rig, 0, 1, "q", "some words");
    rig_settle (rig);
    assert_true (rig_reply (rig, 0, there)->reply->submitted->items[0]->existing);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_CANCELLED);
}

static void who_does_not_know_the_code_hears_another_one (void **state)
{
    rig_t *rig = *state;
    uint64_t hello = say_hello (rig, 2, 0);
    rig_outputs (rig);
    memcpy (rig->peers[2].token, rig_reply (rig, 2, hello)->reply->welcome->token.data, 16);
    be_away (rig, true);
    uint64_t submit = rig_submit (rig, 2, 1, "q", "");
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 2, submit), TMQ_OVERLOADED);
    assert_int_equal (rig_reply (rig, 2, submit)->reply->retry_after_ms, 500);
    engine_set_shut (rig->engine, true);
    uint64_t old = say_hello (rig, 3, 0);
    uint64_t new = say_hello (rig, 4, TMQ_FEATURE_UNAVAILABLE | 1u << 31);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 3, old), TMQ_LIMIT);
    expect_unavailable (rig, 4, new);
}

/* With a reader, or in front of it. */
static void reads_of_requests_are_refused (void **state)
{
    rig_t *rig = *state;
    end_tasks (rig, 2);
    rig->away = true;
    uint64_t history = rig_history (rig, 0, 1);
    rig_outputs (rig);
    expect_unavailable (rig, 0, history); /* its task could not be found */
    be_away (rig, false);
    uint64_t given = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0, NULL}, 5);
    rig->away = true;
    rig_settle (rig);
    expect_unavailable (rig, 0, given);
    be_away (rig, false);
    rig_submit (rig, 0, 3, "q", ""); /* the list waits until this one is in the tables */
    rig_commit (rig);
    uint64_t waits = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0, NULL}, 5);
    rig_run (rig);
    assert_null (rig_reply (rig, 0, waits));
    be_away (rig, true);
    rig_outputs (rig);
    expect_unavailable (rig, 0, waits);
    be_away (rig, false);
    uint64_t listed = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0, NULL}, 5);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, listed)->reply->page->n_tasks, 3);
}

static size_t events_of (const rig_t *rig, size_t peer)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[peer].count; i++)
        if (rig->peers[peer].items[i].list != NULL)
            count += rig->peers[peer].items[i].list->n_events;
    return count;
}

static void a_subscription_waits_for_the_store (void **state)
{
    rig_t *rig = *state;
    end_tasks (rig, 10);
    rig->away = true;
    uint64_t subscribed = rig_subscribe (rig, 1, 7, 0);
    rig_settle (rig);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, subscribed), TMQ_OK);
    assert_int_equal (events_of (rig, 1), 0);
    be_away (rig, false);
    rig_settle (rig);
    assert_int_equal (events_of (rig, 1), 20);
}

static void a_subscription_since_a_time_is_refused (void **state)
{
    rig_t *rig = *state;
    end_tasks (rig, 1);
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = 7;
    subscribe.since_time = 1;
    rig->away = true;
    uint64_t refused = rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    expect_unavailable (rig, 1, refused);
    be_away (rig, false);
    uint64_t good = rig_subscribe_as (rig, 1, &subscribe); /* its number is free again */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, good), TMQ_OK);
}

/* A payload that could not be read is not damaged. */
static void assignments_wait_for_their_payloads (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 5; n++)
        rig_submit (rig, 0, n, "q", "a payload");
    rig_settle (rig);
    rig->away = true;
    rig_register (rig, 1, WORKER, "q", 5);
    rig_settle (rig);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    be_away (rig, false);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 5);
    for (unsigned i = 0; i < 5; i++)
        assert_memory_equal (rig_assignment (rig, 1, i)->body, "a payload", 9);
}

/* Who waits for a task that ended before a crash has to ask how it did. */
static void dependencies_wait_to_be_known (void **state)
{
    enum { LAST = 4 };
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "first", "");
    for (unsigned n = 2; n <= LAST; n++) {
        tmq_id_t id = rig_id (1);
        Taskmq__Dependency one = TASKMQ__DEPENDENCY__INIT;
        Taskmq__Dependency *after[] = {&one};
        Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        one.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
        one.policy = TMQ_AFTER_FAIL;
        extra.n_after = 1;
        extra.after = after;
        spec.extra = &extra;
        rig_submit_spec (rig, 0, n, &spec, "");
    }
    rig_register (rig, 1, WORKER, "first", 1);
    rig_run (rig);
    rig_complete (rig, 1, rig_assignment (rig, 1, 0)->assignment, "done");
    rig_commit (rig); /* one of them is told */
    rig_write (rig);
    rig->away = true;
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_settle (rig);
    size_t blocked = 0;
    for (unsigned n = 2; n <= LAST; n++)
        blocked += rig_task (rig, 0, n)->phase == TMQ_PHASE_BLOCKED;
    assert_int_equal (blocked, LAST - 2);
    be_away (rig, false);
    rig_settle (rig);
    for (unsigned n = 2; n <= LAST; n++)
        assert_int_equal (rig_task (rig, 0, n)->phase, TMQ_PHASE_READY);
}

/* The gate. */

static void nothing_is_told_while_the_store_may_be_another_ones (void **state)
{
    rig_t *rig = *state;
    uint64_t submit = rig_submit (rig, 0, 1, "q", "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_commit (rig); /* durable, and still not told */
    engine_set_shut (rig->engine, true);
    size_t messages = rig->messages;
    uint64_t record = rig_get_record (rig, 0, 1);
    uint64_t stranger = rig_submit (rig, 5, 9, "q", "");
    rig_outputs (rig);
    rig_outputs (rig);
    assert_false (engine_has_output (rig->engine));
    assert_int_equal (rig->messages, messages + 1);
    assert_int_equal (rig_code (rig, 5, stranger), TMQ_NO_LINK); /* a refusal is always true */
    engine_set_shut (rig->engine, false);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, record), TMQ_OK);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

/* Computed in time, but not on its way in time. */
static void what_came_too_late_leaves_first_when_it_may (void **state)
{
    rig_t *rig = *state;
    output_t output;
    uint64_t first = rig_get_record (rig, 0, 1);
    assert_true (engine_output_next (rig->engine, &output));
    engine_output_kept (rig->engine, &output);
    engine_set_shut (rig->engine, true);
    uint64_t second = rig_get_record (rig, 0, 2);
    assert_false (engine_output_next (rig->engine, &output));
    rig_advance (rig, 1000);
    engine_set_shut (rig->engine, false);
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, first), TMQ_NOT_FOUND);
    assert_int_equal (rig_replies (rig, 0, first), 1);
    assert_int_equal (rig_code (rig, 0, second), TMQ_NOT_FOUND);
    const rig_peer_t *peer = &rig->peers[0];
    assert_int_equal (peer->items[peer->count - 1].reply->id, second);
}

static void what_was_kept_for_a_link_that_ends_goes_with_it (void **state)
{
    rig_t *rig = *state;
    output_t output;
    uint64_t request = rig_get_record (rig, 0, 1);
    assert_true (engine_output_next (rig->engine, &output));
    engine_output_kept (rig->engine, &output);
    engine_set_shut (rig->engine, true);
    assert_false (engine_output_next (rig->engine, &output));
    engine_set_shut (rig->engine, false);
    uint64_t hello = say_hello (rig, 0, 0); /* in place of the link */
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, hello), TMQ_OK);
    assert_null (rig_reply (rig, 0, request));
}

#define ON_RIG(test) cmocka_unit_test_setup_teardown (test, setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_RIG (memory_goes_on_and_nothing_new_is_taken),
        ON_RIG (what_cannot_be_looked_up_is_refused),
        ON_RIG (who_does_not_know_the_code_hears_another_one),
        ON_RIG (reads_of_requests_are_refused),
        ON_RIG (a_subscription_waits_for_the_store),
        ON_RIG (a_subscription_since_a_time_is_refused),
        ON_RIG (assignments_wait_for_their_payloads),
        ON_RIG (dependencies_wait_to_be_known),
        ON_RIG (nothing_is_told_while_the_store_may_be_another_ones),
        ON_RIG (what_came_too_late_leaves_first_when_it_may),
        ON_RIG (what_was_kept_for_a_link_that_ends_goes_with_it),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
