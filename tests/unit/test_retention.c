/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What retention lets go: example by example, and for random rules and tasks against a judgement
 * that looks at everything at once. */
#include <stdlib.h>
#include <string.h>

#include "core/base/retention.h"
#include "support/cmocka_all.h"

enum { ITEMS = 40, QUEUES = 3, ROUNDS = 20000, SPACE = QUEUES };

typedef struct thing {
    retention_item_t item;
    size_t queue;
    bool stays;
} thing_t;

static uint64_t state_of_rng;

static uint64_t draw (uint64_t below)
{
    state_of_rng = state_of_rng * UINT64_C (6364136223846793005) + 1442695040888963407u;
    return (state_of_rng >> 33) % below;
}

/* The newest first. */
static void judge_all (thing_t *things, size_t count, const retention_t rules[QUEUES + 1])
{
    retention_tally_t tallies[QUEUES + 1] = {{0, 0}};
    for (size_t i = 0; i < count; i++) {
        size_t whose;
        thing_t *thing = &things[i];
        const retention_scope_t scopes[] = {{rules[thing->queue], &tallies[thing->queue]},
                                            {rules[SPACE], &tallies[SPACE]}};
        thing->stays = retention_judge (scopes, 2, &thing->item, &whose) == TMQ_POLICY_NONE;
    }
}

static bool is_in (const thing_t *thing, size_t scope)
{
    return scope == SPACE || thing->queue == scope;
}

/* How many, and how many bytes, of a scope stay among the first. */
static retention_tally_t stay (const thing_t *things, size_t first, size_t scope)
{
    retention_tally_t out = {0, 0};
    for (size_t i = 0; i < first; i++) {
        if (is_in (&things[i], scope) && things[i].stays) {
            out.count++;
            out.bytes += things[i].item.bytes;
        }
    }
    return out;
}

static bool must_stay (const thing_t *things, size_t i, const retention_t *rule, size_t scope)
{
    const retention_item_t *item = &things[i].item;
    return is_in (&things[i], scope) && ((item->failed && item->age_ms < rule->keep_failed_ms) ||
                                         stay (things, i, scope).count < rule->min_keep);
}

static bool may_go (const thing_t *things, size_t i, const retention_t *rule, size_t scope)
{
    const retention_item_t *item = &things[i].item;
    retention_tally_t newer = stay (things, i, scope);
    return is_in (&things[i], scope) &&
           ((rule->max_age_ms > 0 && item->age_ms >= rule->max_age_ms) ||
            (rule->max_count > 0 && newer.count >= rule->max_count) ||
            (rule->max_bytes > 0 && newer.bytes + item->bytes > rule->max_bytes));
}

static void check_all (const thing_t *things, size_t count, const retention_t rules[QUEUES + 1])
{
    for (size_t i = 0; i < count; i++) {
        bool kept = things[i].item.needed;
        bool goes = false;
        for (size_t scope = 0; scope <= SPACE; scope++) {
            kept = kept || must_stay (things, i, &rules[scope], scope);
            goes = goes || may_go (things, i, &rules[scope], scope);
        }
        assert_int_equal (things[i].stays, kept || !goes);
    }
}

static void draw_rule (retention_t *out)
{
    *out = (retention_t){0};
    if (draw (2) == 0)
        out->max_age_ms = 1 + (int64_t) draw (100);
    if (draw (2) == 0)
        out->max_count = 1 + draw (ITEMS / 2);
    if (draw (3) == 0)
        out->max_bytes = 1 + draw (200);
    if (draw (3) == 0)
        out->keep_failed_ms = out->max_age_ms + (int64_t) draw (60);
    if (draw (3) == 0)
        out->min_keep = out->max_count > 0 ? draw (out->max_count + 1) : draw (6);
    assert_null (retention_contradiction (out));
}

static void random_rules_agree_with_the_whole_picture (void **state)
{
    (void) state;
    for (size_t round = 0; round < ROUNDS; round++) {
        thing_t things[ITEMS];
        retention_t rules[QUEUES + 1];
        size_t count = draw (ITEMS + 1);
        for (size_t i = 0; i <= SPACE; i++)
            draw_rule (&rules[i]);
        for (size_t i = 0; i < count; i++)
            things[i] = (thing_t){.item = {.age_ms = (int64_t) draw (160),
                                           .bytes = draw (30),
                                           .failed = draw (3) == 0,
                                           .needed = draw (20) == 0},
                                  .queue = draw (QUEUES)};
        judge_all (things, count, rules);
        check_all (things, count, rules);
        /* A pass that was cut off anywhere, and begun again, comes to the same end. */
        thing_t left[ITEMS] = {{.stays = false}};
        size_t left_count = 0;
        for (size_t i = 0; i < count; i++)
            if (things[i].stays || draw (2) == 0)
                left[left_count++] = things[i];
        thing_t again[ITEMS];
        memcpy (again, left, left_count * sizeof (left[0]));
        judge_all (again, left_count, rules);
        for (size_t i = 0; i < left_count; i++)
            assert_int_equal (again[i].stays, left[i].stays);
    }
}

/* Of count things of 10 bytes, a minute apart, the newest first. */
static size_t staying (const retention_t *rule, size_t count, bool failed)
{
    retention_tally_t tally = {0, 0};
    const retention_scope_t scope = {*rule, &tally};
    for (size_t i = 0; i < count; i++) {
        size_t whose;
        const retention_item_t item = {
            .age_ms = 60000 * (int64_t) i, .bytes = 10, .failed = failed};
        retention_judge (&scope, 1, &item, &whose);
    }
    return (size_t) tally.count;
}

static void each_policy_does_what_it_says (void **state)
{
    (void) state;
    assert_int_equal (staying (&(retention_t){0}, 50, false), 50);
    assert_int_equal (staying (&(retention_t){.max_age_ms = 600000}, 50, false), 10);
    assert_int_equal (staying (&(retention_t){.max_count = 7}, 50, false), 7);
    assert_int_equal (staying (&(retention_t){.max_bytes = 55}, 50, false), 5);
    assert_int_equal (staying (&(retention_t){.max_bytes = 5}, 50, false), 0);
    assert_int_equal (staying (&(retention_t){.max_age_ms = 600000, .min_keep = 12}, 50, false),
                      12);
    assert_int_equal (
        staying (&(retention_t){.max_age_ms = 600000, .keep_failed_ms = 1200000}, 50, true), 20);
    assert_int_equal (staying (&(retention_t){.max_count = 3, .keep_failed_ms = 1200000}, 50, true),
                      20);
    assert_int_equal (
        staying (&(retention_t){.max_age_ms = 600000, .keep_failed_ms = 1200000}, 50, false), 10);
}

static void contradictions_are_named (void **state)
{
    (void) state;
    assert_non_null (retention_contradiction (&(retention_t){.max_count = 3, .min_keep = 4}));
    assert_null (retention_contradiction (&(retention_t){.max_count = 4, .min_keep = 4}));
    assert_null (retention_contradiction (&(retention_t){.min_keep = 4}));
    assert_non_null (
        retention_contradiction (&(retention_t){.max_age_ms = 3, .keep_failed_ms = 2}));
    assert_null (retention_contradiction (&(retention_t){.keep_failed_ms = 2}));
    assert_null (retention_contradiction (&(retention_t){.max_age_ms = 3}));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (each_policy_does_what_it_says),
        cmocka_unit_test (contradictions_are_named),
        cmocka_unit_test (random_rules_agree_with_the_whole_picture),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
