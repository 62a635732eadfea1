/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The life of a task through the engine: submitted, claimed, finished, in all ways, and who is told
 * when. */
#include <string.h>

#include "core_rig.h"

static int setup (void **state)
{
    *state = rig_new ();
    rig_link (*state, 0, "default");
    rig_link (*state, 1, "default");
    rig_use_request_id (1);
    return 0;
}

static int teardown (void **state)
{
    rig_free (*state);
    return 0;
}

static void a_task_is_submitted_worked_on_and_fetched (void **state)
{
    rig_t *rig = *state;
    uint64_t submit = rig_submit (rig, 0, 1, "q", "hello");
    rig_outputs (rig);
    assert_null (rig_reply (rig, 0, submit)); /* not before it is durable */
    rig_run (rig);
    const rig_item_t *item = rig_reply (rig, 0, submit);
    assert_non_null (item);
    assert_int_equal (item->reply->submitted->n_items, 1);
    assert_int_equal (item->reply->submitted->items[0]->code, TMQ_OK);
    assert_int_equal (item->reply->submitted->items[0]->status, TMQ_STATUS_QUEUED);
    rig_register (rig, 1, 100, "q", 1);
    rig_run (rig);
    const rig_item_t *assigned = rig_assignment (rig, 1, 0);
    assert_non_null (assigned);
    assert_int_equal (assigned->body_bytes, 5);
    assert_memory_equal (assigned->body, "hello", 5);
    assert_int_equal (assigned->assignment->attempt, 1);
    assert_int_equal (assigned->assignment->number, 1);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    rig_started (rig, 1, assigned->assignment);
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    rig_run (rig);
    assert_null (rig_reply (rig, 0, wait));
    uint64_t complete = rig_complete (rig, 1, assigned->assignment, "world");
    rig_outputs (rig);
    assert_null (rig_reply (rig, 1, complete));
    assert_null (rig_reply (rig, 0, wait));
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_OK);
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status,
                      TMQ_STATUS_COMPLETED);
    rig_settle (rig); /* out of memory now, into the tables */
    uint64_t result = rig_result (rig, 0, 1);
    rig_run (rig);
    item = rig_reply (rig, 0, result);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->body_bytes, 5);
    assert_memory_equal (item->body, "world", 5);
    assert_string_equal (item->reply->task->result_type, "text/plain");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_task_is_submitted_worked_on_and_fetched, setup,
                                         teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
