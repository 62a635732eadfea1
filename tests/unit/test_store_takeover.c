/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A directory whose journal is still a database, as earlier versions wrote it: the first start
 * takes it over, whenever it is interrupted. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/audit.h"
#include "store/checksum.h"
#include "store/journal/journal.h"
#include "store/journal/journal_codec.h"
#include "store_support.h"

enum { COMMITS = 5, MARK_NUMBERS = 3 };

static void path_of (const fixture_t *f, const char *name, char path[160])
{
    snprintf (path, 160, "%s/%s", f->directory, name);
}

static bool is_there (const fixture_t *f, const char *name)
{
    char path[160];
    path_of (f, name, path);
    return access (path, F_OK) == 0;
}

static void move (const fixture_t *f, const char *from, const char *to)
{
    char old[160];
    char new[160];
    path_of (f, from, old);
    path_of (f, to, new);
    assert_int_equal (rename (old, new), 0);
}

/* As a kill leaves it: the tables have nothing of what was committed. */
static void leave_killed (fixture_t *f, int64_t from)
{
    fflush (NULL);
    pid_t child = fork ();
    if (child == 0) {
        f->options.dirty_ms_max = 1000000;
        fixture_open (f);
        for (int64_t number = from; number < from + COMMITS; number++)
            fixture_submit (f, number, number);
        _exit (0);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
}

/* The old journal, while it is written. */
typedef struct old {
    sqlite3 *db;
    journal_head_t head;
} old_t;

static void old_insert (old_t *old, int64_t batch, const void *body, size_t bytes)
{
    sqlite3_stmt *statement;
    assert_int_equal (
        sqlite3_prepare_v2 (old->db, "INSERT INTO journal VALUES (?1, ?2)", -1, &statement, NULL),
        SQLITE_OK);
    sqlite3_bind_int64 (statement, 1, batch);
    sqlite3_bind_blob (statement, 2, body, (int) bytes, SQLITE_STATIC);
    assert_int_equal (sqlite3_step (statement), SQLITE_DONE);
    sqlite3_finalize (statement);
}

static store_code_t old_take (void *context, batch_t *batch, store_error_t *error)
{
    (void) error;
    old_t *old = context;
    bytes_t body = BYTES_INIT;
    journal_encode (&body, &old->head, batch);
    old_insert (old, (int64_t) batch->no, body.data, body.length);
    old->head.previous = batch->no;
    bytes_free (&body);
    batch_free (batch);
    return STORE_OK;
}

static void old_mark (old_t *old)
{
    uint8_t bytes[MARK_NUMBERS * 8 + CHECKSUM_BYTES];
    const int64_t numbers[MARK_NUMBERS] = {(int64_t) old->head.generation,
                                           (int64_t) old->head.epoch, 0};
    for (size_t i = 0; i < MARK_NUMBERS; i++)
        checksum_put (bytes + i * 8, (uint64_t) numbers[i]);
    checksum_put (bytes + MARK_NUMBERS * (size_t) 8,
                  checksum_add_numbers (0, numbers, MARK_NUMBERS));
    old_insert (old, -1, bytes, sizeof (bytes));
}

static void old_make (const fixture_t *f, old_t *old)
{
    char path[160];
    path_of (f, "journal.db", path);
    assert_int_equal (sqlite3_open (path, &old->db), SQLITE_OK);
    assert_int_equal (
        sqlite3_exec (old->db,
                      "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL;"
                      "PRAGMA application_id = 0x746d716a; PRAGMA user_version = 3;"
                      "CREATE TABLE journal (batch INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT",
                      NULL, NULL, NULL),
        SQLITE_OK);
}

/* Writes what the journal has into one of the old form. Its log stays, as after a kill. */
static void make_old (fixture_t *f, uint64_t epoch)
{
    old_t old = {.head = {f->boot.generation, epoch, 0}};
    const journal_options_t options = {.directory = f->directory};
    const journal_tables_t tables = {f->boot.generation, epoch, 0, false};
    journal_t *journal = NULL;
    store_error_t error;
    bool cut;
    int persists = 1;
    old_make (f, &old);
    assert_int_equal (journal_open (&journal, &options, &tables, true, &error), STORE_OK);
    assert_int_equal (journal_replay (journal, old_take, &old, &cut, &error), STORE_OK);
    journal_free (&journal);
    assert_int_equal (old.head.previous, COMMITS);
    old_mark (&old);
    sqlite3_file_control (old.db, "main", SQLITE_FCNTL_PERSIST_WAL, &persists);
    sqlite3_close (old.db);
    char path[160];
    path_of (f, "journal.log", path);
    unlink (path);
}

static void assert_taken_over (fixture_t *f, uint64_t recovered)
{
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, recovered);
    assert_int_equal (f->boot.tasks, COMMITS);
    assert_true (is_there (f, "journal.log"));
    assert_false (is_there (f, "journal.db"));
    assert_false (is_there (f, "journal.db-wal"));
}

static void show (void *context, const char *text)
{
    (void) context;
    print_message ("%s\n", text);
}

static uint64_t batches_waiting (const fixture_t *f)
{
    store_error_t error;
    store_audit_t report = {.found = show};
    assert_int_equal (store_audit (&report, f->directory, &error), STORE_OK);
    assert_int_equal (report.findings, 0);
    return report.batches;
}

static int setup (void **state)
{
    *state = (void *) "sqlite";
    fixture_setup (state);
    fixture_t *f = *state;
    fixture_close (f);
    leave_killed (f, 1);
    make_old (f, f->boot.epoch + 1);
    return 0;
}

static void the_journal_of_an_earlier_version_is_taken_over (void **state)
{
    fixture_t *f = *state;
    assert_int_equal (batches_waiting (f), COMMITS);
    assert_taken_over (f, COMMITS);
    f->seq = f->pos = COMMITS;
    fixture_submit (f, COMMITS + 1, COMMITS + 1);
    fixture_close (f);
    assert_int_equal (batches_waiting (f), 0);
    fixture_open (f);
    assert_int_equal (f->boot.tasks, COMMITS + 1);
}

/* A crash behind the tables' commit finds it again: before the journal was made, and after. */
static void a_takeover_that_was_cut_short_is_repeated (void **state)
{
    fixture_t *f = *state;
    char path[160];
    for (int made = 0; made < 2; made++) {
        pid_t child;
        int status;
        path_of (f, "kept.db", path);
        move (f, "journal.db", "kept.db");
        move (f, "journal.db-wal", "kept.db-wal");
        path_of (f, "journal.db", path);
        char command[512];
        snprintf (command, sizeof (command),
                  "cp %s/kept.db %s/journal.db && cp %s/kept.db-wal "
                  "%s/journal.db-wal",
                  f->directory, f->directory, f->directory, f->directory);
        assert_int_equal (system (command), 0);
        fflush (NULL);
        child = fork ();
        if (child == 0) {
            fixture_open (f);
            _exit (0);
        }
        assert_int_equal (waitpid (child, &status, 0), child);
        assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
        move (f, "kept.db", "journal.db");
        move (f, "kept.db-wal", "journal.db-wal");
        path_of (f, "journal.log", path);
        if (made == 0)
            assert_int_equal (unlink (path), 0);
    }
    assert_taken_over (f, 0);
}

static void an_earlier_journal_without_its_log_is_refused (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    move (f, "journal.db-wal", "kept.db-wal");
    assert_int_equal (store_open (&f->store, "sqlite", &f->options, &f->boot, &error),
                      STORE_ERROR_CORRUPT);
    assert_non_null (strstr (error.text, "journal.db-wal is missing"));
    for (int i = 0; i < 2; i++) { /* neither of them leaves one behind that the next would take */
        store_audit_t report = {.found = show};
        assert_int_equal (store_audit (&report, f->directory, &error), STORE_OK);
        assert_int_equal (report.findings, 1);
        assert_false (is_there (f, "journal.db-wal"));
        assert_int_equal (store_open (&f->store, "sqlite", &f->options, &f->boot, &error),
                          STORE_ERROR_CORRUPT);
        assert_non_null (strstr (error.text, "journal.db-wal is missing"));
        assert_false (is_there (f, "journal.db-wal"));
    }
    move (f, "kept.db-wal", "journal.db-wal");
    assert_taken_over (f, COMMITS);
    assert_null (f->boot.lost.why);
}

/* Somebody says that journal.db has it all, as here. Nothing proves it, so that is told. */
static void an_empty_log_of_an_earlier_journal_is_told (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    store_audit_t report = {.found = show};
    char path[160];
    move (f, "journal.db-wal", "kept.db-wal");
    path_of (f, "journal.db-wal", path);
    fclose (fopen (path, "w"));
    assert_int_equal (store_audit (&report, f->directory, &error), STORE_OK);
    assert_int_equal (report.findings, 1);
    assert_taken_over (f, COMMITS);
    assert_non_null (strstr (f->boot.lost.why, "journal.db-wal is empty"));
    assert_int_equal (f->boot.lost.first, 0);
}

static void a_missing_journal_is_no_earlier_one (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    char path[160];
    move (f, "journal.db", "kept.db");
    move (f, "journal.db-wal", "kept.db-wal");
    path_of (f, "journal.db", path);
    fclose (fopen (path, "w"));
    assert_int_equal (store_open (&f->store, "sqlite", &f->options, &f->boot, &error),
                      STORE_ERROR_CORRUPT);
    move (f, "kept.db", "journal.db");
    move (f, "kept.db-wal", "journal.db-wal");
    assert_taken_over (f, COMMITS);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (the_journal_of_an_earlier_version_is_taken_over),
        TEST (a_takeover_that_was_cut_short_is_repeated),
        TEST (an_earlier_journal_without_its_log_is_refused),
        TEST (an_empty_log_of_an_earlier_journal_is_told),
        TEST (a_missing_journal_is_no_earlier_one),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
