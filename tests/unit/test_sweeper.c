/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The sweeper: slices follow each other without waiting for the tables, within a limit, and what
 * the engine does not remove is not asked about again at once. */
#include "sweeper.h"

#include <stdlib.h>
#include <string.h>

#include "store_support.h"
#include "support/timing.h"
#include "trim.h"

enum {
    TASKS = (SWEEPER_SLICES_MAX + 2) * TMQ_SWEEP_ITEMS_MAX,
    COMMIT_TASKS = 100, /* divides TASKS */
    PASS_MS = 1000
};

typedef struct rig {
    fixture_t *fixture;
    sweeper_t *sweeper;
    bool seen[TASKS + 1];
    size_t seen_count;
} rig_t;

static rig_t rig;

/* A store with TASKS tasks that have ended and are due. */
static int rig_open (void **state)
{
    (void) state;
    memset (&rig, 0, sizeof (rig));
    rig.fixture = fixture_new ("memory");
    fixture_open (rig.fixture);
    for (int64_t number = 1; number <= TASKS;) {
        batch_t *batch = fixture_batch (rig.fixture);
        for (int i = 0; i < COMMIT_TASKS; i++, number++) {
            record_t record = test_record (number);
            record.status = TMQ_STATUS_COMPLETED;
            fixture_change (rig.fixture, batch, &record, TMQ_EVENT_COMPLETED);
        }
        fixture_commit (rig.fixture, batch);
    }
    fixture_settle (rig.fixture);
    rig.sweeper = sweeper_new (rig.fixture->store);
    return rig.sweeper != NULL ? 0 : -1;
}

static int rig_close (void **state)
{
    (void) state;
    void *fixture = rig.fixture;
    sweeper_free (&rig.sweeper);
    fixture_teardown (&fixture);
    return 0;
}

static bool take (void)
{
    due_t due;
    if (!sweeper_take (rig.sweeper, &due))
        return false;
    for (size_t i = 0; i < due.count; i++) {
        assert_in_range (due.records[i]->number, 1, TASKS);
        rig.seen_count += !rig.seen[due.records[i]->number];
        rig.seen[due.records[i]->number] = true;
    }
    assert_in_range (due.count, 1, TMQ_SWEEP_ITEMS_MAX);
    due_clear (&due);
    return true;
}

static void test_slices_are_on_their_way_together (void **state)
{
    (void) state;
    for (uint64_t batch = 1; batch <= SWEEPER_SLICES_MAX; batch++) {
        WAIT_FOR (take (), TIMING_PATIENCE_MS);
        sweeper_decided (rig.sweeper, TMQ_SWEEP_ITEMS_MAX, batch);
        assert_int_equal (rig.seen_count, batch * TMQ_SWEEP_ITEMS_MAX);
    }
    /* Too many: the next one waits for the tables. */
    timing_pause (50);
    assert_false (take ());
    sweeper_written (rig.sweeper, 1);
    WAIT_FOR (take (), TIMING_PATIENCE_MS);
    sweeper_decided (rig.sweeper, TMQ_SWEEP_ITEMS_MAX, SWEEPER_SLICES_MAX + 1);
    sweeper_written (rig.sweeper, SWEEPER_SLICES_MAX);
    WAIT_FOR (take (), TIMING_PATIENCE_MS);
    sweeper_decided (rig.sweeper, TMQ_SWEEP_ITEMS_MAX, SWEEPER_SLICES_MAX + 2);
    assert_int_equal (rig.seen_count, TASKS);
}

/* As after a leap of the clock, while the engine holds every removal. */
static void test_what_is_not_removed_is_left_in_peace (void **state)
{
    (void) state;
    int64_t start_ms = timing_ms ();
    for (int pass = 1; pass <= 3; pass++) {
        WAIT_FOR (take (), TIMING_PATIENCE_MS);
        assert_int_equal (rig.seen_count, TMQ_SWEEP_ITEMS_MAX);
        assert_true (timing_ms () - start_ms >= (pass - 1) * PASS_MS);
        sweeper_decided (rig.sweeper, 0, 0);
    }
}

static void test_a_reset_begins_anew (void **state)
{
    (void) state;
    WAIT_FOR (take (), TIMING_PATIENCE_MS);
    sweeper_decided (rig.sweeper, TMQ_SWEEP_ITEMS_MAX, 1);
    WAIT_FOR (take (), TIMING_PATIENCE_MS);
    sweeper_reset (rig.sweeper);
    /* One more may have been found before; then the first comes again. */
    rig.seen_count = 0;
    memset (rig.seen, 0, sizeof (rig.seen));
    for (int slice = 0; slice < 2 && !rig.seen[1]; slice++) {
        WAIT_FOR (take (), TIMING_PATIENCE_MS);
        sweeper_decided (rig.sweeper, 0, 0);
    }
    assert_true (rig.seen[1]);
}

/* Memory is given back after a peak, not in it, and not all the time. */
static void test_memory_is_trimmed_after_a_peak (void **state)
{
    (void) state;
    trim_t trim = {0};
    const uint64_t peak = 10ULL * TRIM_BYTES_MIN;
    assert_false (trim_is_due (&trim, 1000, TRIM_BYTES_MIN - 1));
    assert_false (trim_is_due (&trim, 2000, peak - 1));
    assert_false (trim_is_due (&trim, 3000, peak));
    assert_true (trim_is_due (&trim, 4000, peak));
    assert_false (trim_is_due (&trim, 5000, peak));
    assert_false (trim_is_due (&trim, 3999 + TRIM_MS_MIN, peak));
    assert_true (trim_is_due (&trim, 4000 + TRIM_MS_MIN, peak));
    assert_false (trim_is_due (&trim, 4000 + 3 * TRIM_MS_MIN, TRIM_BYTES_MIN - 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_open, rig_close)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (test_slices_are_on_their_way_together),
        TEST (test_what_is_not_removed_is_left_in_peace),
        TEST (test_a_reset_begins_anew),
        cmocka_unit_test (test_memory_is_trimmed_after_a_peak),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
