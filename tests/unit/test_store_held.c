/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Somebody else's program reads taskmq.db and does not end: the store goes on, its log grows up to
 * a size that is told, and everything is as before when that program ends. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "store_support.h"
#include "support/timing.h"

enum { BODY_BYTES = 1024 * 1024, MIB = 1024 * 1024, PAGES_BYTES = 16 * MIB };

/* Another program, as SQLite sees it. */
static sqlite3 *begin_to_read (const fixture_t *f)
{
    char path[160];
    sqlite3 *db;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, "BEGIN; SELECT count (*) FROM task", NULL, NULL, NULL),
                      SQLITE_OK);
    return db;
}

static void submit_large (fixture_t *f, int64_t number)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (number);
    record.payload = buf_new_uninitialised (BODY_BYTES);
    memset (buf_mutable (record.payload), 'x', BODY_BYTES);
    record.payload_bytes = BODY_BYTES;
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    buf_drop (record.payload);
    fixture_commit (f, batch);
}

static store_stats_t stats_of (const fixture_t *f)
{
    store_stats_t stats;
    store_stats (f->store, &stats);
    return stats;
}

static bool is_held (const fixture_t *f)
{
    return stats_of (f).tables_held;
}

static void test_the_store_goes_on_while_somebody_reads (void **state)
{
    fixture_t *f = *state;
    sqlite3 *other = begin_to_read (f);
    int64_t number = 1;
    for (; !is_held (f); number++) {
        submit_large (f, number);
        fixture_settle (f);
        assert_true (number < 40);
    }
    assert_true (stats_of (f).wal_bytes > PAGES_BYTES);
    for (int64_t last = number + 10; number < last; number++) {
        submit_large (f, number);
        fixture_settle (f);
    }
    assert_true (stats_of (f).wal_bytes > PAGES_BYTES + 8 * MIB);
    assert_int_equal (stats_of (f).tasks, number - 1);
    sqlite3_close (other);
    int64_t until_ms = timing_ms () + TIMING_PATIENCE_MS;
    for (; is_held (f); number++) {
        submit_large (f, number);
        fixture_settle (f);
        timing_pause (100);
        assert_true (timing_ms () < until_ms);
    }
    assert_true (stats_of (f).wal_bytes < PAGES_BYTES);
    assert_int_equal (stats_of (f).tasks, number - 1);
}

static void test_its_log_has_a_largest_size (void **state)
{
    fixture_t *f = *state;
    sqlite3 *other = begin_to_read (f);
    int64_t number = 1;
    for (; !stats_of (f).write_back_stalled; number++) {
        uint64_t written = store_written (f->store);
        submit_large (f, number);
        store_flush (f->store);
        WAIT_FOR (store_written (f->store) != written || stats_of (f).write_back_stalled,
                  TIMING_PATIENCE_MS);
        assert_true (number < 60);
    }
    assert_true (is_held (f));
    assert_in_range (stats_of (f).wal_bytes, PAGES_BYTES, f->options.log_bytes_max + 4 * MIB);
    submit_large (f, number); /* durable in the journal all the same */
    assert_true (stats_of (f).dirty_tasks > 0);
    sqlite3_close (other);
    fixture_settle (f);
    assert_int_equal (stats_of (f).tasks, number);
    assert_false (stats_of (f).write_back_stalled);
    assert_true (stats_of (f).wal_bytes < PAGES_BYTES);
}

static void test_it_holds_up_no_stop_and_no_start (void **state)
{
    fixture_t *f = *state;
    submit_large (f, 1);
    fixture_settle (f);
    sqlite3 *other = begin_to_read (f);
    submit_large (f, 2);
    fixture_close (f);
    fixture_open (f);
    assert_int_equal (f->boot.tasks, 2);
    assert_true (is_held (f));
    sqlite3_close (other);
}

static int setup (void **state)
{
    fixture_t *f = fixture_new ("sqlite");
    f->options.log_bytes_max = 24 * MIB;
    fixture_open (f);
    *state = f;
    return 0;
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown (test_the_store_goes_on_while_somebody_reads,
                                                  fixture_setup, fixture_teardown, "sqlite"),
        cmocka_unit_test_setup_teardown (test_its_log_has_a_largest_size, setup, fixture_teardown),
        cmocka_unit_test_setup_teardown (test_it_holds_up_no_stop_and_no_start, setup,
                                         fixture_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
