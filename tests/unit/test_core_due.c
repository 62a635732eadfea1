/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* When a task may run: delay and a time of day, start_by, max_runtime; clocks that leap, restarts,
 * commits that fail. */
#include <string.h>

#include "core_rig.h"

enum { WORKER = 100, HOUR_MS = 60 * 60 * 1000, DAY_MS = 24 * HOUR_MS };

typedef struct when {
    uint64_t delay_ms;
    int64_t at_ms; /* from now */
    int64_t start_by_ms;
    uint64_t max_runtime_ms;
    uint64_t ttl_ms;
    uint32_t max_attempts;
} when_t;

static void submit (rig_t *rig, unsigned n, when_t when)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    spec.delay_ms = when.delay_ms;
    if (when.at_ms != 0)
        spec.not_before = (uint64_t) (rig->now.wall_ms + when.at_ms);
    if (when.start_by_ms != 0)
        extra.start_by = (uint64_t) (rig->now.wall_ms + when.start_by_ms);
    extra.max_runtime_ms = when.max_runtime_ms;
    spec.extra = &extra;
    spec.ttl_ms = when.ttl_ms;
    spec.max_attempts = when.max_attempts;
    rig_submit_spec (rig, 0, n, &spec, "p");
    rig_settle (rig);
}

static void heartbeat (rig_t *rig, size_t peer)
{
    Taskmq__Heartbeat beat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &beat;
    rig_send (rig, peer, &request, NULL, 0);
}

/* Time goes by, while the clients are alive and the newest lease is renewed. */
static void live (rig_t *rig, int64_t ms)
{
    for (; ms > 0; ms -= 1000) {
        heartbeat (rig, 0);
        heartbeat (rig, 1);
        size_t count = rig_assignments (rig, 1);
        if (count > 0)
            rig_renew (rig, 1, WORKER, rig_assignment (rig, 1, count - 1)->assignment);
        rig_advance (rig, ms < 1000 ? ms : 1000);
    }
}

static void assert_phase (rig_t *rig, unsigned n, tmq_phase_t phase)
{
    assert_int_equal (rig_task (rig, 0, n)->phase, phase);
}

static void assert_failed (rig_t *rig, unsigned n, tmq_task_error_t code)
{
    const Taskmq__Task *task = rig_task (rig, 0, n);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_non_null (task->error);
    assert_int_equal (task->error->code, code);
}

static void relink (rig_t *rig)
{
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
}

/* Delays. */

static void a_delayed_task_waits_and_lives_from_then_on (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 9);
    int64_t now_ms = rig->now.wall_ms;
    submit (rig, 1, (when_t){.delay_ms = 5000, .ttl_ms = 7000});
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->phase, TMQ_PHASE_SCHEDULED);
    assert_int_equal (task->not_before, now_ms + 5000);
    assert_int_equal (task->expires_at, now_ms + 12000);
    live (rig, 4900);
    assert_int_equal (rig_assignments (rig, 1), 0);
    live (rig, 200);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_delay_does_not_wait_for_a_clock_set_back (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 9);
    submit (rig, 1, (when_t){.delay_ms = 5000});
    rig->now.wall_ms -= 30 * 60 * 1000;
    live (rig, 5100);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_time_of_day_follows_the_wall_clock (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 9);
    submit (rig, 1, (when_t){.at_ms = HOUR_MS});
    rig->now.wall_ms -= 2 * HOUR_MS; /* it was wrong, and is followed */
    live (rig, HOUR_MS + 5000);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_phase (rig, 1, TMQ_PHASE_SCHEDULED);
    live (rig, 2 * HOUR_MS);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_leap_forward_is_not_a_time_of_day_yet (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 9);
    submit (rig, 1, (when_t){.at_ms = 6 * HOUR_MS});
    submit (rig, 2, (when_t){.start_by_ms = 6 * HOUR_MS, .at_ms = 5 * HOUR_MS});
    rig->now.wall_ms += 8 * HOUR_MS;
    live (rig, 60 * 1000);
    assert_int_equal (rig_assignments (rig, 1), 0);
    rig->now.wall_ms -= 8 * HOUR_MS; /* a blip */
    live (rig, 20 * 60 * 1000);
    assert_int_equal (rig_assignments (rig, 1), 0);
    rig->now.wall_ms += 8 * HOUR_MS; /* this one stays, and is believed after ten minutes */
    live (rig, 11 * 60 * 1000);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_failed (rig, 2, TMQ_TASK_ERROR_START_MISSED);
}

static void a_time_that_has_passed_is_no_delay (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 9);
    submit (rig, 1, (when_t){.at_ms = -1000});
    assert_int_equal (rig_task (rig, 0, 1)->not_before, 0);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_delay_goes_on_after_a_restart_and_a_failed_commit (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, (when_t){.delay_ms = 5000});
    submit (rig, 2, (when_t){.delay_ms = DAY_MS + HOUR_MS, .ttl_ms = HOUR_MS});
    rig_restart (rig);
    relink (rig);
    rig_register (rig, 1, WORKER, "q", 9);
    live (rig, 3000);
    assert_phase (rig, 1, TMQ_PHASE_SCHEDULED);
    rig_fail_commit (rig);
    relink (rig);
    rig_register (rig, 1, WORKER, "q", 9);
    live (rig, 4000);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_phase (rig, 2, TMQ_PHASE_SCHEDULED);
}

/* Start deadlines. */

static void a_task_that_is_still_queued_at_its_start_by_fails (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, (when_t){.start_by_ms = 5000});
    uint64_t wait = rig_wait (rig, 0, 1, 1, 60000);
    live (rig, 4000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    live (rig, 2500);
    assert_failed (rig, 1, TMQ_TASK_ERROR_START_MISSED);
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status, TMQ_STATUS_FAILED);
    assert_false (rig_task (rig, 0, 1)->dead);
}

/* What could only fail is refused, where it can be known. */
static void a_start_by_that_nothing_can_keep_is_refused (void **state)
{
    rig_t *rig = *state;
    const struct {
        uint64_t start_by_ms, delay_ms, at_ms;
        int code;
    } cases[] = {{0, 0, 0, TMQ_INVALID},       {1, 0, 0, TMQ_OK},
                 {5000, 5000, 0, TMQ_INVALID}, {5001, 5000, 0, TMQ_OK},
                 {5000, 0, 5000, TMQ_INVALID}, {5001, 0, 5000, TMQ_OK}};
    const uint64_t now_ms = (uint64_t) rig->now.wall_ms;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
        extra.start_by = now_ms + cases[i].start_by_ms;
        spec.delay_ms = cases[i].delay_ms;
        spec.not_before = cases[i].at_ms ? now_ms + cases[i].at_ms : 0;
        spec.extra = &extra;
        const uint64_t submit = rig_submit_spec (rig, 0, i + 1, &spec, "p");
        rig_settle (rig);
        assert_int_equal (rig_reply (rig, 0, submit)->reply->submitted->items[0]->code,
                          cases[i].code);
    }
}

static void it_is_never_claimed_after_it (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, (when_t){.start_by_ms = 5000});
    rig->now.wall_ms += 5001; /* nothing has ticked since */
    rig->now.mono_ms += 5001;
    rig_register (rig, 1, WORKER, "q", 9);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_failed (rig, 1, TMQ_TASK_ERROR_START_MISSED);
}

static void one_that_was_claimed_in_time_goes_on (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 9);
    submit (rig, 1, (when_t){.start_by_ms = 5000});
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    assert_true (assignment->extra->start_by > 0);
    rig_started (rig, 1, assignment);
    live (rig, 8000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    rig_fail (rig, 1, assignment, 7, false);
    live (rig, 2000);
    assert_failed (rig, 1, TMQ_TASK_ERROR_START_MISSED);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_string_equal (task->error->message, "the task was still queued at its start_by; its "
                                               "last error: 7 it broke");
}

static void the_earlier_of_its_ends_counts (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, (when_t){.start_by_ms = 9000, .ttl_ms = 5000});
    submit (rig, 2, (when_t){.start_by_ms = 3000, .ttl_ms = 60000});
    live (rig, 7100);
    assert_failed (rig, 1, TMQ_TASK_ERROR_EXPIRED);
    assert_failed (rig, 2, TMQ_TASK_ERROR_START_MISSED);
}

static void a_start_by_stands_after_a_restart (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, (when_t){.start_by_ms = 5000});
    submit (rig, 2, (when_t){.start_by_ms = 60000});
    rig_restart (rig);
    relink (rig);
    live (rig, 7000);
    assert_failed (rig, 1, TMQ_TASK_ERROR_START_MISSED);
    assert_phase (rig, 2, TMQ_PHASE_READY);
}

/* The bound of an attempt. */

static const Taskmq__Assignment *running (rig_t *rig, uint32_t max_attempts)
{
    rig_register (rig, 1, WORKER, "q", 9);
    submit (rig, 1, (when_t){.max_runtime_ms = 5000, .max_attempts = max_attempts});
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    assert_int_equal (assignment->extra->max_runtime_ms, 5000);
    live (rig, 20000); /* a prefetched task is not running */
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    rig_started (rig, 1, assignment);
    return assignment;
}

static const Taskmq__CancelNotice *newest_cancel (const rig_t *rig, size_t peer)
{
    const rig_peer_t *to = &rig->peers[peer];
    for (size_t i = to->count; i-- > 0;)
        if (to->items[i].cancel != NULL)
            return to->items[i].cancel;
    return NULL;
}

/* It was cancelled and is queued again: nothing is left of the attempt but its lease. */
static void an_attempt_that_was_withdrawn_has_no_bound (void **state)
{
    rig_t *rig = *state;
    running (rig, 3);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    live (rig, 6000);
    assert_phase (rig, 1, TMQ_PHASE_BLOCKED);
    rig_restart (rig);
    relink (rig);
    rig_settle (rig);
    assert_phase (rig, 1, TMQ_PHASE_BLOCKED);
    rig_advance (rig, 10 * 60 * 1000);
    assert_phase (rig, 1, TMQ_PHASE_READY);
    assert_int_equal (rig_task (rig, 0, 1)->failures, 0);
}

static void the_time_of_a_question_does_not_count (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = running (rig, 3);
    live (rig, 4000);
    rig_ask (rig, 1, assignment, "key", "1");
    rig_settle (rig);
    live (rig, 20000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    rig_answer (rig, 0, 1, "key", "2");
    rig_settle (rig);
    live (rig, 4000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    assert_int_equal (rig_task (rig, 0, 1)->failures, 0);
    live (rig, 2000);
    assert_int_equal (rig_task (rig, 0, 1)->failures, 1);
}

static void an_attempt_ends_at_its_max_runtime (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = running (rig, 0);
    live (rig, 4900);
    assert_null (newest_cancel (rig, 1));
    live (rig, 200);
    const Taskmq__CancelNotice *notice = newest_cancel (rig, 1);
    assert_non_null (notice);
    assert_int_equal (notice->code, TMQ_TASK_ERROR_MAX_RUNTIME);
    assert_int_equal (notice->attempt, 1);
    assert_string_equal (notice->message, "the attempt ran longer than allowed");
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->failures, 1);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_MAX_RUNTIME);
    uint64_t renew = rig_renew (rig, 1, WORKER, assignment);
    uint64_t late = rig_complete (rig, 1, assignment, "late");
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 1, renew)->reply->renewed->leases[0]->code, TMQ_STALE_LEASE);
    assert_int_equal (rig_code (rig, 1, late), TMQ_STALE_LEASE);
    live (rig, 2000);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void the_last_attempt_leaves_the_task_dead (void **state)
{
    rig_t *rig = *state;
    running (rig, 1);
    live (rig, 5100);
    assert_failed (rig, 1, TMQ_TASK_ERROR_MAX_RUNTIME);
    assert_true (rig_task (rig, 0, 1)->dead);
}

static void an_outcome_in_time_that_was_not_read_yet_counts (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = running (rig, 0);
    live (rig, 4000);
    rig->heard_ms = rig->now.mono_ms; /* a flood: what arrives from now on waits to be read */
    live (rig, 3000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    rig_complete (rig, 1, assignment, "in time");
    rig->heard_ms = 0;
    live (rig, 1000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_COMPLETED);
}

static void a_bound_stands_after_a_restart (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = running (rig, 0);
    rig_push (rig, 1, assignment, "half way", 0); /* with it the start is stored */
    live (rig, 3000);
    rig_restart (rig);
    relink (rig);
    rig_register_with (rig, 1, WORKER, "q", 1, assignment);
    live (rig, 1500);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    live (rig, 1000);
    assert_int_equal (rig_task (rig, 0, 1)->failures, 1);
}

static void a_cancelled_task_has_no_bound (void **state)
{
    rig_t *rig = *state;
    running (rig, 0);
    live (rig, 1000);
    rig_cancel (rig, 0, 1);
    live (rig, 6000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_CANCELLED);
    assert_int_equal (newest_cancel (rig, 1)->code, 0);
}

/* What stats says of a queue. */

static const Taskmq__QueueDepth *depth (rig_t *rig)
{
    uint64_t stats = rig_stats (rig, 0);
    rig_settle (rig);
    const Taskmq__StatsReport *report = rig_reply (rig, 0, stats)->reply->stats;
    assert_int_equal (report->n_queues, 1);
    return report->queues[0];
}

static void a_queue_says_what_it_had_and_how_long_its_oldest_waits (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    live (rig, 7000);
    rig_submit (rig, 0, 2, "q", "p");
    live (rig, 3000);
    assert_in_range (depth (rig)->oldest_ready_ms, 10000, 10100);
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 7, false);
    rig_settle (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 1)->assignment, 7, true);
    live (rig, 2000);
    rig_complete (rig, 1, rig_assignment (rig, 1, 2)->assignment, "done");
    rig_settle (rig);
    const Taskmq__QueueDepth *found = depth (rig);
    assert_int_equal (found->submitted, 2);
    assert_int_equal (found->completed, 1);
    assert_int_equal (found->failed, 1);
    assert_int_equal (found->attempts_failed, 2);
    assert_int_equal (found->oldest_ready_ms, 0);
}

/* A message of 4 KiB in characters of two bytes, which the row of the attempt cuts between two. */
static void a_long_error_message_is_kept (void **state)
{
    rig_t *rig = *state;
    char text[TMQ_ERROR_MESSAGE_BYTES_MAX + 1] = "";
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy (text + i, "\xc3\xa4", 3);
    rig_submit (rig, 0, 1, "q", "p");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    Taskmq__Fail fail = TASKMQ__FAIL__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t request_id[16] = {5};
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    fail.lease = &lease;
    fail.code = 7;
    fail.message = text;
    fail.final = true;
    request.op_case = TASKMQ__REQUEST__OP_FAIL;
    request.fail = &fail;
    request.request_id = (ProtobufCBinaryData){16, request_id};
    rig_send (rig, 1, &request, NULL, 0);
    rig_settle (rig);
    assert_string_equal (rig_task (rig, 0, 1)->error->message, text);
}

#define TEST(NAME) cmocka_unit_test_setup_teardown (NAME, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_delayed_task_waits_and_lives_from_then_on),
        TEST (a_delay_does_not_wait_for_a_clock_set_back),
        TEST (a_time_of_day_follows_the_wall_clock),
        TEST (a_leap_forward_is_not_a_time_of_day_yet),
        TEST (a_time_that_has_passed_is_no_delay),
        TEST (a_delay_goes_on_after_a_restart_and_a_failed_commit),
        TEST (a_task_that_is_still_queued_at_its_start_by_fails),
        TEST (a_start_by_that_nothing_can_keep_is_refused),
        TEST (it_is_never_claimed_after_it),
        TEST (one_that_was_claimed_in_time_goes_on),
        TEST (the_earlier_of_its_ends_counts),
        TEST (a_start_by_stands_after_a_restart),
        TEST (an_attempt_that_was_withdrawn_has_no_bound),
        TEST (the_time_of_a_question_does_not_count),
        TEST (an_attempt_ends_at_its_max_runtime),
        TEST (the_last_attempt_leaves_the_task_dead),
        TEST (an_outcome_in_time_that_was_not_read_yet_counts),
        TEST (a_bound_stands_after_a_restart),
        TEST (a_cancelled_task_has_no_bound),
        TEST (a_queue_says_what_it_had_and_how_long_its_oldest_waits),
        TEST (a_long_error_message_is_kept),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
