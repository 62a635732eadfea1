/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a refusal says: which limit, since when, what became of the task. And what is refused at
 * all: ids from the future, reports of an attempt that is over. */
#include <stdio.h>
#include <string.h>

#include "core/tasks/task.h"
#include "core_rig.h"
#include "ids.h"
#include "units.h"

enum { WORKER = 100, DAY_MS = 24 * 60 * 60 * 1000 };

static const char *text_of (const rig_t *rig, size_t peer, uint64_t request)
{
    return rig_reply (rig, peer, request)->reply->text;
}

static const Taskmq__SubmittedItem *item_of (const rig_t *rig, uint64_t request)
{
    return rig_reply (rig, 0, request)->reply->submitted->items[0];
}

/* A task with such a time to live, claimed by the worker of peer 1. */
static const Taskmq__Assignment *claimed (rig_t *rig, unsigned n, uint64_t ttl_ms)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = ttl_ms;
    rig_submit_spec (rig, 0, n, &spec, "");
    size_t before = rig_assignments (rig, 1);
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    return rig_assignment (rig, 1, before)->assignment;
}

/* Limits. */

static void a_limit_says_its_number_and_when_to_come_back (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_tasks_max = 2;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    uint64_t third = rig_submit (rig, 0, 3, "q", "");
    rig_settle (rig);
    assert_int_equal (item_of (rig, third)->code, TMQ_LIMIT);
    assert_true (item_of (rig, third)->retry_after_ms > 0);
    assert_string_equal (item_of (rig, third)->text, "live tasks: 2, as many as there may be");
    rig_free (rig);
}

static void a_wait_for_too_many_says_how_many_may_be (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 1000; n++)
        rig_submit (rig, 0, n, "q", "");
    for (unsigned i = 0; i < 10; i++)
        rig_wait (rig, 0, 1, 1000, 0);
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, wait), TMQ_LIMIT);
    assert_true (rig_reply (rig, 0, wait)->reply->retry_after_ms > 0);
    assert_non_null (strstr (text_of (rig, 0, wait), "10000"));
}

/* However the workers came there. */
static void a_link_has_only_so_many_workers (void **state)
{
    enum { WORKERS = 1000 };
    rig_t *rig = *state;
    uint64_t last = 0;
    rig_link (rig, 2, "default");
    rig_register (rig, 1, WORKERS + 1, "q", 1);
    for (unsigned n = 1; n <= WORKERS; n++)
        last = rig_register (rig, 2, n, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, last), TMQ_OK);
    uint64_t another = rig_register (rig, 2, WORKERS + 2, "q", 1);
    uint64_t moved = rig_register (rig, 2, WORKERS + 1, "q", 1);
    uint64_t again = rig_register (rig, 2, WORKERS, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 2, another), TMQ_LIMIT);
    assert_int_equal (rig_code (rig, 2, moved), TMQ_LIMIT);
    assert_true (rig_reply (rig, 2, moved)->reply->retry_after_ms > 0);
    assert_int_equal (rig_code (rig, 2, again), TMQ_OK);
}

static void a_task_that_ended_makes_room_at_once (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_tasks_max = 1;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 1, "q", "");
    rig_cancel (rig, 0, 1);
    rig_run (rig); /* its row is not written yet */
    uint64_t second = rig_submit (rig, 0, 2, "q", "");
    uint64_t third = rig_submit (rig, 0, 3, "q", "");
    rig_settle (rig);
    assert_int_equal (item_of (rig, second)->code, TMQ_OK);
    assert_int_equal (item_of (rig, third)->code, TMQ_LIMIT);
    rig_cancel (rig, 0, 2);
    rig_settle (rig); /* it left memory */
    uint64_t fourth = rig_submit (rig, 0, 4, "q", "");
    rig_settle (rig);
    assert_int_equal (item_of (rig, fourth)->code, TMQ_OK);
    rig_free (rig);
}

static void a_submit_that_is_refused_is_not_looked_up (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.dirty_tasks_soft = 1;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig); /* it is in the tables only */
    rig_submit (rig, 0, 2, "q", "");
    rig_run (rig);
    size_t loads = rig->loads;
    uint64_t submit = rig_submit (rig, 0, 1, "q", "");
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OVERLOADED);
    assert_int_equal (rig->loads, loads);
    rig_free (rig);
}

/* Ids. */

static uint64_t submit_at (rig_t *rig, int64_t made_ms)
{
    tmq_id_t id = rig_id (1);
    for (unsigned i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t) (made_ms >> (40 - 8 * i));
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    uint64_t submit = rig_submit_spec (rig, 0, 1, &spec, "");
    rig_settle (rig);
    return submit;
}

static void an_id_from_the_far_future_is_refused (void **state)
{
    rig_t *rig = *state;
    uint64_t near = submit_at (rig, rig->now.wall_ms + DAY_MS);
    assert_int_equal (item_of (rig, near)->code, TMQ_OK);
    uint64_t far = submit_at (rig, rig->now.wall_ms + DAY_MS + 1);
    assert_int_equal (item_of (rig, far)->code, TMQ_INVALID);
    assert_non_null (strstr (item_of (rig, far)->text, "a day ahead"));
}

static void an_id_that_is_named_twice_in_a_wait_is_answered_once (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    rig_cancel (rig, 0, 2);
    rig_settle (rig);
    tmq_id_t ids[3] = {rig_id (1), rig_id (2), rig_id (3)}; /* open, ended, not there */
    ProtobufCBinaryData named[9];
    for (unsigned i = 0; i < 9; i++)
        named[i] = (ProtobufCBinaryData){sizeof (ids[0]), ids[i % 3].bytes};
    Taskmq__Wait wait = TASKMQ__WAIT__INIT;
    wait.task_ids = named;
    wait.n_task_ids = 9;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_WAIT;
    request.wait = &wait;
    uint64_t asked = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    const Taskmq__Reply *reply = rig_reply (rig, 0, asked)->reply;
    assert_int_equal (reply->waited->n_items, 2);
    assert_true (reply->more);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_replies (rig, 0, asked), 2);
    reply = rig_reply (rig, 0, asked)->reply;
    assert_int_equal (reply->waited->n_items, 1);
    assert_false (reply->more);
}

/* Since when. */

static void expired_says_when (void **state)
{
    rig_t *rig = *state;
    char at[TIME_TEXT_SIZE];
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = 10000;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_true (time_format (at, rig->now.wall_ms + 10000));
    rig_advance (rig, 10001);
    uint64_t get = rig_get (rig, 0, 1);
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    uint64_t submit = rig_submit_spec (rig, 0, 1, &spec, "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_EXPIRED);
    assert_non_null (strstr (text_of (rig, 0, get), at));
    assert_non_null (strstr (rig_reply (rig, 0, wait)->reply->waited->items[0]->text, at));
    assert_int_equal (item_of (rig, submit)->code, TMQ_EXPIRED);
    assert_non_null (strstr (item_of (rig, submit)->text, at));
}

/* Attempts that are over. */

static void a_stale_report_says_what_became_of_the_task (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = claimed (rig, 1, 0);
    rig_release (rig, 1, first, false);
    rig_settle (rig);
    rig_use_request_id (2);
    uint64_t late = rig_fail (rig, 1, first, 5, false);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, late), TMQ_STALE_LEASE);
    assert_string_equal (
        text_of (rig, 1, late),
        "the lease of attempt 1 is over: the task is queued, its newest attempt is 1");
    rig_advance (rig, 2000);
    const Taskmq__Assignment *second = rig_assignment (rig, 1, 1)->assignment;
    rig_fail (rig, 1, second, 7, true);
    rig_use_request_id (3);
    uint64_t after = rig_release (rig, 1, second, false);
    rig_settle (rig);
    assert_string_equal (
        text_of (rig, 1, after),
        "the lease of attempt 2 is over: the task is failed, its newest attempt is 2");
}

static void reports_about_a_removed_task_say_so (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, 1, 1000);
    rig_complete (rig, 1, assignment, "done");
    rig_settle (rig);
    rig_advance (rig, 2000);
    uint64_t started = rig_started (rig, 1, assignment);
    uint64_t push = rig_push (rig, 1, assignment, "hello", 0);
    uint64_t ack = rig_cancel_ack (rig, 1, assignment);
    uint64_t complete = rig_complete (rig, 1, assignment, "done");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, started), TMQ_EXPIRED);
    assert_int_equal (rig_code (rig, 1, push), TMQ_EXPIRED);
    assert_int_equal (rig_code (rig, 1, ack), TMQ_EXPIRED);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_EXPIRED);
}

static void a_task_that_comes_back_too_often_says_that (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.max_attempts = 1;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    for (unsigned n = 0; n < TMQ_UNCOUNTED_COUNT_FROM; n++) {
        while (rig_assignments (rig, 1) <= n) {
            rig_worker_credit (rig, 1, WORKER, n, 1); /* it is heard */
            rig_advance (rig, 1000);
        }
        rig_use_request_id (n + 10);
        rig_release (rig, 1, rig_assignment (rig, 1, n)->assignment, false);
        rig_settle (rig);
    }
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_string_equal (task->error->message,
                         "the task came back 10 times in a row without an outcome");
}

static void messages_that_are_repeated_in_a_row_are_stored_once (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, 1, 0);
    for (unsigned round = 0; round < 2; round++)
        for (unsigned n = 1; n <= PUSHES_KEPT + 1; n++) {
            rig_use_request_id (20 + n);
            uint64_t push = rig_push (rig, 1, assignment, "message", 0);
            rig_settle (rig);
            assert_int_equal (rig_code (rig, 1, push), TMQ_OK);
        }
    /* submitted, claimed, the messages */
    assert_int_equal (rig_task (rig, 0, 1)->seq, 2 + PUSHES_KEPT + 1);
}

/* The time to live of a task that came back. */

static void a_task_that_comes_back_has_its_time_to_live_again (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, 1, 5000);
    rig_advance (rig, 6000); /* it outlives it at work */
    rig_fail (rig, 1, assignment, 7, false);
    rig_settle (rig);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->error->code, 7);
    assert_int_equal (task->expires_at, rig->now.wall_ms + 5000);
    rig_advance (rig, 2000);
    assert_int_equal (rig_task (rig, 0, 1)->attempt, 2);
}

static void what_expires_after_an_attempt_keeps_its_error (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig, 1, 5000);
    rig_fail (rig, 1, assignment, 7, false);
    rig_leave (rig, 1, WORKER);
    rig_settle (rig);
    const char *message = rig_task (rig, 0, 1)->error->message;
    rig_advance (rig, 6000);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_EXPIRED);
    assert_non_null (strstr (task->error->message, "claimed again; its last error: 7 "));
    assert_non_null (strstr (task->error->message, message));
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_limit_says_its_number_and_when_to_come_back),
        TEST (a_wait_for_too_many_says_how_many_may_be),
        TEST (a_link_has_only_so_many_workers),
        cmocka_unit_test (a_task_that_ended_makes_room_at_once),
        cmocka_unit_test (a_submit_that_is_refused_is_not_looked_up),
        TEST (an_id_from_the_far_future_is_refused),
        TEST (an_id_that_is_named_twice_in_a_wait_is_answered_once),
        TEST (expired_says_when),
        TEST (a_stale_report_says_what_became_of_the_task),
        TEST (reports_about_a_removed_task_say_so),
        TEST (messages_that_are_repeated_in_a_row_are_stored_once),
        TEST (a_task_that_comes_back_too_often_says_that),
        TEST (a_task_that_comes_back_has_its_time_to_live_again),
        TEST (what_expires_after_an_attempt_keeps_its_error),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
