/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Many who wait: they are answered, and freed, in as many rounds as it takes. */
#include <string.h>

#include "core_rig.h"

enum { WAITS = 100, ROUND = 20, TURN = 64 };

static rig_t *new_rig (size_t waits, size_t endings)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.waits = waits;
    config.round.endings = endings;
    rig_t *rig = rig_new_with (&config);
    for (size_t peer = 0; peer < 3; peer++)
        rig_link (rig, peer, "default");
    rig_use_request_id (1);
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    rig_settle (rig);
    return rig;
}

/* The peer waits for task 1 so many times. */
static void wait_often (rig_t *rig, size_t peer, uint64_t requests[WAITS], uint32_t deadline_ms)
{
    for (size_t i = 0; i < WAITS; i++)
        requests[i] = rig_wait (rig, peer, 1, 1, deadline_ms);
}

static size_t answered (const rig_t *rig, size_t peer, const uint64_t requests[WAITS])
{
    size_t count = 0;
    for (size_t i = 0; i < WAITS; i++)
        count += rig_replies (rig, peer, requests[i]);
    return count;
}

/* One round, and what leaves by it; whether the next one is wanted at once. */
static bool round_leaves_more (rig_t *rig)
{
    engine_round (rig->engine);
    int64_t next = engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    rig_commit (rig);
    rig_outputs (rig);
    return next <= rig->now.mono_ms;
}

static uint64_t gauge (rig_t *rig, const char *name)
{
    uint64_t request = rig_stats (rig, 0);
    rig_settle (rig);
    const Taskmq__StatsReport *stats = rig_reply (rig, 0, request)->reply->stats;
    for (size_t i = 0; i < stats->n_counters; i++)
        if (strcmp (stats->counters[i]->name, name) == 0)
            return stats->counters[i]->value;
    fail_msg ("no number %s", name);
    return 0;
}

static void all_who_wait_for_a_task_are_answered_in_rounds (void **state)
{
    (void) state;
    uint64_t requests[WAITS];
    rig_t *rig = new_rig (ROUND, WAITS);
    wait_often (rig, 1, requests, 0);
    rig_cancel (rig, 0, 1);
    rig_commit (rig);
    rig_outputs (rig);
    assert_int_equal (answered (rig, 1, requests), ROUND);
    rig_write (rig); /* the task leaves memory, and its answers are still owed */
    for (size_t done = ROUND; done < WAITS; done += ROUND) {
        assert_int_equal (answered (rig, 1, requests), done);
        assert_true (round_leaves_more (rig) == (done + ROUND < WAITS));
    }
    assert_int_equal (answered (rig, 1, requests), WAITS);
    for (size_t i = 0; i < WAITS; i++) {
        const Taskmq__Waited *waited = rig_reply (rig, 1, requests[i])->reply->waited;
        assert_int_equal (waited->items[0]->status, TMQ_STATUS_CANCELLED);
        assert_memory_equal (waited->items[0]->task_id.data, rig_id (1).bytes, sizeof (tmq_id_t));
    }
    assert_int_equal (gauge (rig, "waits"), 0);
    rig_free (rig);
}

static void who_waits_for_another_task_has_a_turn (void **state)
{
    (void) state;
    uint64_t requests[WAITS];
    rig_t *rig = new_rig (1, WAITS);
    wait_often (rig, 1, requests, 0);
    uint64_t other = rig_wait (rig, 2, 2, 1, 0);
    rig_cancel (rig, 0, 1);
    rig_commit (rig);
    rig_cancel (rig, 0, 2); /* behind many others */
    size_t rounds = 0;
    for (; rig_replies (rig, 2, other) == 0; rounds++)
        assert_true (round_leaves_more (rig));
    assert_in_range (rounds, 0, TURN + 2);
    assert_in_range (answered (rig, 1, requests), 1, WAITS - 1);
    rig_free (rig);
}

static void what_a_link_waited_for_is_freed_in_rounds (void **state)
{
    (void) state;
    uint64_t requests[WAITS];
    rig_t *rig = new_rig (WAITS, ROUND);
    wait_often (rig, 1, requests, 0);
    uint64_t other = rig_wait (rig, 2, 1, 1, 0);
    rig_goodbye (rig, 1);
    size_t rounds = 1;
    while (round_leaves_more (rig))
        rounds++;
    assert_in_range (rounds, WAITS / ROUND, WAITS);
    assert_int_equal (gauge (rig, "waits"), 1);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_replies (rig, 2, other), 1);
    assert_int_equal (answered (rig, 1, requests), 0);
    rig_free (rig);
}

static void a_task_may_end_before_those_who_left_are_freed (void **state)
{
    (void) state;
    uint64_t requests[WAITS];
    rig_t *rig = new_rig (ROUND, ROUND);
    wait_often (rig, 1, requests, 0);
    rig_cancel (rig, 0, 1); /* some are answered, the others are owed … */
    rig_goodbye (rig, 1);   /* … and now go away */
    while (round_leaves_more (rig))
        continue;
    assert_int_equal (gauge (rig, "waits"), 0);
    rig_free (rig);
}

static void waits_whose_deadline_has_come_are_freed_in_rounds (void **state)
{
    (void) state;
    uint64_t requests[WAITS];
    rig_t *rig = new_rig (WAITS, ROUND);
    wait_often (rig, 1, requests, 1000);
    rig->now.mono_ms += 2000;
    rig->now.wall_ms += 2000;
    size_t rounds = 1;
    while (round_leaves_more (rig))
        rounds++;
    assert_in_range (rounds, WAITS / ROUND, WAITS);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (answered (rig, 1, requests), 0);
    assert_int_equal (gauge (rig, "waits"), 0);
    rig_free (rig);
}

static void a_broker_may_end_while_answers_are_owed (void **state)
{
    (void) state;
    uint64_t requests[WAITS];
    rig_t *rig = new_rig (1, 1);
    wait_often (rig, 1, requests, 0);
    wait_often (rig, 2, requests, 0);
    rig_cancel (rig, 0, 1);
    rig_goodbye (rig, 2);
    rig_free (rig); /* the sanitizers see what is left */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (all_who_wait_for_a_task_are_answered_in_rounds),
        cmocka_unit_test (who_waits_for_another_task_has_a_turn),
        cmocka_unit_test (what_a_link_waited_for_is_freed_in_rounds),
        cmocka_unit_test (a_task_may_end_before_those_who_left_are_freed),
        cmocka_unit_test (waits_whose_deadline_has_come_are_freed_in_rounds),
        cmocka_unit_test (a_broker_may_end_while_answers_are_owed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
