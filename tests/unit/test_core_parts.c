/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that are parts of others. */
#include <string.h>

#include "core_rig.h"

enum { OWNER = 0, WORKER = 1 };

static uint64_t submit_part (rig_t *rig, unsigned n, unsigned parent)
{
    tmq_id_t id = rig_id (parent);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    extra.parent = (ProtobufCBinaryData){sizeof (id), id.bytes};
    spec.extra = &extra;
    return rig_submit_spec (rig, OWNER, n, &spec, "");
}

static void expect_item (rig_t *rig, uint64_t request, tmq_code_t code, const char *text)
{
    rig_run (rig);
    const Taskmq__SubmittedItem *item = rig_reply (rig, OWNER, request)->reply->submitted->items[0];
    assert_int_equal (item->code, code);
    assert_true (text == NULL || strstr (item->text, text) != NULL);
}

static void expect_part (rig_t *rig, unsigned n, unsigned parent, unsigned depth, bool has_parts)
{
    tmq_id_t id = rig_id (parent);
    const Taskmq__Extra *extra = rig_task (rig, OWNER, n)->extra;
    assert_int_equal (extra->parent.len, parent == 0 ? 0 : sizeof (id));
    if (parent != 0)
        assert_memory_equal (extra->parent.data, id.bytes, sizeof (id));
    assert_int_equal (extra->depth, depth);
    assert_int_equal (extra->has_parts, has_parts);
}

/* A task that has ended, and that only the tables have. */
static void end_one (rig_t *rig, unsigned n)
{
    rig_submit (rig, OWNER, n, "q", "");
    rig_register (rig, WORKER, 1, "q", 1);
    rig_run (rig);
    const Taskmq__Assignment *assignment =
        rig_assignment (rig, WORKER, rig_assignments (rig, WORKER) - 1)->assignment;
    rig_complete (rig, WORKER, assignment, "done");
    rig_leave (rig, WORKER, 1);
    rig_settle (rig);
}

static void expect_listed (rig_t *rig, unsigned parent, const unsigned *parts, size_t count)
{
    tmq_id_t id = rig_id (parent);
    ProtobufCBinaryData parents[] = {{sizeof (id), id.bytes}};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    filter.parents = parents;
    filter.n_parents = 1;
    uint64_t request = rig_list (rig, OWNER, &filter, (ProtobufCBinaryData){0}, 10);
    rig_settle (rig);
    const Taskmq__TaskPage *page = rig_reply (rig, OWNER, request)->reply->page;
    assert_int_equal (page->n_tasks, count);
    for (size_t i = 0; i < count; i++) {
        tmq_id_t part = rig_id (parts[i]);
        assert_memory_equal (page->tasks[i]->task_id.data, part.bytes, sizeof (part));
    }
}

static void parts_and_parents_know_of_each_other (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, OWNER, 1, "q", "");
    submit_part (rig, 2, 1);
    submit_part (rig, 3, 1);
    submit_part (rig, 4, 2);
    expect_part (rig, 1, 0, 0, true);
    expect_part (rig, 2, 1, 1, true);
    expect_part (rig, 3, 1, 1, false);
    expect_part (rig, 4, 2, 2, false);
    expect_listed (rig, 1, (unsigned[]){3, 2}, 2);
    expect_listed (rig, 2, (unsigned[]){4}, 1);
    expect_listed (rig, 4, NULL, 0);
    rig_cancel (rig, OWNER, 1); /* which is not of its parts */
    rig_restart (rig);
    rig_link (rig, OWNER, "default");
    expect_part (rig, 1, 0, 0, true);
    expect_part (rig, 4, 2, 2, false);
    assert_int_equal (rig_status (rig, OWNER, 2), TMQ_STATUS_QUEUED);
}

static void a_task_that_has_ended_may_get_parts (void **state)
{
    rig_t *rig = *state;
    end_one (rig, 1);
    submit_part (rig, 2, 1);
    expect_part (rig, 1, 0, 0, true);
    rig_settle (rig); /* it has left memory again */
    expect_part (rig, 1, 0, 0, true);
    assert_int_equal (rig_status (rig, OWNER, 1), TMQ_STATUS_COMPLETED);
    /* Another part changes nothing of it, and it can be removed all the same. */
    submit_part (rig, 3, 1);
    rig_settle (rig);
    uint64_t purge = rig_change (rig, OWNER, TASKMQ__REQUEST__OP_PURGE, 1, 1);
    rig_run (rig);
    assert_int_equal (rig_changed (rig, OWNER, purge), TMQ_OK);
    expect_part (rig, 2, 1, 1, false);
    expect_item (rig, submit_part (rig, 4, 1), TMQ_NOT_FOUND, "there is no task");
}

static void a_repeated_part_is_the_same (void **state)
{
    rig_t *rig = *state;
    end_one (rig, 1);
    submit_part (rig, 2, 1);
    rig_settle (rig);
    rig_change (rig, OWNER, TASKMQ__REQUEST__OP_PURGE, 1, 1);
    rig_run (rig);
    uint64_t repeat = submit_part (rig, 2, 1);
    expect_item (rig, repeat, TMQ_OK, NULL);
    assert_true (rig_reply (rig, OWNER, repeat)->reply->submitted->items[0]->existing);
}

static void what_is_not_there_has_no_parts (void **state)
{
    rig_t *rig = *state;
    expect_item (rig, submit_part (rig, 2, 99), TMQ_NOT_FOUND, "parent: there is no task");
    uint64_t get = rig_get (rig, OWNER, 2);
    rig_run (rig);
    assert_int_equal (rig_code (rig, OWNER, get), TMQ_NOT_FOUND);
}

static void one_that_the_submitter_may_not_see_has_no_parts (void **state)
{
    rig_t *rig = *state;
    rig->peers[OWNER].identity = "me";
    rig->peers[2].identity = "other";
    rig_access (rig, "me uid:1 client(default/q)\nother uid:2 client(default/q)\n");
    rig_link (rig, OWNER, "default");
    rig_link (rig, 2, "default");
    rig_submit (rig, 2, 1, "q", "");
    rig_run (rig);
    expect_item (rig, submit_part (rig, 2, 1), TMQ_NOT_FOUND, "there is no task");
}

static void a_tree_has_so_many_levels (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, OWNER, 1, "q", "");
    for (unsigned n = 2; n <= TMQ_TREE_DEPTH_MAX + 1; n++)
        expect_item (rig, submit_part (rig, n, n - 1), TMQ_OK, NULL);
    expect_part (rig, TMQ_TREE_DEPTH_MAX + 1, TMQ_TREE_DEPTH_MAX, TMQ_TREE_DEPTH_MAX, false);
    expect_item (rig, submit_part (rig, 50, TMQ_TREE_DEPTH_MAX + 1), TMQ_LIMIT,
                 "as many as 32 tasks are above");
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (parts_and_parents_know_of_each_other),
        TEST (a_task_that_has_ended_may_get_parts),
        TEST (a_repeated_part_is_the_same),
        TEST (what_is_not_there_has_no_parts),
        TEST (one_that_the_submitter_may_not_see_has_no_parts),
        TEST (a_tree_has_so_many_levels),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
