/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A paused session beside everything else that holds a task back. */
#include <stdio.h>
#include <string.h>

#include "session_stage.h"

static void a_paused_session_gives_nothing_to_workers (void **state)
{
    rig_t *rig = *state;
    stage_submit (rig, 1, "trip"); /* it is ready, and stands before the others */
    stage_pause (rig);
    stage_submit (rig, 2, "trip");
    stage_submit (rig, 3, "");
    stage_submit (rig, 4, "else");
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_PAUSED);
    assert_int_equal (rig_task (rig, 0, 2)->phase, TMQ_PHASE_PAUSED);
    stage_complete_all (rig);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    tmq_id_t first = rig_id (1); /* they have kept their order */
    assert_memory_equal (rig_assignment (rig, 1, 0)->assignment->task_id.data, first.bytes, 16);
}

static void a_pause_survives_a_restart (void **state)
{
    rig_t *rig = *state;
    stage_submit (rig, 1, "trip");
    stage_pause (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    stage_assert_held (rig, 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

/* Both hold it: it goes when both let it go, in either order. */
static void queue_and_session_are_paused (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    for (unsigned n = 1; n <= 4; n++) {
        bool queue_first = n % 2 == 1;
        bool session_before = n <= 2;
        if (session_before)
            stage_pause (rig);
        assert_int_equal (rig_code (rig, 0, stage_send_queue (rig, true)), TMQ_OK);
        stage_submit (rig, n, "trip");
        if (!session_before)
            stage_pause (rig);
        stage_assert_held (rig, n);
        if (queue_first)
            stage_send_queue (rig, false);
        else
            stage_resume (rig);
        stage_assert_held (rig, n);
        if (queue_first)
            stage_resume (rig);
        else
            stage_send_queue (rig, false);
        assert_int_equal (rig_assignments (rig, 1), 1);
        stage_complete_all (rig);
    }
}

static void a_delay_ends_in_a_pause (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    rig_register (rig, 1, 90, "q", 5);
    spec.delay_ms = 1000;
    stage_submit_spec (rig, 1, "trip", &spec);
    stage_pause (rig);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_SCHEDULED);
    rig_advance (rig, 2000);
    stage_assert_held (rig, 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_session_goes_on_before_a_delay_ends (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    rig_register (rig, 1, 90, "q", 5);
    stage_pause (rig);
    spec.delay_ms = 1000;
    stage_submit_spec (rig, 1, "trip", &spec);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    rig_advance (rig, 2000);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_retried_task_is_held (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    stage_submit (rig, 1, "trip");
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, true);
    rig_settle (rig);
    rig_forget (rig, 1);
    stage_pause (rig);
    rig_use_request_id (77);
    uint64_t retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_OK);
    stage_assert_held (rig, 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_failed_attempt_is_tried_again_after_the_pause (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    stage_submit (rig, 1, "trip");
    stage_pause (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, false);
    rig_settle (rig);
    rig_forget (rig, 1);
    rig_advance (rig, 3000);
    stage_assert_held (rig, 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_lost_lease_goes_back_into_the_pause (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    stage_submit (rig, 1, "trip");
    assert_int_equal (rig_assignments (rig, 1), 1);
    stage_pause (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING); /* nothing is taken away */
    rig_leave (rig, 1, 90);
    rig_settle (rig);
    rig_forget (rig, 1);
    rig_register (rig, 1, 91, "q", 5);
    rig_advance (rig, 3000);
    stage_assert_held (rig, 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_dependency_ends_in_a_pause (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Dependency entry = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *after[] = {&entry};
    tmq_id_t id = rig_id (1);
    rig_register (rig, 1, 90, "q", 5);
    stage_submit (rig, 1, "");
    entry.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    extra.after = after;
    extra.n_after = 1;
    spec.extra = &extra;
    stage_submit_spec (rig, 2, "trip", &spec);
    stage_pause (rig);
    assert_int_equal (rig_task (rig, 0, 2)->phase, TMQ_PHASE_BLOCKED);
    stage_complete_all (rig);
    stage_assert_held (rig, 2);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_held_task_expires_and_is_cancelled (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    stage_pause (rig);
    spec.ttl_ms = 5000;
    stage_submit_spec (rig, 1, "trip", &spec);
    stage_submit (rig, 2, "trip");
    rig_cancel (rig, 0, 2);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_CANCELLED);
    rig_advance (rig, 7000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
    assert_int_equal (stage_show (rig, 0, "trip")->session->tasks, 0);
    stage_resume (rig);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
}

/* A cap is used by others while the session is paused, and counts when it goes on. */
static void a_pause_stands_beside_caps (void **state)
{
    rig_t *rig = *state;
    stage_set_queue (rig, TMQ_QUEUE_FIELD_MAX_RUNNING, 1);
    rig_register (rig, 1, 90, "q", 5);
    stage_pause (rig);
    stage_submit (rig, 1, "trip");
    stage_submit (rig, 2, "");
    assert_int_equal (rig_assignments (rig, 1), 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_READY);
    stage_complete_all (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void a_pause_stands_beside_caps_of_keys (void **state)
{
    rig_t *rig = *state;
    stage_set_queue (rig, TMQ_QUEUE_FIELD_WEIGHT_OF, TMQ_WEIGHT_OF_SESSION);
    stage_set_queue (rig, TMQ_QUEUE_FIELD_MAX_PER_KEY, 1);
    for (unsigned n = 1; n <= 3; n++)
        stage_submit (rig, n, "trip");
    stage_submit (rig, 4, "else");
    stage_pause (rig);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    stage_resume (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    stage_complete_all (rig);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_WORKING);
    assert_int_equal (rig_status (rig, 0, 3), TMQ_STATUS_QUEUED);
}

static void what_is_held_comes_back_some_in_each_round (void **state)
{
    enum { TASKS = 100 };
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.alarms = 10;
    config.round.assignments = 10;
    (void) state;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= TASKS; n++)
        stage_submit (rig, n, "trip");
    stage_submit (rig, TASKS + 1, "");
    stage_pause (rig);
    rig_register (rig, 1, 90, "q", TASKS);
    for (unsigned i = 0; i < TASKS / 5; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1); /* behind all that are held */
    stage_complete_all (rig);
    stage_resume (rig);
    for (unsigned i = 0; i < TASKS / 5; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), TASKS);
    rig_free (rig);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (a_paused_session_gives_nothing_to_workers),
        TEST (a_pause_survives_a_restart),
        TEST (queue_and_session_are_paused),
        TEST (a_delay_ends_in_a_pause),
        TEST (a_session_goes_on_before_a_delay_ends),
        TEST (a_retried_task_is_held),
        TEST (a_failed_attempt_is_tried_again_after_the_pause),
        TEST (a_lost_lease_goes_back_into_the_pause),
        TEST (a_dependency_ends_in_a_pause),
        TEST (a_held_task_expires_and_is_cancelled),
        TEST (a_pause_stands_beside_caps),
        TEST (a_pause_stands_beside_caps_of_keys),
        cmocka_unit_test (what_is_held_comes_back_some_in_each_round),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
