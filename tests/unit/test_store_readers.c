/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Long reads of the tables: they end however short a transaction may be, and do nothing twice. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/load.h"
#include "store/sqlite/readers.h"
#include "store_support.h"
#include "support/timing.h"

enum { TASKS = 2000, PAGE_ITEMS = 10 };

/* A store with TASKS tasks, all in one block of events, and readers of the test's own. */
typedef struct rig {
    fixture_t *fixture;
    gate_t gate;
    readers_t readers;
} rig_t;

static void rig_open (rig_t *self)
{
    store_error_t error = {STORE_OK, ""};
    self->fixture = fixture_new ("sqlite");
    fixture_open (self->fixture);
    fixture_submit (self->fixture, 1, TASKS);
    fixture_settle (self->fixture);
    gate_init (&self->gate);
    store_code_t code =
        readers_open (&self->readers, self->fixture->directory, &self->gate, 0, &error);
    if (code != STORE_OK)
        fail_msg ("readers_open: %d %s", code, error.text);
}

static void rig_close (rig_t *self)
{
    void *state = self->fixture;
    readers_close (&self->readers);
    gate_destroy (&self->gate);
    fixture_teardown (&state);
}

static void rig_read (rig_t *self, read_t *read)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = readers_run (&self->readers, read, &error);
    if (code != STORE_OK)
        fail_msg ("readers_run: %d %s", code, error.text);
}

/* How often statements that read events were run. */
static int event_runs (const rig_t *rig)
{
    int runs = 0;
    sqlite3 *db = rig->readers.view.db;
    for (sqlite3_stmt *it = sqlite3_next_stmt (db, NULL); it != NULL;
         it = sqlite3_next_stmt (db, it))
        if (strstr (sqlite3_sql (it), "FROM event ") != NULL)
            runs += sqlite3_stmt_status (it, SQLITE_STMTSTATUS_RUN, 0);
    return runs;
}

static void test_the_export_reads_no_block_twice (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig);
    uint64_t pos = 0;
    size_t items = 0;
    bool more = true;
    for (size_t reads = 0; more; reads++) {
        read_t read = {.kind = READ_EXPORT, .limit = PAGE_ITEMS, .after_pos = pos};
        assert_true (reads <= TASKS / PAGE_ITEMS);
        rig_read (&rig, &read);
        for (size_t i = 0; i < read.items_count; i++)
            assert_int_equal (read.items[i].pos, ++items);
        pos = read.upto_pos;
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (items, TASKS);
    assert_in_range (event_runs (&rig), 1, 8);
    rig_close (&rig);
}

static void test_the_export_follows_its_reader_anywhere (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig);
    static const uint64_t starts[] = {0, 5, 1500, 20, TASKS, 3};
    for (size_t i = 0; i < sizeof (starts) / sizeof (starts[0]); i++) {
        read_t read = {.kind = READ_EXPORT, .limit = PAGE_ITEMS, .after_pos = starts[i]};
        rig_read (&rig, &read);
        assert_int_equal (read.more, starts[i] != TASKS);
        assert_int_equal (read.items_count, starts[i] != TASKS ? PAGE_ITEMS : 0);
        if (read.items_count > 0)
            assert_int_equal (read.items[0].pos, starts[i] + 1);
        read_clear (&read);
    }
    rig_close (&rig);
}

static void test_the_export_ends_at_its_bytes (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig);
    read_t read = {.kind = READ_EXPORT, .limit = TASKS, .bytes_max = 1};
    rig_read (&rig, &read);
    assert_int_equal (read.items_count, 1);
    assert_int_equal (read.upto_pos, 1);
    assert_true (read.more);
    read_clear (&read);
    rig_close (&rig);
}

/* Each transaction is over when it begins: whatever looks at the clock before it has moved on would
 * never end. */
static void test_every_read_ends_in_the_shortest_pages (void **state)
{
    (void) state;
    rig_t rig;
    rig_open (&rig);
    tmq_id_t id = test_id (1);
    static const char *const queues[] = {"mail"};
    filter_t filter = {.ns = "default", .queues = queues, .queues_count = 1};
    read_t list = {.kind = READ_LIST, .filter = filter, .limit = TASKS};
    rig_read (&rig, &list);
    assert_int_equal (list.records_count, TASKS);
    read_t count = {.kind = READ_COUNT, .filter = filter};
    rig_read (&rig, &count);
    assert_int_equal (count.count, TASKS);
    read_t resolve = {.kind = READ_RESOLVE, .filter = filter};
    for (size_t i = 0; i < 6; i++)
        snprintf (resolve.suffix + 2 * i, 3, "%02x", id.bytes[10 + i]);
    rig_read (&rig, &resolve);
    assert_int_equal (resolve.count, 1);
    read_t history = {.kind = READ_HISTORY, .filter = filter, .last_seq = TASKS, .limit = 5};
    rig_read (&rig, &history);
    uint64_t seq;
    assert_int_equal (list_seqs (history.list, &seq, 1), 1);
    read_t export = {.kind = READ_EXPORT, .limit = SIZE_MAX};
    rig_read (&rig, &export);
    assert_int_equal (export.items_count, TASKS);
    read_clear (&list);
    read_clear (&count);
    read_clear (&resolve);
    read_clear (&history);
    read_clear (&export);
    rig_close (&rig);
}

static int count_begin (unsigned what, void *context, void *statement, void *text)
{
    (void) what;
    (void) text;
    if (strcmp (sqlite3_sql (statement), "BEGIN") == 0)
        ++*(size_t *) context;
    return 0;
}

/* Thousands of look-ups would hold back the reset of the log for longer than a page may last. */
static void test_many_look_ups_take_several_transactions (void **state)
{
    (void) state;
    rig_t rig;
    view_t view;
    size_t begins = 0;
    store_error_t error = {STORE_OK, ""};
    static lookup_t keys[TASKS + 1];
    rig_open (&rig);
    for (size_t i = 0; i <= TASKS; i++)
        keys[i] = (lookup_t){.kind = LOOKUP_ID, .ns = "default", .id = test_id (i + 1)};
    assert_int_equal (load_open (&view, rig.fixture->directory, &rig.gate, &error), STORE_OK);
    sqlite3_trace_v2 (view.db, SQLITE_TRACE_STMT, count_begin, &begins);
    assert_int_equal (load_keys (&view, keys, TASKS + 1, &error), STORE_OK);
    assert_in_range (begins, TASKS / LOAD_KEYS_MAX + 1, TASKS + 1);
    for (size_t i = 0; i < TASKS; i++) {
        assert_non_null (keys[i].record);
        assert_int_equal (keys[i].record->number, i + 1);
        record_free (keys[i].record);
    }
    assert_null (keys[TASKS].record);
    view_close (&view);
    rig_close (&rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_the_export_reads_no_block_twice),
        cmocka_unit_test (test_the_export_follows_its_reader_anywhere),
        cmocka_unit_test (test_the_export_ends_at_its_bytes),
        cmocka_unit_test (test_every_read_ends_in_the_shortest_pages),
        cmocka_unit_test (test_many_look_ups_take_several_transactions),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
