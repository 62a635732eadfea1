/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Data of earlier versions, as those wrote it (tests/stored), becomes data of this one: all of it,
 * with what only the journal has, whenever the start is killed or finds no space. With
 * TASKMQ_STRIDE=1 in the environment each moment is tried, otherwise some. */
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "store/audit.h"
#include "store/sqlite/sqlite_schema.h"
#include "store_support.h"

enum { TASKS = 11, BATCHES = 6, KILLED = 77, OPERATIONS_MAX = 4000 };

typedef struct stored {
    const char *name;
    int schema;
    uint64_t stride; /* of the moments that are tried */
} stored_t;

static const stored_t STORED[] = {
    {"schema-6", 6, 5}, {"schema-7", 7, 9}, {"schema-7-db", 7, 31}, {"schema-7-log", 7, 17},
    {"schema-8", 8, 7}, {"schema-9", 9, 7}, {"schema-10", 10, 7}};
enum { STORED_COUNT = sizeof (STORED) / sizeof (STORED[0]) };

__attribute__ ((format (printf, 1, 2))) static void shell (const char *format, ...)
{
    char command[1000];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (command, sizeof (command), format, arguments);
    va_end (arguments);
    if (system (command) != 0)
        fail_msg ("%s", command);
}

static void make (fixture_t *f, const char *name)
{
    shell ("rm -rf %s && mkdir -m 700 %s && tar -xzf %s/tests/stored/%s.tar.gz -C %s", f->directory,
           f->directory, getenv ("TASKMQ_SOURCE"), name, f->directory);
}

static fixture_t *stored_new (const char *name)
{
    fault_vfs_install ();
    fault_vfs_skip_syncs (true);
    fixture_device = &fault_device;
    fixture_t *f = fixture_new ("sqlite");
    make (f, name);
    return f;
}

static void stored_free (fixture_t *f)
{
    shell ("rm -rf %s", f->directory);
    free (f);
}

static void show (void *context, const char *text)
{
    print_message ("%s: %s\n", (const char *) context, text);
}

static void assert_undamaged (const fixture_t *f, uint64_t tasks)
{
    store_error_t error;
    store_audit_t audit = {.found = show, .context = (void *) f->directory};
    assert_int_equal (store_audit (&audit, f->directory, &error), STORE_OK);
    assert_int_equal (audit.findings, 0);
    assert_int_equal (audit.schema, SCHEMA_TABLES_VERSION);
    assert_int_equal (audit.upgraded, 0);
    assert_int_equal (audit.tasks, tasks);
}

/* The copy holds each file as the earlier version left it. */
static void assert_copied (const fixture_t *f, const stored_t *stored)
{
    shell ("mkdir %s/as-it-was && tar -xzf %s/tests/stored/%s.tar.gz -C %s/as-it-was &&"
           " rm -rf %s/as-it-was/list %s/as-it-was/audit.jsonl %s/as-it-was/blobs &&"
           " diff -r %s/as-it-was %s/backups/before-schema-%d && rm -r %s/as-it-was",
           f->directory, getenv ("TASKMQ_SOURCE"), stored->name, f->directory, f->directory,
           f->directory, f->directory, f->directory, f->directory, stored->schema + 1,
           f->directory);
}

static int upgraded_from (const fixture_t *f)
{
    store_stats_t stats;
    store_stats (f->store, &stats);
    return stats.upgraded_from;
}

/* … or, where a kill left more in a log than counts, as the earlier version would read it. */
static void assert_copy_serves (const fixture_t *f, const stored_t *stored)
{
    fixture_t *g = fixture_new ("sqlite");
    shell ("cp %s/backups/before-schema-%d/* %s", f->directory, stored->schema + 1, g->directory);
    fixture_open (g);
    assert_int_equal (upgraded_from (g), stored->schema);
    assert_int_equal (g->boot.recovered_batches, BATCHES);
    assert_int_equal (g->boot.tasks, TASKS);
    fixture_close (g);
    stored_free (g);
}

static void test_earlier_data_becomes_todays (void **state)
{
    (void) state;
    for (size_t i = 0; i < STORED_COUNT; i++) {
        fixture_t *f = stored_new (STORED[i].name);
        store_error_t error;
        store_audit_t audit = {.found = show, .context = f->directory};
        assert_int_equal (store_audit (&audit, f->directory, &error), STORE_OK);
        assert_int_equal (audit.findings, 0);
        assert_int_equal (audit.schema, STORED[i].schema);
        assert_int_equal (audit.upgraded, SCHEMA_TABLES_VERSION);
        fixture_open (f);
        assert_int_equal (upgraded_from (f), STORED[i].schema);
        assert_int_equal (f->boot.recovered_batches, BATCHES);
        assert_int_equal (f->boot.tasks, TASKS);
        fixture_close (f);
        assert_undamaged (f, TASKS);
        assert_copied (f, &STORED[i]);
        fixture_open (f);
        assert_int_equal (upgraded_from (f), 0);
        fixture_close (f);
        stored_free (f);
    }
}

/* Every column, index and table, in an order of its own. */
static const char SHAPE[] =
    "SELECT group_concat (line, char (10)) FROM (SELECT m.name || ' ' || i.name || ' ' || i.type ||"
    " ' ' || i.\"notnull\" || ' ' || i.pk AS line FROM sqlite_schema m, pragma_table_info (m.name) "
    "i"
    " WHERE m.type = 'table' UNION ALL SELECT name || ' ' || sql FROM sqlite_schema"
    " WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1)";

static char *shape_of (const fixture_t *f)
{
    char path[160];
    sqlite3 *db;
    sqlite3_stmt *statement;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_prepare_v2 (db, SHAPE, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    char *shape = strdup ((const char *) sqlite3_column_text (statement, 0));
    sqlite3_finalize (statement);
    sqlite3_close (db);
    return shape;
}

static void test_both_ways_end_in_the_same_tables (void **state)
{
    (void) state;
    fixture_t *f = fixture_new ("sqlite");
    fixture_open (f);
    fixture_close (f);
    char *made = shape_of (f);
    stored_free (f);
    for (size_t i = 0; i < STORED_COUNT; i++) {
        f = stored_new (STORED[i].name);
        fixture_open (f);
        fixture_close (f);
        char *upgraded = shape_of (f);
        assert_string_equal (upgraded, made);
        free (upgraded);
        stored_free (f);
    }
    free (made);
}

static uint64_t stride_of (const stored_t *stored)
{
    const char *stride = getenv ("TASKMQ_STRIDE");
    return stride == NULL ? stored->stride : strtoull (stride, NULL, 10);
}

/* A child opens the store until something ends it; gives its exit code. */
static int open_in_child (fixture_t *f, void (*prepare) (uint64_t), uint64_t argument)
{
    fflush (NULL);
    pid_t child = fork ();
    if (child == 0) {
        store_error_t error = {STORE_OK, ""};
        prepare (argument);
        store_code_t code = store_open (&f->store, f->uri, &f->options, &f->boot, &error);
        _exit ((int) code);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status));
    return WEXITSTATUS (status);
}

static void count_down (void *context, const vfs_op_t *op)
{
    (void) op;
    uint64_t *left = context;
    if (--*left == 0)
        _exit (KILLED);
}

static void be_killed_behind (uint64_t operation)
{
    static uint64_t left;
    left = operation;
    fault_vfs_record (count_down, &left);
}

/* As a kill: what was written stays, and nothing comes behind it. */
static void test_a_kill_at_any_moment (void **state)
{
    (void) state;
    for (size_t i = 0; i < STORED_COUNT; i++) {
        uint64_t at = 1;
        for (int code = KILLED; code == KILLED; at += stride_of (&STORED[i])) {
            fixture_t *f = stored_new (STORED[i].name);
            code = open_in_child (f, be_killed_behind, at);
            assert_true (code == KILLED || code == STORE_OK);
            fixture_open (f);
            assert_int_equal (f->boot.tasks, TASKS);
            fixture_close (f);
            assert_undamaged (f, TASKS);
            shell ("[ ! -e %s/backups/before-schema-%d.new ]", f->directory, STORED[i].schema + 1);
            if (at / stride_of (&STORED[i]) % 4 == 1)
                assert_copy_serves (f, &STORED[i]);
            stored_free (f);
            assert_in_range (at, 1, OPERATIONS_MAX);
        }
        assert_true (at > 20);
    }
}

static void find_no_space_behind (uint64_t writes)
{
    const fault_t fault = {.file = "", .ops = FAULT_WRITE, .full = true, .after = writes};
    fault_vfs_arm (&fault);
}

static void test_a_full_disk_at_any_moment (void **state)
{
    (void) state;
    for (size_t i = 0; i < STORED_COUNT; i++) {
        uint64_t after = 0;
        for (int code = STORE_ERROR_FULL; code == STORE_ERROR_FULL;
             after += stride_of (&STORED[i])) {
            fixture_t *f = stored_new (STORED[i].name);
            code = open_in_child (f, find_no_space_behind, after);
            if (code != STORE_ERROR_FULL && code != STORE_OK)
                fail_msg ("%s: no space behind %d writes ended with %d", STORED[i].name,
                          (int) after, code);
            fixture_open (f);
            assert_int_equal (f->boot.tasks, TASKS);
            fixture_close (f);
            assert_undamaged (f, TASKS);
            stored_free (f);
            assert_in_range (after, 0, OPERATIONS_MAX);
        }
        assert_true (after > 10);
    }
}

/* The order that makes a loss of power harmless: the copy is synced, then has its name, and then
 * the tables change. */
typedef struct order {
    int unsynced;
    bool named;
    bool early; /* the tables changed before */
} order_t;

static void watch_order (void *context, const vfs_op_t *op)
{
    order_t *order = context;
    bool in_copy = strstr (op->path, ".new/") != NULL;
    if (in_copy && op->kind == VFS_WRITE)
        order->unsynced = 1;
    if (in_copy && op->kind == VFS_SYNC)
        order->unsynced = 0;
    if (op->kind == VFS_RENAME && strstr (op->path, "before-schema") != NULL)
        order->named = order->unsynced == 0;
    if (!order->named && !in_copy && op->kind == VFS_WRITE)
        order->early = true;
}

static void test_the_copy_comes_first (void **state)
{
    (void) state;
    order_t order = {0};
    fixture_t *f = stored_new ("schema-6");
    fault_vfs_record (watch_order, &order);
    fixture_open (f);
    fault_vfs_record (NULL, NULL);
    assert_true (order.named);
    assert_false (order.early);
    fixture_close (f);
    stored_free (f);
}

/* Runs a statement on the closed tables. */
static void change (const fixture_t *f, const char *sql)
{
    char path[160];
    sqlite3 *db;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_exec (db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close (db);
}

static void assert_refused (fixture_t *f, store_code_t expected, const char *part)
{
    store_error_t error;
    store_t *store = NULL;
    assert_int_equal (store_open (&store, f->uri, &f->options, &f->boot, &error), expected);
    if (strstr (error.text, part) == NULL)
        fail_msg ("'%s' is not in: %s", part, error.text);
}

static void test_newer_data_names_what_was_before (void **state)
{
    (void) state;
    fixture_t *f = stored_new ("schema-6");
    fixture_open (f);
    fixture_close (f);
    change (f, "PRAGMA user_version = 12");
    assert_refused (f, STORE_ERROR_NEWER, "no copy from before that is in");
    shell ("mkdir %s/backups/before-schema-12", f->directory);
    assert_refused (f, STORE_ERROR_NEWER, "backups/before-schema-12 is how it was");
    shell ("mkdir %s/backups/before-schema-11", f->directory);
    assert_refused (f, STORE_ERROR_NEWER, "backups/before-schema-12 is how it was");
    change (f, "PRAGMA user_version = 5");
    assert_refused (f, STORE_ERROR_FOREIGN, "version in development (schema 5, readable from 6");
    stored_free (f);
}

/* What was damaged before is told after, too, and holds nothing up. */
static void test_damage_stays_damage (void **state)
{
    (void) state;
    fixture_t *f = stored_new ("schema-6");
    change (f, "UPDATE task SET expires_at = expires_at + 1 WHERE number = 2");
    fixture_open (f);
    fixture_close (f);
    store_error_t error;
    store_audit_t audit = {.found = show, .context = f->directory};
    assert_int_equal (store_audit (&audit, f->directory, &error), STORE_OK);
    assert_int_equal (audit.findings, 1);
    assert_int_equal (audit.tasks, TASKS);
    stored_free (f);
}

/* An earlier copy of the same name is of an upgrade that was taken back. */
static void test_a_copy_is_made_anew (void **state)
{
    (void) state;
    fixture_t *f = stored_new ("schema-7");
    shell ("mkdir -p %s/backups/before-schema-8 %s/backups/before-schema-8.new &&"
           " echo old >%s/backups/before-schema-8/taskmq.db &&"
           " echo half >%s/backups/before-schema-8.new/journal.db",
           f->directory, f->directory, f->directory, f->directory);
    fixture_open (f);
    fixture_close (f);
    assert_copied (f, &STORED[1]);
    stored_free (f);
    f = stored_new ("schema-7");
    shell ("mkdir -p %s/backups/before-schema-8 && echo mine >%s/backups/before-schema-8/mine",
           f->directory, f->directory);
    assert_refused (f, STORE_ERROR_IO, "before-schema-8: cannot be removed");
    shell ("rm %s/backups/before-schema-8/mine", f->directory);
    fixture_open (f);
    fixture_close (f);
    stored_free (f);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_earlier_data_becomes_todays),
        cmocka_unit_test (test_both_ways_end_in_the_same_tables),
        cmocka_unit_test (test_a_kill_at_any_moment),
        cmocka_unit_test (test_a_full_disk_at_any_moment),
        cmocka_unit_test (test_the_copy_comes_first),
        cmocka_unit_test (test_newer_data_names_what_was_before),
        cmocka_unit_test (test_damage_stays_damage),
        cmocka_unit_test (test_a_copy_is_made_anew),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
