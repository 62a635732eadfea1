/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker says of its attempts in the library's core: that they began, progress, messages. */
#include "worker_rig.h"

#include <math.h>
#include <string.h>

static void started_is_told_and_repeated (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_OK);
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_OK);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_STARTED));
    assert_null (rig_find_request (rig, TASKMQ__REQUEST__OP_STARTED));
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    rig_registered (rig, 1, TMQ_OK);
    assert_true (rig->message->requests[0]->register_->leases[0]->started);
    rig_finish (rig, assignment);
}

static void of_progress_the_latest_is_sent (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    size_t sent = 0;
    double newest = 0;
    for (unsigned i = 1; i <= 1000; i++) { /* one each millisecond */
        tmq_progress_t progress = {.done = i + 0.5, .total = 1000.5, .unit = "steps"};
        assert_int_equal (core_worker_progress (worker, assignment, &progress, rig->now_ms, NULL),
                          TMQ_OK);
        rig_pass (rig, 1);
        const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
        if (request != NULL) {
            sent++;
            newest = request->push->progress->done;
            assert_true (newest == i + 0.5 || newest == i - 0.5);
            assert_string_equal (request->push->progress->unit, "steps");
        }
    }
    assert_in_range (sent, 9, 12);
    rig_pass (rig, 100);
    const Taskmq__Request *last = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_true (newest == 1000.5 || (last != NULL && last->push->progress->done == 1000.5));
    const double bad[] = {NAN, INFINITY, -1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tmq_progress_t progress = {.done = bad[i]};
        tmq_error_t error;
        assert_int_equal (core_worker_progress (worker, assignment, &progress, rig->now_ms, &error),
                          TMQ_INVALID);
        assert_string_equal (error.text, "done must be a finite number from 0 up");
        progress = (tmq_progress_t){.total = bad[i]};
        assert_int_equal (core_worker_progress (worker, assignment, &progress, rig->now_ms, &error),
                          TMQ_INVALID);
    }
    rig_finish (rig, assignment);
}

static void say (core_worker_t *worker, rig_t *rig, const tmq_assignment_t *of, const char *text,
                 int64_t timeout_ms)
{
    assert_int_equal (core_worker_message (worker, of, text, (core_target_t){NULL, NULL, NULL},
                                           rig->now_ms + timeout_ms, rig->now_ms, NULL),
                      TMQ_OK);
}

static void messages_are_merged_and_all_answered (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    say (worker, rig, assignment, "first", 5000);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_PUSH, TMQ_OK);
    say (worker, rig, assignment, "second", 5000);
    say (worker, rig, assignment, "third", 5000);
    say (worker, rig, assignment, "fourth", 5000);
    assert_null (rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH)); /* not within 100 ms */
    rig_pass (rig, 100);
    request = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    assert_string_equal (request->push->status_message, "fourth");
    rig_ok (rig, request->id);
    for (int i = 0; i < 3; i++)
        rig_answered (rig, TMQ_OP_PUSH, TMQ_OK);
    rig_no_answer (rig);
    rig_finish (rig, assignment);
}

static void merged_messages_keep_their_deadlines (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    say (worker, rig, assignment, "first", 60000);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH));
    say (worker, rig, assignment, "older", 3000);
    say (worker, rig, assignment, "newer", 1000); /* leads, and has less time */
    rig_pass (rig, 100);
    uint8_t request_id[16];
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    memcpy (request_id, request->request_id.data, 16);
    rig_pass (rig, 900);
    rig_answered (rig, TMQ_OP_PUSH, TMQ_UNKNOWN);
    rig_no_answer (rig);
    request = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH); /* the older one goes on with it */
    assert_non_null (request);
    assert_string_equal (request->push->status_message, "newer");
    assert_memory_equal (request->request_id.data, request_id, 16);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_PUSH, TMQ_OK);
    rig_finish (rig, assignment);
}

static void what_was_said_before_the_end_is_sent_before_it (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    say (worker, rig, assignment, "first", 5000);
    rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    say (worker, rig, assignment, "last words", 5000);
    rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "x");
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 2);
    assert_string_equal (rig->message->requests[0]->push->status_message, "last words");
    assert_int_equal (rig->message->requests[1]->op_case, TASKMQ__REQUEST__OP_COMPLETE);
    rig_finish (rig, assignment);
}

static void a_message_of_a_lost_attempt_is_stale (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    say (worker, rig, assignment, "first", 5000);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    uint64_t number = request->id;
    say (worker, rig, assignment, "second", 5000);
    say (worker, rig, assignment, "third", 5000);
    rig_refuse (rig, number, TMQ_STALE_LEASE, 0);
    for (int i = 0; i < 3; i++)
        rig_answered (rig, TMQ_OP_PUSH, TMQ_STALE_LEASE);
    rig_change (worker, TMQ_ATTEMPT_LOST);
    rig_finish (rig, assignment);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (started_is_told_and_repeated),
        cmocka_unit_test (of_progress_the_latest_is_sent),
        cmocka_unit_test (messages_are_merged_and_all_answered),
        cmocka_unit_test (merged_messages_keep_their_deadlines),
        cmocka_unit_test (what_was_said_before_the_end_is_sent_before_it),
        cmocka_unit_test (a_message_of_a_lost_attempt_is_stale),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
