/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads that have much to look at: they end early, and go on when the others had their turn. */
#include <string.h>

#include "core_rig.h"

enum { TASKS = 50, LOOKS = 10 };

static int setup (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.read_looks_max = LOOKS;
    config.given_reads_max = 1;
    rig_t *rig = rig_new_with (&config);
    *state = rig;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_use_request_id (1);
    for (unsigned n = 1; n <= TASKS; n++)
        rig_submit (rig, 0, n, n == 3 ? "rare" : "q", "");
    rig_settle (rig);
    rig_forget (rig, 0);
    rig->reads = 0;
    return 0;
}

static int teardown (void **state)
{
    rig_free (*state);
    return 0;
}

static void a_count_takes_turns_and_has_one_answer (void **state)
{
    rig_t *rig = *state;
    uint64_t count = rig_count (rig, 0);
    uint64_t list = rig_list (rig, 1, NULL, (ProtobufCBinaryData){0}, 5);
    rig_settle (rig);
    assert_int_equal (rig->reads, TASKS / LOOKS + 1);
    assert_int_equal (rig_replies (rig, 0, count), 1);
    assert_int_equal (rig_reply (rig, 0, count)->reply->counted->count, TASKS);
    assert_int_equal (rig_reply (rig, 1, list)->reply->page->n_tasks, 5);
}

static void the_reads_of_others_come_between_the_turns (void **state)
{
    rig_t *rig = *state;
    rig_count (rig, 0);
    rig_list (rig, 1, NULL, (ProtobufCBinaryData){0}, 5);
    read_t *first = engine_read_next (rig->engine);
    assert_int_equal (first->kind, READ_COUNT);
    first->count = LOOKS;
    first->more = true;
    first->next_number = TASKS + 1 - LOOKS;
    engine_read_done (rig->engine, first, rig->now);
    read_t *second = engine_read_next (rig->engine);
    assert_int_equal (second->kind, READ_LIST);
    engine_read_done (rig->engine, second, rig->now);
    read_t *third = engine_read_next (rig->engine);
    assert_ptr_equal (third, first);
    assert_int_equal (third->before_number, TASKS + 1 - LOOKS);
    assert_int_equal (third->count, LOOKS); /* it is added to */
    engine_read_done (rig->engine, third, rig->now);
}

static void a_count_that_nobody_waits_for_does_not_go_on (void **state)
{
    rig_t *rig = *state;
    rig_count (rig, 0);
    read_t *read = engine_read_next (rig->engine);
    read->more = true;
    read->next_number = 5;
    rig_goodbye (rig, 0);
    engine_read_done (rig->engine, read, rig->now);
    assert_null (engine_read_next (rig->engine));
}

static void a_snapshot_that_finds_little_goes_on (void **state)
{
    rig_t *rig = *state;
    char *rare[] = {(char *) "rare"};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.n_queues = 1;
    filter.queues = rare;
    subscribe.subscription = 7;
    subscribe.filter = &filter;
    subscribe.snapshot = true;
    rig_subscribe_as (rig, 0, &subscribe);
    rig_settle (rig);
    size_t found = 0;
    size_t ends = 0;
    for (size_t i = 0; i < rig->peers[0].count; i++) {
        const Taskmq__Snapshot *snapshot = rig->peers[0].items[i].snapshot;
        if (snapshot == NULL)
            continue;
        for (size_t k = 0; k < snapshot->n_tasks; k++)
            assert_memory_equal (snapshot->tasks[k]->task_id.data, rig_id (3).bytes, 16);
        found += snapshot->n_tasks;
        ends += snapshot->last ? 1 : 0;
    }
    assert_int_equal (found, 1);
    assert_int_equal (ends, 1);
    assert_int_equal (rig->reads, TASKS / LOOKS);
}

/* The tables learn of a start and of progress some seconds later; a list need not wait for it. */
static void a_list_shows_what_a_worker_has_just_said (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, TASKS + 1, "live", "");
    rig_register (rig, 1, 1, "live", 1);
    rig_settle (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    uint64_t before = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0}, 1);
    rig_settle (rig);
    assert_int_equal (rig_reply (rig, 0, before)->reply->page->tasks[0]->started_at, 0);
    rig_started (rig, 1, assignment);
    rig_push (rig, 1, assignment, "", 3);
    rig_run (rig);
    uint64_t list = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0}, 2);
    rig_settle (rig);
    const Taskmq__TaskPage *page = rig_reply (rig, 0, list)->reply->page;
    assert_int_equal (page->n_tasks, 2);
    assert_true (page->tasks[0]->started_at > 0);
    assert_non_null (page->tasks[0]->progress);
    assert_true (page->tasks[0]->progress->done == 3);
    assert_int_equal (page->tasks[1]->started_at, 0); /* nobody works on that one */
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_count_takes_turns_and_has_one_answer),
        TEST (the_reads_of_others_come_between_the_turns),
        TEST (a_count_that_nobody_waits_for_does_not_go_on),
        TEST (a_snapshot_that_finds_little_goes_on),
        TEST (a_list_shows_what_a_worker_has_just_said),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
