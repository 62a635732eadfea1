/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What only the sqlite backend has: files, restarts, readers beside the writer. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ids.h"
#include "store/audit.h"
#include "store/checksum.h"
#include "store/journal/scan.h"
#include "store/readers_pool.h"
#include "store/sqlite/sql.h"
#include "store_support.h"
#include "support/timing.h"

static void path_of (const fixture_t *f, const char *name, char path[160])
{
    snprintf (path, 160, "%s/%s", f->directory, name);
}

/* Runs SQL on a file of a closed store, as damage or as another program. */
static void run_sql (const fixture_t *f, const char *name, const char *text)
{
    char path[160];
    sqlite3 *db;
    path_of (f, name, path);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    if (sqlite3_exec (db, text, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg ("%s: %s", text, sqlite3_errmsg (db));
    sqlite3_close (db);
}

static int64_t ask_sql (const fixture_t *f, const char *name, const char *text)
{
    char path[160];
    sqlite3 *db;
    sqlite3_stmt *statement;
    path_of (f, name, path);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_prepare_v2 (db, text, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64 (statement, 0);
    sqlite3_finalize (statement);
    sqlite3_close (db);
    return value;
}

static void assert_open_fails (fixture_t *f, store_code_t wanted, const char *text)
{
    store_error_t error = {STORE_OK, ""};
    store_t *store = NULL;
    boot_t boot;
    store_code_t code = store_open (&store, "sqlite", &f->options, &boot, &error);
    if (code != wanted || strstr (error.text, text) == NULL || strchr (error.text, '\n') != NULL)
        fail_msg ("code %d instead of %d: '%s' without '%s'", code, wanted, error.text, text);
    assert_int_equal (error.code, wanted);
    assert_null (store);
}

static void ignore_finding (void *context, const char *text)
{
    (void) context;
    print_message ("%s\n", text);
}

/* Commits that only the journal of a closed store has. */
static uint64_t batches_waiting (const fixture_t *f)
{
    store_error_t error;
    store_audit_t report = {.found = ignore_finding};
    assert_int_equal (store_audit (&report, f->directory, &error), STORE_OK);
    assert_int_equal (report.findings, 0);
    return report.batches;
}

/* Restarts. */

static void a_closed_store_is_whole_and_its_journal_empty (void **state)
{
    fixture_t *f = *state;
    fixture_submit (f, 1, 50);
    record_t record = test_record (51);
    record.payload = buf_new ("abc", 3);
    record.payload_bytes = 3;
    batch_t *batch = fixture_batch (f);
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (f, batch);
    boot_t first = f->boot;
    fixture_close (f);
    assert_int_equal (batches_waiting (f), 0);
    assert_int_equal (ask_sql (f, "taskmq.db", "SELECT count (*) FROM task"), 51);
    assert_int_equal (ask_sql (f, "taskmq.db",
                               "SELECT count (*) FROM pragma_integrity_check"
                               " WHERE integrity_check <> 'ok'"),
                      0);
    assert_int_equal (ask_sql (f, "taskmq.db", "SELECT count (*) FROM pragma_foreign_key_check"),
                      0);
    fixture_open (f);
    assert_int_equal (f->boot.generation, first.generation);
    assert_true (f->boot.generation > 0);
    assert_int_equal (f->boot.epoch, first.epoch + 1);
    assert_int_equal (f->boot.last_number, 51);
    assert_int_equal (f->boot.last_pos, f->pos);
    assert_int_equal (f->boot.newest_ms, 5002);
    assert_true (f->boot.newest_id_ms > id_time_ms (&record.id));
    assert_int_equal (f->boot.tasks, 51);
    assert_int_equal (f->boot.recovered_batches, 0);
    record_t *found = fixture_load (f, "default", &record.id);
    assert_same_record (found, &record, true);
    record_free (found);
    buf_drop (record.payload);
}

static void a_second_store_on_the_same_files_is_refused (void **state)
{
    fixture_t *f = *state;
    assert_open_fails (f, STORE_ERROR_BUSY, "another process uses it");
    fixture_submit (f, 1, 1); /* the first is not disturbed */
    fixture_settle (f);
}

static void a_write_back_is_fenced_by_the_epoch (void **state)
{
    fixture_t *f = *state;
    store_error_t error = {STORE_OK, ""};
    run_sql (f, "taskmq.db", "UPDATE meta SET epoch = epoch + 1");
    fixture_submit (f, 1, 1);
    store_flush (f->store);
    record_t record = test_record (2);
    store_code_t code = STORE_OK;
    int64_t until = timing_ms () + TIMING_PATIENCE_MS;
    while (code == STORE_OK && timing_ms () < until) {
        batch_t *batch = fixture_batch (f);
        batch_add_record (batch, &record);
        code = store_commit (f->store, &batch, 1, &error);
    }
    assert_int_equal (code, STORE_ERROR_FENCED);
    store_reader_close (&f->reader);
    assert_int_equal (store_close (&f->store, &error), STORE_ERROR_FENCED);
}

/* Files that are not ours. */

static void write_file (const fixture_t *f, const char *name, const void *bytes, size_t length)
{
    char path[160];
    path_of (f, name, path);
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true (fd >= 0);
    assert_int_equal (write (fd, bytes, length), length);
    close (fd);
}

static size_t read_file (const fixture_t *f, const char *name, char *bytes, size_t max)
{
    char path[160];
    path_of (f, name, path);
    int fd = open (path, O_RDONLY);
    assert_true (fd >= 0);
    ssize_t length = read (fd, bytes, max);
    assert_true (length >= 0);
    close (fd);
    return (size_t) length;
}

static void copy_file (const fixture_t *f, const char *from, const char *to)
{
    enum { MAX = 8 << 20 };
    char *bytes = malloc (MAX);
    write_file (f, to, bytes, read_file (f, from, bytes, MAX));
    free (bytes);
}

static void other_peoples_files_are_left_alone (void **state)
{
    fixture_t *f = *state;
    static const char TEXT[] = "Dear diary, this is not a database at all, just text.\n";
    char found[200];
    fixture_close (f);
    directory_remove (f->directory);
    mkdir (f->directory, 0700);
    write_file (f, "taskmq.db", TEXT, sizeof (TEXT));
    assert_open_fails (f, STORE_ERROR_FOREIGN, "not an SQLite database");
    assert_int_equal (read_file (f, "taskmq.db", found, sizeof (found)), sizeof (TEXT));
    assert_memory_equal (found, TEXT, sizeof (TEXT));
    char path[160];
    path_of (f, "taskmq.db", path);
    unlink (path);
    run_sql (f, "taskmq.db", "CREATE TABLE shop (id); PRAGMA user_version = 1");
    assert_open_fails (f, STORE_ERROR_FOREIGN, "another application");
    run_sql (f, "taskmq.db", "PRAGMA application_id = 77");
    assert_open_fails (f, STORE_ERROR_FOREIGN, "another application");
    assert_int_equal (ask_sql (f, "taskmq.db", "SELECT count (*) FROM sqlite_schema"), 1);
    unlink (path);
    fixture_open (f);
}

static void put_task (fixture_t *f, int64_t number, const char *queue, const char *session)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (number);
    record.queue = queue;
    record.session = session;
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    fixture_commit (f, batch);
}

static void remove_task (fixture_t *f, int64_t number)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (number);
    batch_add_removal (batch, &record, TMQ_EXPIRED, 1);
    fixture_commit (f, batch);
}

static void assert_listed (fixture_t *f, const char *queue, const char *session, size_t wanted)
{
    filter_t filter = {.ns = "default",
                       .queues = &queue,
                       .queues_count = queue != NULL,
                       .sessions = &session,
                       .sessions_count = session != NULL};
    read_t list = {.kind = READ_LIST, .filter = filter, .limit = 10};
    read_t count = {.kind = READ_COUNT, .filter = filter};
    fixture_settle (f);
    fixture_read (f, &list);
    fixture_read (f, &count);
    assert_int_equal (list.records_count, wanted);
    assert_int_equal (count.count, wanted);
    read_clear (&list);
    read_clear (&count);
}

/* The same reader is asked all along: what it remembers must stay true. */
static void names_go_with_their_last_task (void **state)
{
    static const char SQL[] = "SELECT count (*) FROM name WHERE kind IN (2, 3)";
    fixture_t *f = *state;
    int64_t number = 1;
    for (int again = 0; again < 3; again++) {
        put_task (f, number, "alone", "s1");
        put_task (f, number + 1, "shared", "s1");
        put_task (f, number + 2, "shared", "");
        assert_listed (f, "alone", NULL, 1);
        assert_listed (f, NULL, "s1", 2);
        remove_task (f, number);
        assert_listed (f, "alone", NULL, 0);
        assert_listed (f, "shared", NULL, 2);
        assert_listed (f, NULL, "s1", 1);
        remove_task (f, number + 1);
        put_task (f, number + 3, "other", "s1"); /* in the same write-back, or the next */
        assert_listed (f, "shared", NULL, 1);
        assert_listed (f, NULL, "s1", 1);
        remove_task (f, number + 2);
        remove_task (f, number + 3);
        assert_listed (f, NULL, "s1", 0);
        number += 4;
    }
    put_task (f, number, "alone", "");
    assert_listed (f, "alone", NULL, 1);
    fixture_close (f);
    assert_int_equal (ask_sql (f, "taskmq.db", SQL), 1);
    fixture_open (f);
    assert_listed (f, "alone", NULL, 1);
}

/* More queues than a list walks one by one. */
static void a_list_of_many_queues_is_whole (void **state)
{
    enum { QUEUES = 700 };
    fixture_t *f = *state;
    batch_t *batch = fixture_batch (f);
    for (int64_t number = 1; number <= QUEUES; number++) {
        char queue[16];
        record_t record = test_record (number);
        snprintf (queue, sizeof (queue), "q%d", (int) number);
        record.queue = queue;
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    }
    fixture_commit (f, batch);
    fixture_settle (f);
    tmq_status_t statuses[] = {TMQ_STATUS_QUEUED, TMQ_STATUS_FAILED};
    for (size_t i = 0; i < 3; i++) {
        filter_t filter = {.ns = "default", .statuses = statuses, .statuses_count = i};
        read_t list = {.kind = READ_LIST, .filter = filter, .limit = 1000};
        read_t count = {.kind = READ_COUNT, .filter = filter};
        fixture_read (f, &list);
        fixture_read (f, &count);
        assert_int_equal (list.records_count, QUEUES);
        assert_int_equal (count.count, QUEUES);
        read_clear (&list);
        read_clear (&count);
    }
}

/* What SQLite does not take is told; it was a NULL that broke a rule of the schema. */
static void a_body_beyond_what_a_row_takes_is_named (void **state)
{
    fixture_t *f = *state;
    store_error_t error = {STORE_OK, ""};
    static const char TEXT[] = "INSERT INTO body VALUES (?1)";
    const char *texts[] = {TEXT};
    sqlite3 *db;
    sqlite3_stmt *statement;
    uint8_t bytes[1001] = {0};
    assert_int_equal (sql_open (&db, f->directory, "other.db", true, &error), STORE_OK);
    assert_int_equal (sql_run (db, "CREATE TABLE body (bytes BLOB NOT NULL)", &error), STORE_OK);
    assert_int_equal (sql_prepare (db, &statement, texts, 1, &error), STORE_OK);
    sqlite3_limit (db, SQLITE_LIMIT_LENGTH, 1000);
    assert_int_equal (sql_bind_blob (statement, 1, bytes, 900, "no commit", &error), STORE_OK);
    assert_int_equal (sql_do (statement, "no commit", &error), STORE_OK);
    assert_int_equal (sql_bind_blob (statement, 1, bytes, 1001, "no commit", &error),
                      STORE_ERROR_IO);
    assert_non_null (strstr (error.text, "no commit: 1001 bytes are more than the 1000 of a row"));
    sqlite3_finalize (statement);
    sql_close (&db);
}

static int version_of (const fixture_t *f, const char *name)
{
    char path[160];
    sqlite3 *db;
    sqlite3_stmt *statement;
    path_of (f, name, path);
    assert_int_equal (sqlite3_open_v2 (path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_prepare_v2 (db, "PRAGMA user_version", -1, &statement, NULL),
                      SQLITE_OK);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    int version = sqlite3_column_int (statement, 0);
    sqlite3_finalize (statement);
    sqlite3_close (db);
    return version;
}

static void set_version (const fixture_t *f, const char *name, int version)
{
    char text[64];
    snprintf (text, sizeof (text), "PRAGMA user_version = %d", version);
    run_sql (f, name, text);
}

static void write_block (const fixture_t *f, const char *name, off_t at, const uint8_t *bytes,
                         size_t length)
{
    char path[160];
    path_of (f, name, path);
    int fd = open (path, O_WRONLY);
    assert_int_equal (pwrite (fd, bytes, length, at), length);
    close (fd);
}

/* Both headers, of which one is enough. */
static void set_journal_version (const fixture_t *f, uint8_t version)
{
    char path[160];
    uint8_t header[FORM_HEADER_BYTES];
    path_of (f, "journal.log", path);
    int fd = open (path, O_RDONLY);
    assert_int_equal (pread (fd, header, sizeof (header), 0), sizeof (header));
    close (fd);
    header[8] = version;
    size_t summed = sizeof (header) - CHECKSUM_BYTES;
    checksum_put (header + summed, checksum_add (0, header, summed));
    write_block (f, "journal.log", 0, header, sizeof (header));
    write_block (f, "journal.log", FORM_BLOCK_BYTES, header, sizeof (header));
}

static void a_newer_schema_is_refused (void **state)
{
    fixture_t *f = *state;
    fixture_close (f);
    int tables = version_of (f, "taskmq.db");
    set_version (f, "taskmq.db", tables + 1);
    assert_open_fails (f, STORE_ERROR_NEWER, "newer version");
    set_version (f, "taskmq.db", 1);
    assert_open_fails (f, STORE_ERROR_FOREIGN, "in development (schema 1");
    set_version (f, "taskmq.db", tables);
    set_journal_version (f, FORM_VERSION + 1);
    assert_open_fails (f, STORE_ERROR_NEWER, "journal.log");
    set_journal_version (f, FORM_VERSION);
    fixture_open (f);
}

static void a_directory_that_cannot_be_used_is_named (void **state)
{
    fixture_t *f = *state;
    fixture_close (f);
    const char *directory = f->options.directory;
    f->options.directory = "no-such-directory";
    assert_open_fails (f, STORE_ERROR_ACCESS, "no-such-directory: No such file");
    f->options.directory = "/proc/version";
    assert_open_fails (f, STORE_ERROR_ACCESS, "not a directory");
    f->options.directory = "/proc";
    assert_open_fails (f, STORE_ERROR_ACCESS, "/proc/taskmq.db");
    f->options.directory = directory;
    fixture_open (f);
}

static void damage_is_found_and_not_touched (void **state)
{
    fixture_t *f = *state;
    char path[160];
    fixture_submit (f, 1, 500);
    fixture_close (f);
    copy_file (f, "taskmq.db", "good.db");
    path_of (f, "taskmq.db", path);
    struct stat status;
    assert_int_equal (stat (path, &status), 0);
    unsigned found = 0;
    off_t page_bytes = (off_t) ask_sql (f, "taskmq.db", "PRAGMA page_size");
    for (off_t at = page_bytes; at < status.st_size; at += page_bytes) {
        static const char GARBAGE[512] = "garbage";
        copy_file (f, "good.db", "taskmq.db");
        int fd = open (path, O_WRONLY);
        assert_int_equal (pwrite (fd, GARBAGE, sizeof (GARBAGE), at), sizeof (GARBAGE));
        close (fd);
        store_error_t error = {STORE_OK, ""};
        boot_t boot;
        store_code_t code = store_open (&f->store, "sqlite", &f->options, &boot, &error);
        if (code == STORE_OK) {
            store_close (&f->store, &error); /* a page that nothing uses */
            continue;
        }
        assert_int_equal (code, STORE_ERROR_CORRUPT);
        found++;
        char bytes[512];
        fd = open (path, O_RDONLY);
        assert_int_equal (pread (fd, bytes, sizeof (bytes), at), sizeof (bytes));
        close (fd);
        assert_memory_equal (bytes, GARBAGE, sizeof (GARBAGE));
    }
    assert_true (found > 20);
    copy_file (f, "good.db", "taskmq.db");
    assert_int_equal (truncate (path, status.st_size / 2), 0);
    assert_open_fails (f, STORE_ERROR_CORRUPT, "taskmq.db");
    copy_file (f, "good.db", "taskmq.db");
    fixture_open (f);
    assert_int_equal (f->boot.tasks, 500);
}

/* Files made by an earlier build have smaller pages. */
static void another_page_size_is_kept (void **state)
{
    fixture_t *f = *state;
    char path[160];
    fixture_submit (f, 1, 10);
    fixture_close (f);
    assert_int_equal (ask_sql (f, "taskmq.db", "PRAGMA page_size"), 16384);
    assert_int_equal (ask_sql (f, "taskmq.db", "PRAGMA auto_vacuum"), 2);
    run_sql (f, "taskmq.db",
             "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM;"
             "PRAGMA journal_mode = WAL");
    assert_int_equal (ask_sql (f, "taskmq.db", "PRAGMA page_size"), 4096);
    fixture_open (f);
    assert_int_equal (f->boot.tasks, 10);
    fixture_submit (f, 11, 2000);
    fixture_settle (f);
    tmq_id_t id = test_id (5);
    record_t *record = fixture_load (f, "default", &id);
    assert_non_null (record);
    record_free (record);
    fixture_close (f);
    assert_int_equal (ask_sql (f, "taskmq.db", "PRAGMA page_size"), 4096);
    path_of (f, "taskmq.db-wal", path);
    assert_int_equal (access (path, F_OK), -1);
    fixture_open (f);
    assert_int_equal (f->boot.tasks, 2000);
}

/* Leaves the files as a kill would: a child commits and ends without closing. */
static void leave_unclean (fixture_t *f, int64_t from, int64_t to)
{
    pid_t child = fork ();
    assert_true (child >= 0);
    if (child == 0) {
        f->options.dirty_ms_max = 60000; /* nothing is written back */
        fixture_open (f);
        for (int64_t number = from; number <= to; number++)
            fixture_submit (f, number, number);
        _exit (0);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
}

static void a_journal_belongs_to_its_tables (void **state)
{
    static const uint8_t ZEROES[FORM_BLOCK_BYTES];
    fixture_t *f = *state;
    char path[160];
    fixture_close (f);
    leave_unclean (f, 1, 5);
    copy_file (f, "journal.log", "good.log");

    path_of (f, "journal.log", path);
    unlink (path);
    assert_open_fails (f, STORE_ERROR_CORRUPT, "journal.log is missing");
    assert_open_fails (f, STORE_ERROR_CORRUPT, "journal.log is missing"); /* and none was made */

    copy_file (f, "good.log", "journal.log");
    char kept[2][160];
    char there[2][160];
    static const char *const tables[2][2] = {{"taskmq.db", "kept.db"},
                                             {"taskmq.db-wal", "kept.db-wal"}};
    bool moved[2];
    for (int i = 0; i < 2; i++) {
        path_of (f, tables[i][0], there[i]);
        path_of (f, tables[i][1], kept[i]);
        moved[i] = rename (there[i], kept[i]) == 0;
    }
    assert_true (moved[0]);
    assert_open_fails (f, STORE_ERROR_CORRUPT, "taskmq.db is missing or empty, and journal.log");
    assert_open_fails (f, STORE_ERROR_CORRUPT, "taskmq.db is missing or empty, and journal.log");
    assert_int_equal (access (there[0], F_OK), -1); /* and none was made */
    for (int i = 0; i < 2; i++)
        if (moved[i])
            assert_int_equal (rename (kept[i], there[i]), 0);

    write_block (f, "journal.log", (off_t) (form_first_part (0) + (uint64_t) 2 * FORM_BLOCK_BYTES),
                 ZEROES, sizeof (ZEROES));
    assert_open_fails (f, STORE_ERROR_CORRUPT, "journal.log: is damaged behind batch 2");

    copy_file (f, "good.log", "journal.log");
    run_sql (f, "taskmq.db", "UPDATE meta SET generation = generation + 1");
    assert_open_fails (f, STORE_ERROR_CORRUPT, "table meta is damaged");
    run_sql (f, "taskmq.db", "UPDATE meta SET generation = generation - 1");

    assert_int_equal (batches_waiting (f), 5);
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, 5);
    assert_int_equal (f->boot.tasks, 5);
}

/* A crash after the rows were written and before the journal was emptied: replayed once only. */
static void a_journal_that_was_replayed_is_not_replayed_again (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    fixture_close (f);
    leave_unclean (f, 1, 5);
    copy_file (f, "journal.log", "good.log");
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, 5);
    /* Task 1 is gone by now; the old journal must not bring it back. */
    record_t record = test_record (1);
    batch_t *batch = fixture_batch (f);
    batch_add_removal (batch, &record, TMQ_PURGED, 1);
    fixture_commit (f, batch);
    fixture_close (f);
    copy_file (f, "good.log", "journal.log");
    assert_int_equal (store_open (&f->store, "sqlite", &f->options, &f->boot, &error), STORE_OK);
    assert_int_equal (store_reader_open (&f->reader, f->store, &error), STORE_OK);
    assert_int_equal (f->boot.recovered_batches, 0);
    assert_int_equal (f->boot.tasks, 4);
    assert_null (fixture_load (f, "default", &record.id));
}

/* Somebody puts the file of an earlier moment back behind a kill. Nothing of this start is in the
 * tables, which know even so that there was a journal of it. */
static void an_older_journal_is_not_taken_behind_a_kill (void **state)
{
    fixture_t *f = *state;
    fixture_close (f);
    leave_unclean (f, 1, 5);
    copy_file (f, "journal.log", "before.log");
    f->seq = f->pos = 5; /* as the child left them */
    leave_unclean (f, 6, 8);
    copy_file (f, "journal.log", "good.log");

    copy_file (f, "before.log", "journal.log");
    assert_open_fails (f, STORE_ERROR_CORRUPT, "journal.log: is older than taskmq.db");
    assert_open_fails (f, STORE_ERROR_CORRUPT, "journal.log: is older than taskmq.db");

    copy_file (f, "good.log", "journal.log");
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, 3);
    assert_int_equal (f->boot.tasks, 8);
}

/* Logs. */

static void large_batch (fixture_t *f, int64_t *number)
{
    batch_t *batch = fixture_batch (f);
    for (int i = 0; i < 50; i++) {
        record_t record = test_record (++*number);
        record.payload = buf_new_uninitialised (20000);
        memset (buf_mutable (record.payload), 'x', 20000);
        record.payload_bytes = 20000;
        fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
        buf_drop (record.payload);
    }
    fixture_commit (f, batch);
}

/* Three readers that never stop: the log stays near the size at which it is reset. */
static void the_log_is_bounded_under_readers (void **state)
{
    fixture_t *f = *state;
    readers_pool_t *pool = NULL;
    store_error_t error;
    store_stats_t stats;
    uint64_t wal_bytes = 0;
    size_t done = 0;
    int64_t number = 0;
    read_t reads[6] = {{0}};
    fixture_submit (f, 1, 5000);
    number = 5000;
    fixture_settle (f);
    assert_int_equal (readers_pool_new (&pool, f->store, 3, &error), STORE_OK);
    for (int i = 0; i < 6; i++) {
        read_t *read = &reads[i];
        read->kind = i % 2 == 0 ? READ_EXPORT : READ_LIST;
        read->filter.ns = "default";
        read->limit = 3000;
        readers_pool_submit (pool, read);
    }
    /* More of them where the readers are slow: each has to come back. */
    for (int i = 0; i < 100 || (done <= 6 && i < 1000); i++) {
        large_batch (f, &number); /* 1 MB */
        fixture_settle (f);
        store_stats (f->store, &stats);
        wal_bytes = stats.wal_bytes > wal_bytes ? stats.wal_bytes : wal_bytes;
        for (read_t *read = readers_pool_done (pool); read != NULL;
             read = readers_pool_done (pool)) {
            assert_int_equal (read->error, 0);
            assert_true (read->records_count + read->items_count > 0);
            read_clear (read);
            readers_pool_submit (pool, read);
            done++;
        }
    }
    readers_pool_free (&pool);
    assert_null (pool);
    for (int i = 0; i < 6; i++)
        read_clear (&reads[i]);
    assert_true (done > 6);
    if (wal_bytes > (uint64_t) 24 << 20)
        fail_msg ("the log grew to %llu bytes", (unsigned long long) wal_bytes);
    assert_true (wal_bytes > (uint64_t) 10 << 20); /* else it was never put to the test */
}

static off_t journal_bytes (const fixture_t *f)
{
    char path[160];
    struct stat status;
    path_of (f, "journal.log", path);
    assert_int_equal (stat (path, &status), 0);
    return status.st_size;
}

static int read_log (void *context, void *to, size_t length, uint64_t at)
{
    return device_files.read (&device_files, *(int *) context, to, length, at);
}

/* The batch up to which the tables have all, as the file says. */
static uint64_t noted_batch (const fixture_t *f)
{
    char path[160];
    store_error_t error;
    scan_t scan;
    path_of (f, "journal.log", path);
    int fd = open (path, O_RDONLY);
    const scan_source_t source = {read_log, &fd, (uint64_t) journal_bytes (f), path};
    assert_int_equal (scan_read (&scan, &source, &error), STORE_OK);
    uint64_t written = scan.written;
    scan_destroy (&scan);
    close (fd);
    return written;
}

/* So that tables which lose their newest part are known. */
static void the_journal_says_at_rest_what_the_tables_have (void **state)
{
    fixture_t *f = *state;
    int64_t number = 0;
    for (int i = 0; i < 5; i++)
        large_batch (f, &number);
    fixture_settle (f);
    assert_true (journal_bytes (f) >= (off_t) f->options.journal_bytes);
    WAIT_FOR (noted_batch (f) == 5, TIMING_PATIENCE_MS);
}

/* However much is committed: what the tables have is overwritten. */
static void the_journal_of_a_light_load_keeps_its_size (void **state)
{
    enum { COMMITS = 300, TOGETHER = 10 }; /* 60 have room */
    (void) state;
    fixture_t *f = fixture_new ("sqlite");
    f->options.journal_bytes = 1 << 18;
    fixture_open (f);
    for (int64_t number = 1; number <= COMMITS; number++) {
        fixture_submit (f, number, number);
        if (number % TOGETHER == 0)
            fixture_settle (f);
    }
    assert_int_equal (journal_bytes (f), f->options.journal_bytes);
    void *done = f;
    fixture_teardown (&done);
}

/* Files that go. */

/* Puts a copy in the place of the file, as an editor does; or nothing. */
static void take_away (const char *directory, const char *name, bool replace)
{
    char path[128];
    char other[136];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    snprintf (other, sizeof (other), "%s.old", path);
    assert_int_equal (rename (path, other), 0);
    if (replace)
        fclose (fopen (path, "w"));
}

static void put_back (const char *directory, const char *name)
{
    char path[128];
    char other[136];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    snprintf (other, sizeof (other), "%s.old", path);
    assert_int_equal (rename (other, path), 0);
}

static void a_file_that_is_gone_is_noticed (void **state)
{
    fixture_t *fixture = *state;
    static const char *const names[] = {"taskmq.db", "taskmq.db-wal", "journal.log"};
    store_error_t error = {STORE_OK, ""};
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        fixture_submit (fixture, (int64_t) i + 1, (int64_t) i + 1);
        assert_int_equal (store_check (fixture->store, &error), STORE_OK);
        take_away (fixture->directory, names[i], false);
        assert_int_equal (store_check (fixture->store, &error), STORE_ERROR_IO);
        assert_non_null (strstr (error.text, names[i]));
        assert_non_null (strstr (error.text, "removed"));
        put_back (fixture->directory, names[i]);
        take_away (fixture->directory, names[i], true);
        assert_int_equal (store_check (fixture->store, &error), STORE_ERROR_IO);
        assert_non_null (strstr (error.text, "replaced"));
        put_back (fixture->directory, names[i]);
    }
    assert_int_equal (store_check (fixture->store, &error), STORE_OK);
}

static void the_reserve_follows_no_link (void **state)
{
    (void) state;
    struct stat info;
    char link[96];
    char victim[96];
    fixture_t *fixture = fixture_new ("sqlite");
    snprintf (victim, sizeof (victim), "%s/victim", fixture->directory);
    snprintf (link, sizeof (link), "%s/reserve", fixture->directory);
    fclose (fopen (victim, "w"));
    assert_int_equal (symlink ("victim", link), 0);
    fixture_open (fixture);
    assert_int_equal (stat (victim, &info), 0);
    assert_int_equal (info.st_size, 0);
    void *teardown = fixture;
    fixture_teardown (&teardown);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_prestate_setup_teardown (name, fixture_setup, fixture_teardown,               \
                                              (void *) "sqlite")

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_closed_store_is_whole_and_its_journal_empty),
        TEST (a_second_store_on_the_same_files_is_refused),
        TEST (a_write_back_is_fenced_by_the_epoch),
        TEST (other_peoples_files_are_left_alone),
        TEST (a_body_beyond_what_a_row_takes_is_named),
        TEST (names_go_with_their_last_task),
        TEST (a_list_of_many_queues_is_whole),
        TEST (a_newer_schema_is_refused),
        TEST (a_directory_that_cannot_be_used_is_named),
        TEST (damage_is_found_and_not_touched),
        TEST (another_page_size_is_kept),
        TEST (a_journal_belongs_to_its_tables),
        TEST (a_journal_that_was_replayed_is_not_replayed_again),
        TEST (an_older_journal_is_not_taken_behind_a_kill),
        TEST (the_log_is_bounded_under_readers),
        TEST (the_journal_says_at_rest_what_the_tables_have),
        cmocka_unit_test (the_journal_of_a_light_load_keeps_its_size),
        TEST (a_file_that_is_gone_is_noticed),
        cmocka_unit_test (the_reserve_follows_no_link),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
