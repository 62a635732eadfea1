/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is told of slow requests: stages that add up, bounds, and nothing while it is off. */
#include "trace.h"

#include <string.h>

#include "support/cmocka_all.h"
#include "timestamp.h"

enum { PEER = 7, AGO_US = 50 * 1000, SLOW_MS = 20, NEVER_MS = 60 * 60 * 1000 };

static trace_t *trace;
static trace_stages_t told;
static peer_t told_peer;
static size_t told_count;

static void tell (void *context, peer_t peer, const trace_stages_t *stages)
{
    (void) context;
    told = *stages;
    told_peer = peer;
    told_count++;
}

static int set_up (void **state)
{
    (void) state;
    told_count = 0;
    trace = trace_new (tell, NULL);
    trace_set (trace, SLOW_MS);
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    trace_free (&trace);
    assert_null (trace);
    return 0;
}

static Taskmq__Request request_of (Taskmq__Request__OpCase op, uint64_t id)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.id = id;
    request.op_case = op;
    return request;
}

static void apply (Taskmq__Request__OpCase op, uint64_t id, uint64_t batch)
{
    Taskmq__Request request = request_of (op, id);
    trace_applied (trace, PEER, &request, batch, clock_us (CLOCK_MONOTONIC) - AGO_US);
}

static void sent_to (peer_t peer, uint64_t id, bool more)
{
    uint8_t envelope[64];
    Taskmq__BrokerMessage message = TASKMQ__BROKER_MESSAGE__INIT;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    Taskmq__Reply *replies[] = {&reply};
    reply.id = id;
    reply.more = more;
    message.n_replies = 1;
    message.replies = replies;
    output_t output = {.peer = peer, .envelope = envelope};
    output.envelope_bytes = taskmq__broker_message__pack (&message, envelope);
    trace_sent (trace, &output);
}

static void the_stages_add_up (void **state)
{
    (void) state;
    int64_t start = clock_us (CLOCK_MONOTONIC) - AGO_US;
    apply (TASKMQ__REQUEST__OP_SUBMIT, 1, 5);
    int64_t begun = clock_us (CLOCK_MONOTONIC) + 1000;
    commit_result_t result = {.batch = 6, .begun_us = begun, .ended_us = begun + 2000};
    while (clock_us (CLOCK_MONOTONIC) < result.ended_us)
        ;
    trace_committed (trace, &result);
    sent_to (PEER, 1, false);
    int64_t all = clock_us (CLOCK_MONOTONIC) - start;
    assert_int_equal (told_count, 1);
    assert_int_equal (told_peer, PEER);
    assert_string_equal (told.name, "submit");
    assert_int_equal (told.request, 1);
    assert_true (told.waited >= AGO_US);
    assert_true (told.open > 0);
    assert_int_equal (told.commit, 2000);
    assert_true (told.release >= 0 && told.answer >= 0);
    assert_true (told.waited + told.open + told.commit + told.release + told.answer <= all);
    assert_int_equal (trace_count (trace), 0);
}

static void what_rests_on_no_commit_says_so (void **state)
{
    (void) state;
    commit_result_t before = {.batch = 9, .begun_us = 1, .ended_us = 2};
    trace_committed (trace, &before);
    apply (TASKMQ__REQUEST__OP_LIST, 1, 9);
    sent_to (PEER, 1, false);
    assert_int_equal (told_count, 1);
    assert_int_equal (told.open + told.commit + told.release, 0);
}

static void a_commit_under_way_counts_from_the_request_on (void **state)
{
    (void) state;
    int64_t begun = clock_us (CLOCK_MONOTONIC) - 10 * AGO_US;
    apply (TASKMQ__REQUEST__OP_LIST, 1, 5);
    int64_t now = clock_us (CLOCK_MONOTONIC);
    commit_result_t result = {.batch = 5, .begun_us = begun, .ended_us = now};
    trace_committed (trace, &result);
    sent_to (PEER, 1, false);
    assert_int_equal (told.open, 0);
    assert_true (told.commit >= 0 && told.commit < 10 * AGO_US);
}

static void only_what_ends_a_slow_request_is_told (void **state)
{
    (void) state;
    apply (TASKMQ__REQUEST__OP_SUBMIT, 1, 5);
    sent_to (PEER, 2, false);
    sent_to (PEER + 1, 1, false);
    sent_to (PEER, 1, true);
    assert_int_equal (told_count, 0);
    assert_int_equal (trace_count (trace), 1);
    trace_set (trace, NEVER_MS);
    sent_to (PEER, 1, false);
    assert_int_equal (told_count, 0);
    assert_int_equal (trace_count (trace), 0);
}

static void what_waits_on_purpose_is_not_followed (void **state)
{
    (void) state;
    apply (TASKMQ__REQUEST__OP_WAIT, 1, 5);
    apply (TASKMQ__REQUEST__OP_CREDIT, 2, 5); /* has no answer */
    assert_int_equal (trace_count (trace), 0);
}

static void a_request_that_comes_again_is_followed_once (void **state)
{
    (void) state;
    apply (TASKMQ__REQUEST__OP_SUBMIT, 1, 5);
    apply (TASKMQ__REQUEST__OP_SUBMIT, 1, 6);
    assert_int_equal (trace_count (trace), 1);
}

static void so_many_are_followed_and_the_newest_stay (void **state)
{
    (void) state;
    for (uint64_t id = 1; id <= TRACE_REQUESTS_MAX + 10; id++)
        apply (TASKMQ__REQUEST__OP_SUBMIT, id, 5);
    assert_int_equal (trace_count (trace), TRACE_REQUESTS_MAX);
    sent_to (PEER, 10, false);
    assert_int_equal (told_count, 0);
    sent_to (PEER, TRACE_REQUESTS_MAX + 10, false);
    assert_int_equal (told_count, 1);
}

static void lines_have_a_rate (void **state)
{
    (void) state;
    enum { ALL = 20 * TRACE_LINES_MAX };
    int64_t start = clock_us (CLOCK_MONOTONIC);
    uint64_t left_out = 0;
    for (uint64_t id = 1; id <= ALL; id++) {
        size_t before = told_count;
        apply (TASKMQ__REQUEST__OP_SUBMIT, id, 5);
        sent_to (PEER, id, false);
        left_out += told_count > before ? told.left_out : 0;
    }
    size_t seconds = (size_t) ((clock_us (CLOCK_MONOTONIC) - start) / 1000000);
    assert_true (told_count <= TRACE_LINES_MAX * (seconds + 2));
    assert_true (told_count + left_out <= ALL);
}

static void off_it_holds_nothing (void **state)
{
    (void) state;
    apply (TASKMQ__REQUEST__OP_SUBMIT, 1, 5);
    trace_set (trace, 0);
    assert_false (trace_is_on (trace));
    assert_int_equal (trace_count (trace), 0);
    apply (TASKMQ__REQUEST__OP_SUBMIT, 2, 5);
    sent_to (PEER, 2, false);
    assert_int_equal (trace_count (trace), 0);
    assert_int_equal (told_count, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (the_stages_add_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown (what_rests_on_no_commit_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown (a_commit_under_way_counts_from_the_request_on, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (only_what_ends_a_slow_request_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown (what_waits_on_purpose_is_not_followed, set_up, tear_down),
        cmocka_unit_test_setup_teardown (a_request_that_comes_again_is_followed_once, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (so_many_are_followed_and_the_newest_stay, set_up,
                                         tear_down),
        cmocka_unit_test_setup_teardown (lines_have_a_rate, set_up, tear_down),
        cmocka_unit_test_setup_teardown (off_it_holds_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
