/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The engine's containers against plain references: the ready order, the wheel, the map, interned
 * names, the stream of secrets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/map.h"
#include "core/base/memory.h"
#include "core/base/names.h"
#include "core/base/secrets.h"
#include "core/base/wheel.h"
#include "core/tasks/absent.h"
#include "core/tasks/queue.h"
#include "ids.h"
#include "support/cmocka_all.h"

enum { SEED = 20240611, TASKS = 600, STEPS = 40000 };

static secrets_t chance;

static int setup (void **state)
{
    uint8_t seed[32] = {0};
    int number = SEED;
    (void) state;
    memcpy (seed, &number, sizeof (number));
    secrets_init (&chance, seed);
    return 0;
}

/* Queue. */

static task_t *best_of (task_t *tasks, size_t count)
{
    task_t *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (tasks[i].ready && (best == NULL || queue_before (&tasks[i], best)))
            best = &tasks[i];
    return best;
}

static void the_queue_keeps_priority_then_acceptance (void **state)
{
    (void) state;
    queue_t queue;
    queue_init (&queue, NULL, "q");
    task_t tasks[5] = {0};
    const uint8_t priorities[5] = {100, 255, 100, 0, 255};
    for (size_t i = 0; i < 5; i++) {
        tasks[i].number = (int64_t) i + 1;
        tasks[i].priority = priorities[i];
        queue_push (&queue, &tasks[i]);
    }
    const int64_t order[5] = {2, 5, 1, 3, 4};
    for (size_t i = 0; i < 5; i++) {
        task_t *task = queue_first (&queue);
        assert_int_equal (task->number, order[i]);
        queue_remove (&queue, task);
    }
    assert_null (queue_first (&queue));
    queue_clear (&queue);
}

/* Tasks come, are taken from the head, removed from anywhere, and come back: always in order. */
static void the_queue_agrees_with_a_plain_search (void **state)
{
    (void) state;
    static task_t tasks[TASKS];
    queue_t queue;
    size_t made = 0;
    queue_init (&queue, NULL, "q");
    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t dice = secrets_below (&chance, 10);
        task_t *task = made == 0 ? NULL : &tasks[secrets_below (&chance, made)];
        if (dice < 3 && made < TASKS) {
            task = &tasks[made++];
            *task = (task_t){.number = (int64_t) made,
                             .priority = (uint8_t) secrets_below (&chance, 3)};
            queue_push (&queue, task);
        } else if (dice < 6 && queue_first (&queue) != NULL) {
            queue_remove (&queue, queue_first (&queue));
        } else if (dice < 8 && task != NULL && task->ready) {
            queue_remove (&queue, task);
        } else if (task != NULL && !task->ready) {
            queue_push (&queue, task);
        }
        if (queue_first (&queue) != best_of (tasks, made))
            fail_msg ("seed %d, step %u: another task should be first", SEED, step);
    }
    queue_clear (&queue);
}

static void cold_tasks_are_found_from_the_head_on (void **state)
{
    (void) state;
    queue_t queue;
    task_t tasks[4] = {0};
    task_t *found[4];
    queue_init (&queue, NULL, "q");
    for (size_t i = 0; i < 4; i++) {
        tasks[i].number = (int64_t) i + 1;
        tasks[i].payload_bytes = i == 1 ? 0 : 10;
        queue_push (&queue, &tasks[i]);
    }
    assert_int_equal (queue_peek_cold (&queue, found, 4), 3);
    assert_ptr_equal (found[0], &tasks[0]);
    assert_ptr_equal (found[1], &tasks[2]);
    assert_int_equal (queue_peek_cold (&queue, found, 2), 1); /* looks at no more than two */
    queue_clear (&queue);
}

/* Wheel. */

static size_t fired_until (wheel_t *wheel, int64_t now)
{
    node_t fired;
    size_t count = 0;
    list_init (&fired);
    do {
        wheel_turn (wheel, now, &fired, 1000);
    } while (wheel_next (wheel) <= now);
    for (node_t *node = list_pop_front (&fired); node != NULL; node = list_pop_front (&fired)) {
        assert_true (alarm_due (LIST_ITEM (node, alarm_t, node)) <= now);
        count++;
    }
    return count;
}

static void an_alarm_fires_in_its_slot_and_not_before (void **state)
{
    (void) state;
    static wheel_t wheel;
    alarm_t alarm = {0};
    wheel_init (&wheel, 16, 1000);
    assert_int_equal (wheel_next (&wheel), INT64_MAX);
    wheel_arm (&wheel, &alarm, 1100);
    assert_in_range (wheel_next (&wheel), 1100, 1116);
    assert_int_equal (fired_until (&wheel, 1099), 0);
    assert_int_equal (fired_until (&wheel, 1116), 1);
    assert_false (alarm_is_armed (&alarm));
    assert_int_equal (wheel_next (&wheel), INT64_MAX);
}

static void an_alarm_in_the_past_fires_with_the_next_slot (void **state)
{
    (void) state;
    static wheel_t wheel;
    alarm_t alarm = {0};
    wheel_init (&wheel, 16, 100000);
    wheel_arm (&wheel, &alarm, 5);
    assert_int_equal (fired_until (&wheel, 100016), 1);
}

static void a_disarmed_alarm_is_silent (void **state)
{
    (void) state;
    static wheel_t wheel;
    alarm_t alarm = {0};
    wheel_init (&wheel, 16, 0);
    wheel_arm (&wheel, &alarm, 100);
    alarm_disarm (&alarm);
    alarm_disarm (&alarm);
    assert_int_equal (fired_until (&wheel, 1000), 0);
}

static void an_alarm_turns_ahead_waits_for_its_turn (void **state)
{
    (void) state;
    static wheel_t wheel;
    alarm_t alarm = {0};
    int64_t due = INT64_C (16) * WHEEL_SLOTS * 3 + 777;
    int64_t now = 0;
    wheel_init (&wheel, 16, 0);
    wheel_arm (&wheel, &alarm, due);
    while (now < due) {
        assert_int_equal (fired_until (&wheel, now), 0);
        int64_t next = wheel_next (&wheel);
        assert_true (next > now && next <= due + 16);
        now = next;
    }
    assert_int_equal (fired_until (&wheel, now), 1);
}

static void the_wheel_agrees_with_a_plain_search (void **state)
{
    (void) state;
    enum { ALARMS = 300 };
    static wheel_t wheel;
    static alarm_t alarms[ALARMS];
    int64_t now = 12345;
    wheel_init (&wheel, 16, now);
    for (unsigned step = 0; step < STEPS / 10; step++) {
        alarm_t *alarm = &alarms[secrets_below (&chance, ALARMS)];
        wheel_arm (&wheel, alarm, now + (int64_t) secrets_below (&chance, 100000));
        now += (int64_t) secrets_below (&chance, step % 100 == 0 ? 90000 : 200);
        fired_until (&wheel, now);
        for (size_t i = 0; i < ALARMS; i++)
            if (alarm_is_armed (&alarms[i]) && alarm_due (&alarms[i]) + 16 < now)
                fail_msg ("seed %d, step %u: an alarm is late", SEED, step);
    }
}

/* Map, names, secrets. */

static void the_map_agrees_with_a_plain_array (void **state)
{
    (void) state;
    enum { KEYS = 500 };
    static uint32_t keys[KEYS];
    static bool present[KEYS];
    map_t map = {0};
    for (unsigned step = 0; step < STEPS; step++) {
        size_t i = secrets_below (&chance, KEYS);
        uint32_t hash = (uint32_t) (i % 64); /* many collisions */
        if (present[i])
            map_remove (&map, hash, &keys[i]);
        else
            map_insert (&map, hash, &keys[i]);
        present[i] = !present[i];
        size_t asked = secrets_below (&chance, KEYS);
        size_t cursor = MAP_START;
        bool found = false;
        for (void *item = map_next (&map, (uint32_t) (asked % 64), &cursor); item != NULL;
             item = map_next (&map, (uint32_t) (asked % 64), &cursor))
            found = found || item == &keys[asked];
        if (found != present[asked])
            fail_msg ("seed %d, step %u: the map is wrong about a key", SEED, step);
    }
    size_t cursor = 0;
    size_t count = 0;
    while (map_each (&map, &cursor) != NULL)
        count++;
    assert_int_equal (count, map.count);
    map_free (&map);
}

static size_t held_in (const map_table_t *table)
{
    size_t count = 0;
    map_t alone = {.now = *table};
    for (size_t cursor = 0; map_each (&alone, &cursor) != NULL;)
        count++;
    return count;
}

static void the_map_never_moves_many_at_once (void **state)
{
    (void) state;
    enum { KEYS = 6000 };
    static char keys[KEYS];
    map_t map = {0};
    size_t moving = 0;
    for (size_t i = 0; i < KEYS; i++) {
        size_t before = held_in (&map.old);
        size_t capacity = map.now.capacity;
        map_insert (&map, (uint32_t) i * 2654435761u, &keys[i]);
        if (map.now.capacity > capacity) /* it grew: what was there is old now */
            before = i;
        assert_true (before - held_in (&map.old) <= MAP_MOVES);
        moving += map.old.capacity > 0;
        size_t asked = secrets_below (&chance, i + 1);
        size_t cursor = MAP_START;
        assert_ptr_equal (map_next (&map, (uint32_t) asked * 2654435761u, &cursor), &keys[asked]);
    }
    assert_true (moving > 500);
    map_free (&map);
}

static void the_map_finds_and_removes_while_it_grows (void **state)
{
    (void) state;
    enum { KEYS = 3000, FULL = 1536 /* three quarters of 2,048 */ };
    static char keys[KEYS];
    map_t map = {0};
    for (size_t i = 0; i <= FULL; i++)
        map_insert (&map, (uint32_t) (i % 700), &keys[i]);
    assert_true (map.old.capacity > 0);
    size_t cursor = 0;
    size_t count = 0;
    while (map_each (&map, &cursor) != NULL)
        count++;
    assert_int_equal (count, FULL + 1);
    for (size_t i = 0; i <= FULL; i++) { /* from both ends: of the moved and of the others */
        size_t gone = i % 2 == 0 ? i / 2 : FULL - i / 2;
        uint32_t hash = (uint32_t) (gone % 700);
        size_t same = 0;
        cursor = MAP_START;
        for (void *item = map_next (&map, hash, &cursor); item != NULL;
             item = map_next (&map, hash, &cursor))
            same += item == &keys[gone];
        assert_int_equal (same, 1);
        map_remove (&map, hash, &keys[gone]);
        assert_int_equal (map.count, FULL - i);
    }
    cursor = 0;
    assert_null (map_each (&map, &cursor));
    map_free (&map);
}

static void a_name_is_kept_once_and_counted (void **state)
{
    (void) state;
    names_t names;
    names_init (&names, &chance);
    assert_null (names_keep (&names, ""));
    assert_string_equal (name_text (NULL), "");
    name_t *a = names_keep (&names, "uid:1");
    assert_ptr_equal (names_keep (&names, "uid:1"), a);
    assert_ptr_not_equal (names_keep (&names, "uid:2"), a);
    assert_string_equal (name_text (a), "uid:1");
    names_drop (&names, a);
    assert_int_equal (a->count, 1);
    names_drop (&names, a);
    assert_int_equal (names.map.count, 1);
    names_free (&names);
}

static void secrets_are_never_given_twice (void **state)
{
    (void) state;
    uint8_t seed[32] = {3};
    secrets_t a;
    secrets_t b;
    secrets_init (&a, seed);
    secrets_init (&b, seed);
    static uint8_t all[1000][16];
    for (size_t i = 0; i < 1000; i++) {
        uint8_t other[16];
        secrets_take (&a, all[i], 16);
        secrets_take (&b, other, 16);
        assert_memory_equal (all[i], other, 16); /* the same seed, the same stream */
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal (all[i], all[k], 16);
    }
    for (unsigned i = 0; i < 1000; i++)
        assert_true (secrets_below (&a, 7) < 7);
}

/* Ids that need no look-up. */

static tmq_id_t id_made_at (int64_t ms)
{
    uint8_t random[ID_RANDOM_BYTES];
    tmq_id_t id;
    secrets_take (&chance, random, sizeof (random));
    id_make (&id, ms, random);
    return id;
}

static uint32_t hash_of (const tmq_id_t *id)
{
    return secrets_hash (&chance, id->bytes, sizeof (id->bytes));
}

static void nothing_is_surely_absent_from_unknown_tables (void **state)
{
    (void) state;
    absent_t absent = {0};
    absent_boot (&absent, 0);
    tmq_id_t id = id_made_at (INT64_C (1) << 40);
    assert_false (absent_surely (&absent, hash_of (&id), &id));
    absent_free (&absent);
}

static void the_boundary_is_the_newest_id_in_the_tables (void **state)
{
    (void) state;
    absent_t absent = {0};
    absent_boot (&absent, 1000);
    tmq_id_t old = id_made_at (1000);
    tmq_id_t new = id_made_at (1001);
    assert_false (absent_surely (&absent, hash_of (&old), &old));
    assert_true (absent_surely (&absent, hash_of (&new), &new));
    absent_accepted (&absent, &new);
    absent_boot (&absent, 1000); /* a reset: what was accepted may be in the tables */
    assert_false (absent_surely (&absent, hash_of (&new), &new));
    absent_free (&absent);
}

/* Over three generations no id that left is ever taken for one that was not there, and nearly all
 * new ones are known to be new. */
static void what_left_memory_is_never_surely_absent (void **state)
{
    (void) state;
    enum { KEPT = 4096, STEP = 3 * GONE_IDS_MAX / KEPT };
    static tmq_id_t kept[KEPT];
    absent_t absent = {0};
    unsigned wrong = 0;
    absent_boot (&absent, 1);
    for (uint32_t n = 0; n < KEPT * STEP; n++) {
        tmq_id_t id = id_made_at (1000 + n);
        absent_left (&absent, hash_of (&id), &id);
        if (n % STEP == 0)
            kept[n / STEP] = id;
    }
    for (unsigned i = 0; i < KEPT; i++) {
        assert_false (absent_surely (&absent, hash_of (&kept[i]), &kept[i]));
        tmq_id_t new = id_made_at (1000 + KEPT * STEP);
        wrong += !absent_surely (&absent, hash_of (&new), &new);
    }
    assert_true (absent.boundary_ms >= 1000 + GONE_IDS_MAX - 1);
    assert_true (wrong < KEPT / 50);
    absent_free (&absent);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup (the_queue_keeps_priority_then_acceptance, setup),
        cmocka_unit_test_setup (the_queue_agrees_with_a_plain_search, setup),
        cmocka_unit_test_setup (cold_tasks_are_found_from_the_head_on, setup),
        cmocka_unit_test_setup (an_alarm_fires_in_its_slot_and_not_before, setup),
        cmocka_unit_test_setup (an_alarm_in_the_past_fires_with_the_next_slot, setup),
        cmocka_unit_test_setup (a_disarmed_alarm_is_silent, setup),
        cmocka_unit_test_setup (an_alarm_turns_ahead_waits_for_its_turn, setup),
        cmocka_unit_test_setup (the_wheel_agrees_with_a_plain_search, setup),
        cmocka_unit_test_setup (the_map_agrees_with_a_plain_array, setup),
        cmocka_unit_test_setup (the_map_never_moves_many_at_once, setup),
        cmocka_unit_test (the_map_finds_and_removes_while_it_grows),
        cmocka_unit_test_setup (a_name_is_kept_once_and_counted, setup),
        cmocka_unit_test_setup (secrets_are_never_given_twice, setup),
        cmocka_unit_test_setup (nothing_is_surely_absent_from_unknown_tables, setup),
        cmocka_unit_test_setup (the_boundary_is_the_newest_id_in_the_tables, setup),
        cmocka_unit_test_setup (what_left_memory_is_never_surely_absent, setup),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
