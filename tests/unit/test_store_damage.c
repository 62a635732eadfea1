/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Rows that are not what was written: each is named, answered as damaged and counted, and all
 * others are read as before. */
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/event_page.h"
#include "store/audit.h"
#include "store/journal/journal.h"
#include "store_support.h"

enum { LIVE = 1, SMALL, LARGE, LABELLED, RETRIED, WHOLE, GONE, TASKS = GONE, LARGE_BYTES = 5000 };

static char told[512];
static unsigned told_count;

static void note_damage (void *context, const store_error_t *error)
{
    (void) context;
    assert_int_equal (error->code, STORE_ERROR_DAMAGED);
    snprintf (told, sizeof (told), "%s", error->text);
    told_count++;
}

static record_t record_of (int64_t number)
{
    static const label_t LABELS[] = {{"colour", "green"}, {"size", "large"}};
    record_t record = test_record (number);
    if (number == LIVE)
        return record;
    record.status = TMQ_STATUS_COMPLETED;
    record.finished_at = 2000;
    record.queue = "done";
    if (number == LABELLED) {
        record.labels = LABELS;
        record.labels_count = 2;
    }
    return record;
}

static buf_t *body_of (int64_t number)
{
    char bytes[LARGE_BYTES];
    memset (bytes, 'a' + (char) number, sizeof (bytes));
    return buf_new (bytes, number == LARGE ? sizeof (bytes) : 100);
}

static void submit (fixture_t *f, int64_t number)
{
    record_t record = record_of (number);
    batch_t *batch = fixture_batch (f);
    if (number != LIVE) {
        record.payload = body_of (number);
        record.result = body_of (number);
        record.payload_bytes = record.result_bytes = (uint32_t) buf_length (record.payload);
    }
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    if (number == RETRIED) {
        attempt_t attempt = {.number = number,
                             .id = record.id,
                             .attempt = 1,
                             .how = TMQ_EVENT_ATTEMPT_FAILED,
                             .worker = "w",
                             .error_message = "no"};
        batch_add_attempt (batch, &attempt);
    }
    fixture_commit (f, batch);
    buf_drop (record.payload);
    buf_drop (record.result);
}

/* A closed store with one task of each sort. */
static fixture_t *prepared (void)
{
    fixture_t *f = fixture_new ("sqlite");
    f->options.read_us_max = 60000000; /* a page ends where it is said, not when it takes long */
    f->options.damaged = note_damage;
    told_count = 0;
    told[0] = '\0';
    fixture_open (f);
    for (int64_t number = 1; number <= TASKS; number++)
        submit (f, number);
    record_t gone = record_of (GONE);
    batch_t *batch = fixture_batch (f);
    batch_add_removal (batch, &gone, TMQ_EXPIRED, 3000);
    fixture_commit (f, batch);
    fixture_close (f);
    return f;
}

static void count_finding (void *context, const char *text)
{
    assert_true (text[0] != '\0');
    ++*(uint64_t *) context;
}

static uint64_t add_bytes (uint64_t sum, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ ((const uint8_t *) bytes)[i]) * UINT64_C (0x100000001b3);
    return sum;
}

/* A sum of the names and the bytes of all files. */
static uint64_t sum_of_directory (const fixture_t *f)
{
    struct dirent **names;
    uint64_t sum = UINT64_C (0xcbf29ce484222325);
    int count = scandir (f->directory, &names, NULL, alphasort);
    assert_true (count > 2);
    for (int i = 0; i < count; i++) {
        char path[512];
        uint8_t bytes[4096];
        ssize_t length;
        snprintf (path, sizeof (path), "%s/%s", f->directory, names[i]->d_name);
        sum = add_bytes (sum, names[i]->d_name, strlen (names[i]->d_name));
        int fd = open (path, O_RDONLY | O_CLOEXEC);
        assert_true (fd >= 0);
        while ((length = read (fd, bytes, sizeof (bytes))) > 0)
            sum = add_bytes (sum, bytes, (size_t) length);
        close (fd);
        free (names[i]);
    }
    free (names);
    return sum;
}

/* Findings of an audit, which writes nothing, be it into a file or a new one. */
static uint64_t audit (const fixture_t *f, store_audit_t *report)
{
    store_error_t error = {STORE_OK, ""};
    uint64_t count = 0;
    uint64_t sum = sum_of_directory (f);
    *report = (store_audit_t){.found = count_finding, .context = &count};
    if (store_audit (report, f->directory, &error) != STORE_OK)
        fail_msg ("store_audit: %s", error.text);
    assert_int_equal (count, report->findings);
    assert_int_equal (sum_of_directory (f), sum);
    return count;
}

static void finish (fixture_t *f)
{
    void *state = f;
    fixture_teardown (&state);
}

static void run_sql (const fixture_t *f, const char *text)
{
    char path[160];
    char *error = NULL;
    sqlite3 *db;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    if (sqlite3_exec (db, text, NULL, NULL, &error) != SQLITE_OK)
        fail_msg ("%s: %s", text, error);
    assert_true (sqlite3_changes (db) > 0);
    sqlite3_close (db);
}

static lookup_t look (fixture_t *f, lookup_kind_t kind, int64_t number)
{
    store_error_t error = {STORE_OK, ""};
    lookup_t key = {.kind = kind,
                    .bodies = true,
                    .ns = "default",
                    .id = test_id ((uint64_t) number),
                    .attempt = 1};
    if (store_load (f->store, &key, 1, &error) != STORE_OK)
        fail_msg ("store_load: %s", error.text);
    return key;
}

static void assert_whole (fixture_t *f, int64_t number)
{
    record_t expected = record_of (number);
    lookup_t key = look (f, LOOKUP_ID, number);
    assert_false (key.damaged);
    assert_non_null (key.record);
    expected.last_seq = key.record->last_seq; /* as the fixture counts them */
    expected.version = key.record->version;
    if (number != LIVE) {
        expected.payload = expected.result = body_of (number);
        expected.payload_bytes = expected.result_bytes = (uint32_t) buf_length (expected.payload);
    }
    assert_same_record (key.record, &expected, true);
    record_free (key.record);
    buf_drop (expected.payload);
}

static void assert_told (fixture_t *f, const char *what)
{
    store_stats_t stats;
    store_stats (f->store, &stats);
    assert_true (told_count > 0);
    assert_int_equal (stats.damaged, told_count);
    if (strstr (told, what) == NULL)
        fail_msg ("'%s' does not name %s", told, what);
}

typedef struct wound {
    const char *sql;
    lookup_kind_t kind;
    int64_t number;
    const char *names;
} wound_t;

static const wound_t WOUNDS[] = {
    {"UPDATE task SET rest = zeroblob (length (rest)) WHERE number = 2", LOOKUP_ID, SMALL,
     "the row"},
    {"UPDATE task SET status = 5 WHERE number = 2", LOOKUP_ID, SMALL, "the row"},
    {"UPDATE task SET created_at = created_at + 1 WHERE number = 2", LOOKUP_ID, SMALL, "the row"},
    {"UPDATE task SET owner = owner + 100 WHERE number = 2", LOOKUP_ID, SMALL, "the row"},
    {"UPDATE task SET last_event = last_event + 1 WHERE number = 2", LOOKUP_ID, SMALL, "the row"},
    {"UPDATE task SET dedup_key = 'k' WHERE number = 2", LOOKUP_ID, SMALL, "the row"},
    {"UPDATE task SET sum = sum + 1 WHERE number = 2", LOOKUP_ID, SMALL, "the row"},
    {"UPDATE task SET payload = zeroblob (100) WHERE number = 2", LOOKUP_ID, SMALL, "the payload"},
    {"UPDATE task SET result = NULL WHERE number = 2", LOOKUP_ID, SMALL, "the result"},
    {"UPDATE task SET result_sum = payload_sum WHERE number = 2", LOOKUP_ID, SMALL, "the result"},
    {"UPDATE body SET bytes = zeroblob (5000) WHERE kind = 1", LOOKUP_ID, LARGE, "the payload"},
    {"UPDATE body SET kind = -kind; UPDATE body SET kind = 3 + kind", LOOKUP_ID, LARGE,
     "the payload"},
    {"DELETE FROM body WHERE kind = 2", LOOKUP_ID, LARGE, "the result"},
    {"UPDATE label SET value = 'grown' WHERE position = 0", LOOKUP_ID, LABELLED, "the row"},
    {"DELETE FROM label WHERE position = 1", LOOKUP_ID, LABELLED, "a label"},
    {"UPDATE attempt SET how = how + 1", LOOKUP_ATTEMPT, RETRIED, "an attempt"},
    {"UPDATE attempt SET error_message = 'na'", LOOKUP_ATTEMPT, RETRIED, "an attempt"},
    {"UPDATE tombstone SET code = code + 1", LOOKUP_ID, GONE, "the tombstone"},
};

static void a_damaged_row_is_named_and_the_others_are_read (void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof (WOUNDS) / sizeof (WOUNDS[0]); i++) {
        const wound_t *wound = &WOUNDS[i];
        fixture_t *f = prepared ();
        store_audit_t report;
        assert_int_equal (audit (f, &report), 0);
        run_sql (f, wound->sql);
        assert_true (audit (f, &report) > 0);
        assert_int_equal (report.tasks, TASKS - 1);
        fixture_open (f);
        lookup_t key = look (f, wound->kind, wound->number);
        if (!key.damaged)
            fail_msg ("not noticed: %s", wound->sql);
        assert_null (key.record);
        assert_null (key.attempt_row);
        assert_told (f, wound->names);
        assert_whole (f, LIVE);
        assert_whole (f, WHOLE);
        finish (f);
    }
}

static void a_damaged_name_damages_its_tasks (void **state)
{
    (void) state;
    fixture_t *f = prepared ();
    run_sql (f, "UPDATE name SET name = 'dons' WHERE name = 'done'");
    fixture_open (f);
    assert_true (look (f, LOOKUP_ID, SMALL).damaged);
    assert_told (f, "task");
    assert_whole (f, LIVE);
    finish (f);
}

static void forget_task (void *context, record_t *record)
{
    (void) context;
    record_free (record);
}

static void forget_ns (void *context, const char *name, uint64_t last_seq)
{
    (void) context;
    (void) name;
    (void) last_seq;
}

static void forget_row (void *context, const row_t *row)
{
    (void) context;
    (void) row;
}

/* Reads all live tasks, as a start does. */
static store_code_t live (fixture_t *f, store_error_t *error)
{
    const store_live_visitor_t visitor = {.task = forget_task, .ns = forget_ns};
    return store_live (f->store, &visitor, error);
}

static void a_start_refuses_what_it_would_go_on_from (void **state)
{
    (void) state;
    static const struct {
        const char *sql;
        const char *names;
    } WOUNDS_OF_STARTS[] = {
        {"UPDATE task SET created_at = created_at + 1 WHERE number = 1", "restore a backup"},
        {"UPDATE event SET count = count + 1 WHERE key = (SELECT max (key) FROM event)",
         "the events from"},
        {"UPDATE namespace SET name = 'defects'", "damaged"},
        {"UPDATE meta SET last_number = last_number - 1", "meta"},
    };
    for (size_t i = 0; i < sizeof (WOUNDS_OF_STARTS) / sizeof (WOUNDS_OF_STARTS[0]); i++) {
        store_error_t error = {STORE_OK, ""};
        boot_t boot;
        fixture_t *f = prepared ();
        run_sql (f, WOUNDS_OF_STARTS[i].sql);
        store_audit_t report;
        assert_true (audit (f, &report) > 0);
        store_code_t code = store_open (&f->store, "sqlite", &f->options, &boot, &error);
        if (code == STORE_OK)
            code = live (f, &error);
        if (code != STORE_ERROR_CORRUPT || strstr (error.text, WOUNDS_OF_STARTS[i].names) == NULL)
            fail_msg ("%s: %d '%s'", WOUNDS_OF_STARTS[i].sql, code, error.text);
        finish (f);
    }
}

static void damaged_events_are_a_gap (void **state)
{
    (void) state;
    fixture_t *f = prepared ();
    run_sql (f, "UPDATE event SET list = zeroblob (length (list)) WHERE pos = 3");
    fixture_open (f);
    read_t read = {.kind = READ_EVENTS, .filter = {.ns = "default"}, .limit = 1 << 20};
    fixture_read (f, &read);
    assert_int_equal (read.blocks_count, 2); /* up to the damage */
    assert_true (read.more);
    read_clear (&read);
    read = (read_t){
        .kind = READ_EVENTS, .filter = {.ns = "default"}, .limit = 1 << 20, .after_seq = 2};
    fixture_read (f, &read);
    assert_int_equal (read.blocks_count, TASKS - 3);
    assert_int_equal (read.blocks[0].first_seq, 4);
    assert_told (f, "events");
    read_clear (&read);
    finish (f);
}

/* A list, and so a snapshot, goes on behind a damaged row, whatever page it begins. */
static void a_list_leaves_a_damaged_row_out_and_names_it (void **state)
{
    (void) state;
    fixture_t *f = prepared ();
    run_sql (f, "UPDATE task SET created_at = created_at + 1 WHERE number = 2");
    f->options.read_us_max = 0; /* each row in a transaction of its own */
    fixture_open (f);
    read_t read = {.kind = READ_LIST, .filter = {.ns = "default"}, .limit = 100};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, TASKS - 2); /* without 2 and the one that is gone */
    assert_false (read.more);
    for (size_t i = 0; i < read.records_count; i++)
        assert_int_not_equal (read.records[i]->number, 2);
    assert_int_equal (told_count, 1);
    assert_told (f, "number 2");
    read_clear (&read);
    read = (read_t){.kind = READ_LIST, .filter = {.ns = "default"}, .limit = 1, .before_number = 3};
    fixture_read (f, &read);
    assert_int_equal (read.records_count, 1);
    assert_int_equal (read.records[0]->number, LIVE);
    read_clear (&read);
    finish (f);
}

/* Overwrites the page that an SQL query names; SQLite then refuses it. */
static void ruin_page (const fixture_t *f, const char *sql)
{
    static const uint8_t RUIN[64] = {0xff, 0xff, 0xff, 0xff};
    char path[160];
    sqlite3 *db;
    sqlite3_stmt *statement;
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
    assert_int_equal (sqlite3_prepare_v2 (db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal (sqlite3_step (statement), SQLITE_ROW);
    off_t page = (off_t) sqlite3_column_int64 (statement, 0);
    sqlite3_finalize (statement);
    sqlite3_close (db);
    int fd = open (path, O_RDWR | O_CLOEXEC);
    assert_true (fd >= 0 && page > 1);
    assert_int_equal (pwrite (fd, RUIN, sizeof (RUIN), (page - 1) * 16384), sizeof (RUIN));
    close (fd);
}

/* While the store is open, so that the check of a start does not refuse it. */
static void the_export_and_the_sweep_go_on_behind_a_ruined_page (void **state)
{
    (void) state;
    fixture_t *f = prepared ();
    fixture_open (f);
    ruin_page (f, "SELECT rootpage FROM sqlite_schema WHERE name = 'task'");
    read_t read = {.kind = READ_EXPORT, .limit = 100};
    fixture_read (f, &read);
    assert_int_equal (read.items_count, 0);
    assert_int_equal (read.upto_pos, f->boot.last_pos);
    assert_true (told_count > 0);
    read_clear (&read);
    store_error_t error = {STORE_OK, ""};
    store_sweep_t sweep = {.wall_ms = INT64_MAX, .limit = 100};
    assert_int_equal (store_due (f->store, &sweep, &error), STORE_OK);
    assert_int_equal (sweep.found.count, 0);
    assert_false (sweep.more);
    due_clear (&sweep.found);
    finish (f);
}

static void a_damaged_row_of_a_kind_is_named (void **state)
{
    (void) state;
    static const row_kind_t ROWS[] = {ROW_KIND_TEST, ROW_KIND_TEST_LIVE};
    for (size_t i = 0; i < sizeof (ROWS) / sizeof (ROWS[0]); i++) {
        fixture_t *f = prepared ();
        fixture_open (f);
        batch_t *batch = fixture_batch (f);
        batch_add_row (batch, ROWS[i], "key", "body");
        fixture_commit (f, batch);
        fixture_close (f);
        run_sql (f, "UPDATE row SET body = zeroblob (4) WHERE key = CAST ('key' AS BLOB)");
        store_audit_t report;
        assert_int_equal (audit (f, &report), 1);
        fixture_open (f);
        store_error_t error = {STORE_OK, ""};
        buf_t *key = buf_new ("key", 3);
        lookup_t lookup = {.kind = LOOKUP_ROW, .row_kind = ROWS[i], .row_key = key};
        assert_int_equal (store_load (f->store, &lookup, 1, &error), STORE_OK);
        assert_true (lookup.damaged);
        assert_null (lookup.row_body);
        assert_told (f, row_kind_name (ROWS[i]));
        buf_drop (key);
        /* What lives in memory begins with all of its rows. */
        const store_live_visitor_t visitor = {
            .task = forget_task, .ns = forget_ns, .row = forget_row};
        assert_int_equal (store_live (f->store, &visitor, &error),
                          ROWS[i] == ROW_KIND_TEST_LIVE ? STORE_ERROR_CORRUPT : STORE_OK);
        finish (f);
    }
}

static void a_page_of_rows_goes_on_behind_damage (void **state)
{
    (void) state;
    fixture_t *f = prepared ();
    fixture_open (f);
    batch_t *batch = fixture_batch (f);
    batch_add_row (batch, ROW_KIND_TEST, "a", "body");
    batch_add_row (batch, ROW_KIND_TEST, "b", "body");
    batch_add_row (batch, ROW_KIND_TEST, "c", "body");
    fixture_commit (f, batch);
    fixture_close (f);
    run_sql (f, "UPDATE row SET body = zeroblob (4) WHERE key = CAST ('b' AS BLOB)");
    fixture_open (f);
    read_t read = {.kind = READ_ROWS, .row_kind = ROW_KIND_TEST, .limit = 100};
    fixture_read (f, &read);
    assert_int_equal (read.rows_count, 2);
    assert_memory_equal (buf_bytes (read.rows[0].key), "a", 1);
    assert_memory_equal (buf_bytes (read.rows[1].key), "c", 1);
    assert_false (read.more);
    assert_told (f, row_kind_name (ROW_KIND_TEST));
    read_clear (&read);
    finish (f);
}

static void the_export_goes_on_behind_damage (void **state)
{
    (void) state;
    fixture_t *f = prepared ();
    run_sql (f, "UPDATE task SET created_at = created_at + 1 WHERE number = 2");
    run_sql (f, "UPDATE event SET list = zeroblob (length (list)) WHERE pos = 3");
    fixture_open (f);
    read_t read = {.kind = READ_EXPORT, .limit = 100};
    fixture_read (f, &read);
    assert_int_equal (read.items_count, TASKS - 3); /* without 2, 3 and the one that is gone */
    assert_int_equal (read.items[0].record->number, LIVE);
    assert_int_equal (read.items[1].record->number, LABELLED);
    assert_int_equal (told_count, 2);
    read_clear (&read);
    finish (f);
}

/* All events that can be read, as the follower of events.jsonl reads them: how many. *passed: how
 * often something had to be passed over. */
static uint64_t walk_events (fixture_t *f, uint64_t upto, unsigned *passed)
{
    store_reader_t *reader = NULL;
    store_error_t error = {STORE_OK, ""};
    uint64_t pos = 0;
    uint64_t count = 0;
    *passed = 0;
    assert_int_equal (store_reader_open (&reader, f->store, &error), STORE_OK);
    for (bool more = true; more && pos < upto;) {
        read_t read;
        bool leapt;
        store_code_t code = event_page_read (&read, reader, pos, 1, &leapt);
        *passed += leapt;
        more = code == STORE_OK && read.blocks_count > 0;
        for (size_t i = 0; i < read.blocks_count; i++) {
            assert_true (read.blocks[i].first_pos > pos);
            pos = read.blocks[i].first_pos + read.blocks[i].count - 1;
            count += read.blocks[i].count;
        }
        read_clear (&read);
    }
    store_reader_close (&reader);
    return count;
}

/* Whichever page is ruined: the walk ends, and goes on behind what cannot be read. */
static void events_are_read_behind_any_ruined_page (void **state)
{
    (void) state;
    enum { PAGE = 16384, EVENTS = 2400, STEP = 40 };
    static const uint8_t RUIN[64] = {0xff, 0xff, 0xff, 0xff};
    char path[160];
    uint8_t before[sizeof (RUIN)];
    unsigned passed;
    size_t partly = 0;
    fixture_t *f = prepared ();
    fixture_open (f);
    uint64_t first = f->boot.last_pos;
    for (int64_t number = TASKS + 1; number < TASKS + EVENTS; number += STEP)
        fixture_submit (f, number, number + STEP - 1);
    fixture_settle (f);
    fixture_close (f);
    fixture_open (f);
    const uint64_t all = first + EVENTS;
    assert_int_equal (walk_events (f, all, &passed), all);
    assert_int_equal (passed, 0);
    snprintf (path, sizeof (path), "%s/taskmq.db", f->directory);
    int fd = open (path, O_RDWR | O_CLOEXEC);
    for (off_t at = PAGE; pread (fd, before, sizeof (before), at) == sizeof (before); at += PAGE) {
        assert_int_equal (pwrite (fd, RUIN, sizeof (RUIN), at), sizeof (RUIN));
        uint64_t count = walk_events (f, all, &passed);
        assert_true (count == all || count < all - 100);
        partly += count > 0 && count < all && passed > 0;
        assert_int_equal (pwrite (fd, before, sizeof (before), at), sizeof (before));
    }
    close (fd);
    assert_true (partly > 2);
    finish (f);
}

static void events_of_a_damaged_namespace_are_left_out (void **state)
{
    (void) state;
    unsigned passed;
    fixture_t *f = prepared ();
    fixture_open (f);
    uint64_t all = f->boot.last_pos;
    assert_int_equal (walk_events (f, all, &passed), all);
    fixture_close (f);
    run_sql (f, "UPDATE namespace SET name = 'defauld' WHERE name = 'default'");
    store_error_t error = {STORE_OK, ""};
    assert_int_equal (store_open (&f->store, "sqlite", &f->options, &f->boot, &error), STORE_OK);
    told_count = 0;
    assert_int_equal (walk_events (f, all, &passed), 0);
    assert_int_equal (passed, 0);
    assert_true (told_count > 0);
    finish (f);
}

/* The journal. */

/* One block for each commit, behind the two headers. */
enum { BATCHES = 6, BLOCK = 4096, FIRST = 2 * BLOCK, CONTENT = 96 };

/* Commits one task a batch, and ends as by a kill: they stand in the log alone. */
static fixture_t *killed (bool synchronous_normal)
{
    fixture_t *f = fixture_new ("sqlite");
    f->options.synchronous_normal = synchronous_normal;
    f->options.dirty_ms_max = 1000000;
    pid_t child = fork ();
    if (child == 0) {
        fixture_open (f);
        for (int64_t number = 1; number <= BATCHES; number++)
            fixture_submit (f, number, number);
        _exit (0);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
    return f;
}

static void flip (int fd, off_t at, unsigned bit)
{
    uint8_t byte;
    assert_int_equal (pread (fd, &byte, 1, at), 1);
    byte = (uint8_t) (byte ^ 1u << bit);
    assert_int_equal (pwrite (fd, &byte, 1, at), 1);
}

static int log_open (const fixture_t *f)
{
    char path[160];
    snprintf (path, sizeof (path), "%s/journal.log", f->directory);
    int fd = open (path, O_RDWR | O_CLOEXEC);
    assert_true (fd >= 0);
    return fd;
}

/* How many tasks a start finds; -1: it refuses. */
static int tasks_after_start (fixture_t *f)
{
    store_error_t error = {STORE_OK, ""};
    store_code_t code = store_open (&f->store, "sqlite", &f->options, &f->boot, &error);
    if (code == STORE_OK) {
        store_close (&f->store, &error);
        return (int) f->boot.tasks;
    }
    assert_int_equal (code, STORE_ERROR_CORRUPT);
    assert_non_null (strstr (error.text, "journal.log"));
    return -1;
}

static void a_flipped_bit_in_the_log_is_not_its_end (void **state)
{
    (void) state;
    static const off_t PLACES[] = {
        FIRST,                   /* magic number */
        FIRST + 4,               /* flags */
        FIRST + 8,               /* salt */
        FIRST + 48,              /* its last batch */
        FIRST + 84,              /* its length */
        FIRST + 88,              /* its sum */
        FIRST + CONTENT,         /* the length of the batch in it */
        FIRST + CONTENT + 50,    /* the batch */
        FIRST + BLOCK + CONTENT, /* the second commit */
        FIRST + 4 * BLOCK + 16,  /* the last one behind which another stands */
    };
    for (size_t i = 0; i < sizeof (PLACES) / sizeof (PLACES[0]); i++) {
        store_audit_t report;
        fixture_t *f = killed (false);
        assert_int_equal (audit (f, &report), 0);
        assert_int_equal (report.batches, BATCHES);
        int fd = log_open (f);
        flip (fd, PLACES[i], i % 8);
        assert_true (audit (f, &report) > 0);
        assert_int_equal (tasks_after_start (f), -1);
        assert_int_equal (tasks_after_start (f), -1); /* nothing was cut meanwhile */
        flip (fd, PLACES[i], i % 8);
        close (fd);
        assert_int_equal (tasks_after_start (f), BATCHES);
        finish (f);
    }
}

/* What --synchronous normal leaves of a log after a loss of power: any of its frames may miss. */
static void a_log_without_syncs_ends_where_one_is_missing (void **state)
{
    (void) state;
    store_audit_t report;
    fixture_t *f = killed (true);
    int fd = log_open (f);
    flip (fd, FIRST + 2 * BLOCK + CONTENT + 50, 0);
    close (fd);
    assert_int_equal (audit (f, &report), 1); /* it tells that commits are lost */
    f->options.synchronous_normal = false;    /* whatever this start is asked for */
    uint64_t tasks = (uint64_t) tasks_after_start (f);
    assert_in_range (tasks, 1, BATCHES - 1);
    assert_non_null (strstr (f->boot.lost.why, "--synchronous normal"));
    assert_int_equal (f->boot.lost.first, report.batches + 1);
    assert_int_equal (f->boot.lost.last, BATCHES);
    assert_int_equal (tasks_after_start (f), tasks);
    assert_null (f->boot.lost.why);
    finish (f);
}

/* Both say what the file journal.cut gives up. */
static void what_is_given_up_is_told (void **state)
{
    (void) state;
    store_audit_t report;
    fixture_t *f = killed (false);
    char path[160];
    int fd = log_open (f);
    flip (fd, FIRST + 2 * BLOCK + CONTENT + 50, 0);
    close (fd);
    assert_int_equal (audit (f, &report), 1);
    snprintf (path, sizeof (path), "%s/" JOURNAL_CUT_FILE, f->directory);
    fclose (fopen (path, "w"));
    assert_int_equal (audit (f, &report), 1);
    assert_int_equal (access (path, F_OK), 0); /* it stands for a start */
    assert_int_equal (report.batches, 2);
    assert_int_equal (tasks_after_start (f), 2);
    assert_non_null (strstr (f->boot.lost.why, JOURNAL_CUT_FILE));
    assert_int_equal (f->boot.lost.first, 3);
    assert_int_equal (f->boot.lost.last, BATCHES);
    finish (f);
}

/* Blocks that are used again keep what nobody has overwritten: older commits, in any order. */
static void older_commits_prove_nothing (void **state)
{
    (void) state;
    static uint8_t blocks[2 * BLOCK];
    fixture_t *f = killed (false);
    int fd = log_open (f);
    assert_int_equal (pread (fd, blocks, sizeof (blocks), FIRST), sizeof (blocks));
    off_t end = FIRST + BATCHES * BLOCK;
    assert_int_equal (pwrite (fd, blocks + BLOCK, BLOCK, end), BLOCK);
    assert_int_equal (pwrite (fd, blocks, BLOCK, end + BLOCK), BLOCK);
    close (fd);
    assert_int_equal (tasks_after_start (f), BATCHES);
    finish (f);
}

/* One of them is enough. */
static void a_flipped_bit_in_a_header_does_no_harm (void **state)
{
    (void) state;
    static const off_t PLACES[] = {0, 9, 20, 50, 66, 300, BLOCK + 8, BLOCK + 70};
    for (size_t i = 0; i < sizeof (PLACES) / sizeof (PLACES[0]); i++) {
        store_audit_t report;
        fixture_t *f = killed (false);
        int fd = log_open (f);
        flip (fd, PLACES[i], i % 8);
        close (fd);
        assert_int_equal (audit (f, &report), 0);
        assert_int_equal (tasks_after_start (f), BATCHES);
        finish (f);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_damaged_row_is_named_and_the_others_are_read),
        cmocka_unit_test (a_damaged_name_damages_its_tasks),
        cmocka_unit_test (a_start_refuses_what_it_would_go_on_from),
        cmocka_unit_test (damaged_events_are_a_gap),
        cmocka_unit_test (a_list_leaves_a_damaged_row_out_and_names_it),
        cmocka_unit_test (the_export_and_the_sweep_go_on_behind_a_ruined_page),
        cmocka_unit_test (a_damaged_row_of_a_kind_is_named),
        cmocka_unit_test (a_page_of_rows_goes_on_behind_damage),
        cmocka_unit_test (the_export_goes_on_behind_damage),
        cmocka_unit_test (events_are_read_behind_any_ruined_page),
        cmocka_unit_test (events_of_a_damaged_namespace_are_left_out),
        cmocka_unit_test (a_flipped_bit_in_the_log_is_not_its_end),
        cmocka_unit_test (a_log_without_syncs_ends_where_one_is_missing),
        cmocka_unit_test (what_is_given_up_is_told),
        cmocka_unit_test (older_commits_prove_nothing),
        cmocka_unit_test (a_flipped_bit_in_a_header_does_no_harm),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
