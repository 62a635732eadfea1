/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a backend on a disk forgets: old events as a prefix, never past the exporter, and old
 * tombstones; and how the file of sqlite gets smaller. Time is that of the batches: batch b is of
 * 5000 + b ms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store_support.h"
#include "support/timing.h"

#ifdef FIXTURE_POSTGRESQL
#define RETENTION_STORE "postgresql"
#else
#define RETENTION_STORE "sqlite"
#endif

typedef struct bounds {
    uint64_t first_seq;
    uint64_t last_seq;
} bounds_t;

static bounds_t bounds_of (fixture_t *f, const char *ns)
{
    read_t read = {.kind = READ_EVENTS, .filter = {.ns = ns}, .limit = 1};
    fixture_read (f, &read);
    bounds_t bounds = {read.first_seq, read.last_seq_seen};
    read_clear (&read);
    return bounds;
}

static uint64_t tombstones (fixture_t *f)
{
    store_stats_t stats;
    store_stats (f->store, &stats);
    return stats.tombstones;
}

/* The store looks for what is old after a write-back, at most once a second: so one is made. */
static void nudge_at (fixture_t *f, int64_t wall_ms, int64_t expiry_ms)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (1);
    batch->wall_ms = wall_ms;
    batch->expiry_ms = expiry_ms;
    batch_add_record (batch, &record);
    fixture_commit (f, batch);
    fixture_settle (f);
    timing_pause (50);
}

static void nudge (fixture_t *f, int64_t wall_ms)
{
    nudge_at (f, wall_ms, wall_ms);
}

#define NUDGE_UNTIL(f, wall_ms, condition)                                                         \
    WAIT_FOR ((nudge (f, wall_ms), condition), TIMING_PATIENCE_MS)

static void reopen (fixture_t *f)
{
    fixture_close (f);
    fixture_open (f);
}

/* Batches of one event each, of 5001, 5002, … */
static void commit_events (fixture_t *f, int count)
{
    for (int i = 0; i < count; i++)
        fixture_submit (f, 100 + (int64_t) f->seq, 100 + (int64_t) f->seq);
}

static int retention_setup (void **state)
{
    *state = (void *) RETENTION_STORE;
    fixture_setup (state);
    fixture_t *f = *state;
    f->options.events_ms_max = 30;
    f->options.tombstones_max = 3;
    reopen (f);
    return 0;
}

static void old_events_go_as_a_prefix (void **state)
{
    fixture_t *f = *state;
    store_exported (f->store, UINT64_MAX);
    commit_events (f, 100);
    /* At 5100 what is before 5070 is old: batches 1 to 69. */
    NUDGE_UNTIL (f, 5100, bounds_of (f, "default").first_seq == 70);
    assert_int_equal (bounds_of (f, "default").last_seq, 100);
    read_t read = {.kind = READ_EVENTS, .filter = {.ns = "default"}, .after_seq = 5, .limit = 1};
    fixture_read (f, &read);
    assert_int_equal (read.blocks[0].first_seq, 70);
    read_clear (&read);
    tmq_id_t old = test_id (110);
    record_t *record = fixture_load (f, "default", &old); /* the task itself stays */
    assert_non_null (record);
    read_t history = {.kind = READ_HISTORY,
                      .filter = {.ns = "default"},
                      .last_seq = record->last_seq,
                      .limit = 10};
    fixture_read (f, &history);
    assert_int_equal (buf_length (history.list), 0);
    assert_int_equal (history.before_seq, 0);
    read_clear (&history);
    record_free (record);
}

/* Else a blip of the clock would forget everything. */
static void a_leap_that_is_held_makes_nothing_old (void **state)
{
    fixture_t *f = *state;
    store_exported (f->store, UINT64_MAX);
    commit_events (f, 100);
    WAIT_FOR ((nudge_at (f, INT64_MAX / 2, 5100), bounds_of (f, "default").first_seq == 70),
              TIMING_PATIENCE_MS);
    reopen (f);
    assert_int_equal (f->boot.newest_ms, 5100); /* a start finds the leap, and holds it anew */
    nudge (f, 5200);
    reopen (f);
    assert_int_equal (f->boot.newest_ms, 5200); /* of the newest batch, not of the latest time */
}

static void see_task (void *context, record_t *record)
{
    (void) context;
    record_free (record);
}

static void see_ns (void *context, const char *name, uint64_t last_seq)
{
    if (strcmp (name, "quiet") == 0)
        *(uint64_t *) context = last_seq;
}

/* Else its next event would begin at 1 again. */
static void a_quiet_namespace_keeps_its_last_sequence (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    uint64_t last_seq = 0;
    store_live_visitor_t visitor = {see_task, see_ns, &last_seq, NULL};
    record_t quiet = test_record (2);
    quiet.ns = "quiet";
    for (uint64_t seq = 1; seq <= 3; seq++) {
        batch_t *batch = fixture_batch (f);
        f->pos++;
        batch_add_event (batch, "quiet", seq, f->pos, 1, &quiet.id, TMQ_EVENT_CHANGED, seq - 1);
        batch_add_record (batch, &quiet);
        fixture_commit (f, batch);
    }
    store_exported (f->store, UINT64_MAX);
    commit_events (f, 100);
    NUDGE_UNTIL (f, 6000, bounds_of (f, "default").first_seq == 100);
    assert_int_equal (bounds_of (f, "quiet").first_seq, 3);
    assert_int_equal (bounds_of (f, "quiet").last_seq, 3);
    reopen (f);
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    assert_int_equal (last_seq, 3);
    assert_int_equal (f->boot.last_pos, f->pos);
}

static void commit_events_in (fixture_t *f, const char *ns, uint64_t from, uint64_t upto)
{
    record_t task = test_record (2);
    for (uint64_t seq = from; seq <= upto; seq++) {
        batch_t *batch = fixture_batch (f);
        f->pos++;
        batch_add_event (batch, ns, seq, f->pos, 1, &task.id, TMQ_EVENT_CHANGED, seq - 1);
        fixture_commit (f, batch);
    }
}

static bool is_forgotten (fixture_t *f, const char *ns, uint64_t last_seq)
{
    forgotten_t forgotten;
    store_forgotten (f->store, &forgotten);
    bool found = false;
    for (size_t i = 0; i < forgotten.count; i++)
        if (strcmp (forgotten.list[i].name, ns) == 0) {
            found = true;
            assert_int_equal (forgotten.list[i].last_seq, last_seq);
            assert_true (forgotten.upto_seq >= last_seq);
        }
    free (forgotten.list);
    return found;
}

static void see_floor (void *context, const row_t *row)
{
    if (row->kind == ROW_KIND_FORGOTTEN)
        *(uint64_t *) context = row_number (row->body);
}

static void a_namespace_of_which_nothing_is_left_goes (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    commit_events_in (f, "idle", 1, 3);
    commit_events_in (f, "marked", 1, 1);
    batch_t *batch = fixture_batch (f);
    record_t removed = test_record (3);
    removed.ns = "marked";
    batch_add_removal (batch, &removed, TMQ_EXPIRED, INT64_C (1) << 50); /* its tombstone stays */
    fixture_commit (f, batch);
    fixture_settle (f);
    assert_int_equal (bounds_of (f, "idle").last_seq, 3); /* a reader knows its number */
    store_exported (f->store, UINT64_MAX);
    commit_events (f, 3);
    NUDGE_UNTIL (f, 6000, is_forgotten (f, "idle", 3));
    assert_int_equal (bounds_of (f, "idle").last_seq, 0);
    assert_int_equal (bounds_of (f, "marked").last_seq, 1);
    commit_events_in (f, "idle", 4, 5); /* it comes back, under another number */
    fixture_settle (f);
    assert_int_equal (bounds_of (f, "idle").first_seq, 4);
    assert_int_equal (bounds_of (f, "idle").last_seq, 5);
    reopen (f);
    uint64_t floor = 0;
    store_live_visitor_t visitor = {see_task, see_ns, &floor, see_floor};
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    assert_int_equal (floor, 3);
}

static void commit_removals (fixture_t *f, int64_t from, int64_t to)
{
    fixture_submit (f, from, to);
    batch_t *batch = fixture_batch (f);
    for (int64_t number = from; number <= to; number++) {
        record_t record = test_record (number);
        batch_add_removal (batch, &record, TMQ_EXPIRED, 5000 + number);
    }
    fixture_commit (f, batch);
}

static bool has_tombstone (fixture_t *f, int64_t number)
{
    store_error_t error;
    lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = test_id ((uint64_t) number)};
    assert_int_equal (store_load (f->store, &key, 1, &error), STORE_OK);
    assert_null (key.record);
    return key.tombstone == TMQ_EXPIRED;
}

/* Tombstones go at the same looks: when they are gone, events had their chance as well. */
static void events_stay_until_they_are_exported (void **state)
{
    fixture_t *f = *state;
    commit_events (f, 60);
    commit_removals (f, 1001, 1010);
    NUDGE_UNTIL (f, 9000, tombstones (f) == 3);
    assert_int_equal (bounds_of (f, "default").first_seq, 1);
    store_exported (f->store, 20);
    NUDGE_UNTIL (f, 9001, bounds_of (f, "default").first_seq == 21);
    commit_removals (f, 1011, 1020);
    NUDGE_UNTIL (f, 9002, tombstones (f) == 3);
    assert_int_equal (bounds_of (f, "default").first_seq, 21);
}

static size_t event_bytes (fixture_t *f)
{
    read_t read = {.kind = READ_EVENTS, .filter = {.ns = "default"}, .limit = SIZE_MAX};
    fixture_read (f, &read);
    size_t bytes = 0;
    for (size_t i = 0; i < read.blocks_count; i++)
        bytes += buf_length (read.blocks[i].list);
    read_clear (&read);
    return bytes;
}

static void many_events_go_before_they_are_old (void **state)
{
    fixture_t *f = *state;
    f->options.events_ms_max = 1000000;
    f->options.events_bytes_max = 1000;
    reopen (f);
    store_exported (f->store, UINT64_MAX);
    commit_events (f, 1200); /* more than two slices */
    NUDGE_UNTIL (f, 7000, event_bytes (f) <= 1000);
    assert_int_equal (bounds_of (f, "default").last_seq, 1200);
    assert_in_range (event_bytes (f), 900, 1000);
}

static void the_oldest_tombstones_go_first (void **state)
{
    fixture_t *f = *state;
    f->options.tombstones_max = 700;
    f->options.tombstones_ms_max = 500;
    reopen (f);
    commit_removals (f, 1001, 2500);
    NUDGE_UNTIL (f, 6900, tombstones (f) == 700);
    assert_false (has_tombstone (f, 1800));
    assert_true (has_tombstone (f, 1801));
    assert_true (has_tombstone (f, 2500));
    NUDGE_UNTIL (f, 7900, tombstones (f) == 101); /* 2400 and later were set at 7400 and later */
    assert_false (has_tombstone (f, 2399));
    assert_true (has_tombstone (f, 2400));
    reopen (f);
    assert_int_equal (tombstones (f), 101);
}

#ifndef FIXTURE_POSTGRESQL /* which has no file of ours */

/* Free space. */

static off_t file_bytes (const fixture_t *f)
{
    char path[128];
    struct stat info;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (stat (path, &info), 0);
    return info.st_size;
}

/* Tasks of 16 KB come, and go again. */
static void fill_and_empty (fixture_t *f, int64_t from, int64_t to)
{
    enum { PAYLOAD = 16000, PER_BATCH = 100 };
    batch_t *batch = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t n = from; n <= to; n++) {
            record_t record = test_record (n);
            if (batch == NULL)
                batch = fixture_batch (f);
            if (pass == 0) {
                record.payload = buf_new_uninitialised (PAYLOAD);
                memset (buf_mutable (record.payload), 'x', PAYLOAD);
                record.payload_bytes = PAYLOAD;
                batch_add_record (batch, &record);
                buf_drop (record.payload);
            } else {
                batch_add_removal (batch, &record, TMQ_PURGED, 1);
            }
            if (n % PER_BATCH == 0 || n == to) {
                fixture_commit (f, batch);
                batch = NULL;
            }
        }
        fixture_settle (f);
    }
}

enum { NEVER_MS = 60 * 60 * 1000 };

/* From now on the file shrinks when there was no commit for so long. */
static void shrink_after (fixture_t *f, int64_t ms)
{
    f->options.shrink_ms = ms;
    reopen (f);
}

static void a_file_that_was_emptied_shrinks_at_rest (void **state)
{
    enum { TASKS = 1000, WHOLE = TASKS * 16000, SMALL = 4 * 1024 * 1024 };
    fixture_t *f = *state;
    shrink_after (f, NEVER_MS);
    fill_and_empty (f, 1, TASKS);
    reopen (f);
    assert_true (file_bytes (f) > WHOLE); /* it is not at rest for long enough */
    shrink_after (f, 1);
    WAIT_FOR (file_bytes (f) < SMALL, TIMING_PATIENCE_MS);
    fill_and_empty (f, TASKS + 1, 2 * TASKS);
    WAIT_FOR (file_bytes (f) < SMALL, TIMING_PATIENCE_MS);
    f->options.shrink_ms = 60000;
    reopen (f);
    assert_true (file_bytes (f) < SMALL);
    store_error_t error;
    assert_int_equal (store_check (f->store, &error), STORE_OK);
}

/* The vacuum, from its begin to its end. */
static store_vacuum_t vacuum (fixture_t *f)
{
    store_vacuum_t state;
    store_error_t error;
    assert_int_equal (store_vacuum (f->store, true, &state, &error), STORE_OK);
    WAIT_FOR (store_vacuum (f->store, false, &state, &error) != STORE_OK || !state.more,
              TIMING_PATIENCE_MS);
    assert_int_equal (store_vacuum (f->store, false, &state, &error), STORE_OK);
    return state;
}

/* At rest the file is at most a fifth larger than what stays in it. */
static void a_file_that_was_emptied_in_part_is_about_as_large_as_what_stays (void **state)
{
    enum { STAY = 500, COME = 1000, TOMBSTONES = 256 * 1024 };
    fixture_t *f = *state;
    shrink_after (f, NEVER_MS);
    batch_t *batch = fixture_batch (f);
    for (int64_t n = 1; n <= STAY; n++) {
        record_t record = test_record (n);
        record.payload = buf_new_uninitialised (16000);
        memset (buf_mutable (record.payload), 'x', 16000);
        record.payload_bytes = 16000;
        batch_add_record (batch, &record);
        buf_drop (record.payload);
    }
    fixture_commit (f, batch);
    fixture_settle (f);
    off_t stays = (off_t) vacuum (f).file_bytes;
    fill_and_empty (f, STAY + 1, STAY + COME);
    reopen (f); /* what stands in the log is in the file then */
    assert_true (file_bytes (f) > 2 * stays);
    shrink_after (f, 1);
    WAIT_FOR (file_bytes (f) <= stays + stays / 5 + TOMBSTONES, TIMING_PATIENCE_MS);
}

static void a_vacuum_gives_all_that_is_free_back (void **state)
{
    enum { TASKS = 1000, WHOLE = TASKS * 16000, SMALL = 1024 * 1024 };
    fixture_t *f = *state;
    shrink_after (f, NEVER_MS); /* by itself */
    fill_and_empty (f, 1, TASKS);
    reopen (f);
    assert_true (file_bytes (f) > WHOLE);
    store_vacuum_t told = vacuum (f);
    assert_int_equal (told.free_bytes, 0);
    assert_true (told.given_bytes > WHOLE - SMALL);
    assert_int_equal (told.file_bytes, file_bytes (f));
    assert_in_range (told.file_bytes, 1, SMALL);
    assert_int_equal (vacuum (f).given_bytes, 0); /* once more: there is nothing to do */
    record_t record = test_record (2 * TASKS);
    batch_t *batch = fixture_batch (f);
    batch_add_record (batch, &record);
    fixture_commit (f, batch);
    fixture_settle (f);
    reopen (f);
    store_error_t error;
    assert_int_equal (store_check (f->store, &error), STORE_OK);
}

#endif

#define TEST(name) cmocka_unit_test_setup_teardown (name, retention_setup, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (old_events_go_as_a_prefix),
        TEST (a_leap_that_is_held_makes_nothing_old),
        TEST (a_quiet_namespace_keeps_its_last_sequence),
        TEST (a_namespace_of_which_nothing_is_left_goes),
        TEST (events_stay_until_they_are_exported),
        TEST (many_events_go_before_they_are_old),
        TEST (the_oldest_tombstones_go_first),
#ifndef FIXTURE_POSTGRESQL
        TEST (a_file_that_was_emptied_shrinks_at_rest),
        TEST (a_file_that_was_emptied_in_part_is_about_as_large_as_what_stays),
        TEST (a_vacuum_gives_all_that_is_free_back),
#endif
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
