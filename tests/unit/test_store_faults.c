/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The sqlite backend on a disk that is full or broken: what was acknowledged stays, what was
 * refused is not kept, and nothing goes on after a failed sync. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_vfs.h"
#include "store/committer.h"
#include "store_support.h"
#include "support/timing.h"

#define JOURNAL "journal.log"
#define TABLES_WAL "taskmq.db-wal"

/* A batch with one new task; its payload makes commits of several sizes. */
static batch_t *task_batch (fixture_t *f, int64_t number)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record (number);
    size_t size = (size_t) (number % 7) * 3000;
    record.payload = buf_new_uninitialised (size);
    memset (buf_mutable (record.payload), 'x', size);
    record.payload_bytes = (uint32_t) size;
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    buf_drop (record.payload);
    return batch;
}

static store_code_t try_commit (fixture_t *f, int64_t number, store_error_t *error)
{
    uint64_t seq = f->seq;
    uint64_t pos = f->pos;
    batch_t *batch = task_batch (f, number);
    store_code_t code = store_commit (f->store, &batch, 1, error);
    if (code != STORE_OK) {
        f->seq = seq; /* as the engine does after a failed commit: its numbers were never given */
        f->pos = pos;
    }
    return code;
}

static bool is_stored (fixture_t *f, int64_t number)
{
    tmq_id_t id = test_id ((uint64_t) number);
    record_t *record = fixture_load (f, "default", &id);
    bool found = record != NULL;
    record_free (record);
    return found;
}

static int faults_setup (void **state)
{
    fault_vfs_install ();
    fixture_device = &fault_device;
    *state = (void *) "sqlite";
    return fixture_setup (state);
}

static int faults_teardown (void **state)
{
    fault_vfs_disarm ();
    fault_vfs_delay_syncs (0);
    return fixture_teardown (state);
}

/* A write that finds no space: that batch is refused, the next one is taken. */
static void a_full_disk_refuses_a_commit_and_no_more (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    bool stored[200] = {false};
    unsigned refused = 0;
    for (int64_t number = 1; number < 200; number++) {
        fault_t fault = {JOURNAL, FAULT_WRITE, true, (uint64_t) number % 3, true};
        fault_vfs_arm (&fault);
        store_code_t code = try_commit (f, number, &error);
        fault_vfs_disarm ();
        assert_true (code == STORE_OK || code == STORE_ERROR_FULL);
        stored[number] = code == STORE_OK;
        refused += code != STORE_OK;
        if (code != STORE_OK)
            assert_non_null (strstr (error.text, "no space is left"));
    }
    assert_in_range (refused, 20, 190);
    fixture_close (f);
    fixture_open (f);
    for (int64_t number = 1; number < 200; number++)
        assert_int_equal (is_stored (f, number), stored[number]);
}

static bool exists (fixture_t *f, const char *name)
{
    char path[128];
    snprintf (path, sizeof (path), "%s/%s", f->directory, name);
    return access (path, F_OK) == 0;
}

static bool is_stalled (fixture_t *f)
{
    store_stats_t stats;
    store_stats (f->store, &stats);
    return stats.write_back_stalled;
}

/* Rows that find no space wait in memory; commits go on, and the rows follow when there is room. */
static void a_full_disk_stalls_the_rows_and_loses_none (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    assert_true (exists (f, "reserve"));
    fault_t fault = {TABLES_WAL, FAULT_WRITE, true, 0, false};
    fault_vfs_arm (&fault);
    for (int64_t number = 1; number <= 20; number++)
        assert_int_equal (try_commit (f, number, &error), STORE_OK);
    store_flush (f->store);
    WAIT_FOR (is_stalled (f), TIMING_PATIENCE_MS);
    assert_false (exists (f, "reserve"));
    assert_int_equal (store_written (f->store), 0);
    assert_int_equal (try_commit (f, 21, &error), STORE_OK);
    fault_vfs_disarm ();
    fixture_settle (f);
    assert_false (is_stalled (f));
    for (int64_t number = 1; number <= 21; number++)
        assert_true (is_stored (f, number));
    WAIT_FOR (exists (f, "reserve"), TIMING_PATIENCE_MS);
}

/* The rows fit into the log, which cannot be emptied into the file: nothing is written twice. */
static void a_full_disk_holds_up_the_checkpoint_only (void **state)
{
    fixture_t *f = *state;
    store_stats_t stats;
    fault_t fault = {"taskmq.db", FAULT_WRITE, true, 0, false};
    fault_vfs_arm (&fault);
    int64_t number = 0;
    while (fault_vfs_failed () < 3) {
        batch_t *batch = fixture_batch (f);
        for (int i = 0; i < 20; i++) {
            record_t record = test_record (++number);
            record.payload = buf_new_uninitialised (100000);
            memset (buf_mutable (record.payload), 'x', 100000);
            record.payload_bytes = 100000;
            fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
            buf_drop (record.payload);
        }
        fixture_commit (f, batch);
        fixture_settle (f);
        assert_true (number < 2000);
    }
    fault_vfs_disarm ();
    store_stats (f->store, &stats);
    assert_true (stats.wal_bytes > (uint64_t) 16 << 20);
    assert_int_equal (stats.tasks, (uint64_t) number);
    fixture_submit (f, number + 1, number + 1);
    fixture_settle (f);
    WAIT_FOR ((store_stats (f->store, &stats), stats.database_bytes > (uint64_t) 16 << 20),
              TIMING_PATIENCE_MS);
}

static void a_store_closed_while_full_keeps_its_journal (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    fault_t fault = {TABLES_WAL, FAULT_WRITE, true, 0, false};
    fault_vfs_arm (&fault);
    for (int64_t number = 1; number <= 5; number++)
        assert_int_equal (try_commit (f, number, &error), STORE_OK);
    store_reader_close (&f->reader);
    assert_int_equal (store_close (&f->store, &error), STORE_ERROR_FULL);
    fault_vfs_disarm ();
    fixture_open (f);
    assert_int_equal (f->boot.recovered_batches, 5);
    for (int64_t number = 1; number <= 5; number++)
        assert_true (is_stored (f, number));
}

/* Commits a batch for each of the numbers at once. */
static store_code_t try_commit_all (fixture_t *f, int64_t first, size_t count)
{
    uint64_t seq = f->seq;
    uint64_t pos = f->pos;
    store_error_t error;
    batch_t *batches[STORE_COMMIT_BATCHES_MAX];
    for (size_t i = 0; i < count; i++)
        batches[i] = task_batch (f, first + (int64_t) i);
    store_code_t code = store_commit (f->store, batches, count, &error);
    if (code != STORE_OK) {
        f->seq = seq;
        f->pos = pos;
        f->batch -= count; /* so that fixture_settle waits for what there is */
    }
    return code;
}

static void batches_of_one_commit_share_its_sync (void **state)
{
    fixture_t *f = *state;
    fault_t none = {JOURNAL, FAULT_SYNC, false, UINT64_MAX, false};
    assert_int_equal (try_commit_all (f, 1, 1), STORE_OK); /* after a reset of the log */
    fault_vfs_arm (&none);
    assert_int_equal (try_commit_all (f, 2, 1), STORE_OK);
    uint64_t alone = fault_vfs_matched ();
    fault_vfs_arm (&none);
    assert_int_equal (try_commit_all (f, 3, STORE_COMMIT_BATCHES_MAX), STORE_OK);
    assert_int_equal (fault_vfs_matched (), alone);
    fixture_settle (f);
    for (int64_t number = 1; number < 3 + STORE_COMMIT_BATCHES_MAX; number++)
        assert_true (is_stored (f, number));
}

/* Also when only the journal has them at the next start. */
static void batches_of_one_commit_are_kept_or_refused_together (void **state)
{
    enum { TOGETHER = 3, COMMITS = 30 };
    fixture_t *f = *state;
    store_error_t error;
    bool stored[COMMITS];
    size_t kept = 0;
    for (size_t i = 0; i < COMMITS; i++) {
        if (i == COMMITS / 2) {
            fault_t stalled = {TABLES_WAL, FAULT_WRITE, true, 0, false};
            fixture_settle (f);
            fault_vfs_arm (&stalled);
            stored[i] = try_commit_all (f, (int64_t) i * TOGETHER + 1, TOGETHER) == STORE_OK;
            store_reader_close (&f->reader);
            assert_int_equal (store_close (&f->store, &error), STORE_ERROR_FULL);
            fault_vfs_disarm ();
            fixture_open (f);
            assert_int_equal (f->boot.recovered_batches, TOGETHER);
        } else {
            fault_t fault = {JOURNAL, FAULT_WRITE, true, i % 2, true};
            fault_vfs_arm (&fault);
            stored[i] = try_commit_all (f, (int64_t) i * TOGETHER + 1, TOGETHER) == STORE_OK;
            fault_vfs_disarm ();
        }
        kept += stored[i];
    }
    assert_in_range (kept, 2, COMMITS - 10);
    fixture_close (f);
    fixture_open (f);
    for (size_t i = 0; i < COMMITS * TOGETHER; i++)
        assert_int_equal (is_stored (f, (int64_t) i + 1), stored[i / TOGETHER]);
}

/* Keys and bodies of the live rows, as "key=body " each. */
static void see_row (void *context, const row_t *row)
{
    char *text = context;
    size_t length = strlen (text);
    snprintf (text + length, 128 - length, "%.*s=%.*s ", (int) buf_length (row->key),
              (const char *) buf_bytes (row->key), (int) buf_length (row->body),
              (const char *) buf_bytes (row->body));
}

static void see_no_task (void *context, record_t *record)
{
    (void) context;
    record_free (record);
}

static void see_no_ns (void *context, const char *name, uint64_t last_seq)
{
    (void) context;
    (void) name;
    (void) last_seq;
}

static void assert_row (fixture_t *f, const char *key_text, const char *body)
{
    store_error_t error;
    buf_t *key = buf_new (key_text, strlen (key_text));
    lookup_t lookup = {.kind = LOOKUP_ROW, .row_kind = ROW_KIND_TEST_LIVE, .row_key = key};
    assert_int_equal (store_load (f->store, &lookup, 1, &error), STORE_OK);
    assert_int_equal (lookup.row_found, body != NULL);
    assert_body (lookup.row_body, body == NULL ? "" : body, body == NULL ? 0 : strlen (body));
    buf_drop (lookup.row_body);
    buf_drop (key);
}

static void rows_that_wait_for_space_are_still_read (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    char text[128] = "";
    store_live_visitor_t visitor = {see_no_task, see_no_ns, text, see_row};
    batch_t *batch = fixture_batch (f);
    batch_add_row (batch, ROW_KIND_TEST_LIVE, "b", "1");
    batch_add_row (batch, ROW_KIND_TEST_LIVE, "d", "1");
    batch_add_row (batch, ROW_KIND_TEST_LIVE, "f", "1");
    fixture_commit (f, batch);
    fixture_settle (f);
    fault_t fault = {TABLES_WAL, FAULT_WRITE, true, 0, false};
    fault_vfs_arm (&fault);
    static const char *const CHANGES[][2] = {{"a", "2"},  {"b", "2"}, {"c", "2"},
                                             {"d", NULL}, {"g", "2"}, {"h", NULL}};
    for (size_t i = 0; i < sizeof (CHANGES) / sizeof (CHANGES[0]); i++) {
        batch = fixture_batch (f);
        batch_add_row (batch, ROW_KIND_TEST_LIVE, CHANGES[i][0], CHANGES[i][1]);
        fixture_commit (f, batch);
    }
    store_flush (f->store);
    WAIT_FOR (is_stalled (f), TIMING_PATIENCE_MS);
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    assert_string_equal (text, "a=2 b=2 c=2 f=1 g=2 ");
    assert_row (f, "b", "2");
    assert_row (f, "d", NULL);
    assert_row (f, "f", "1");
    fault_vfs_disarm ();
    fixture_settle (f);
    assert_row (f, "b", "2");
    assert_row (f, "d", NULL);
    text[0] = '\0';
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    assert_string_equal (text, "a=2 b=2 c=2 f=1 g=2 ");
}

/* The engine is streamed in again while rows wait for space: it must see what is durable. */
static void see_number (void *context, record_t *record)
{
    int64_t *numbers = context;
    numbers[record->number]++;
    record_free (record);
}

static void see_seq (void *context, const char *name, uint64_t last_seq)
{
    int64_t *numbers = context;
    assert_string_equal (name, "default");
    numbers[0] = (int64_t) last_seq;
}

static void what_waits_for_space_is_still_read (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    int64_t numbers[32] = {0};
    store_live_visitor_t visitor = {see_number, see_seq, numbers, NULL};
    fixture_submit (f, 1, 3); /* written */
    fixture_settle (f);
    fault_t fault = {TABLES_WAL, FAULT_WRITE, true, 0, false};
    fault_vfs_arm (&fault);
    for (int64_t number = 4; number <= 6; number++)
        assert_int_equal (try_commit (f, number, &error), STORE_OK);
    batch_t *batch = fixture_batch (f);
    record_t ended = test_record (5);
    ended.last_seq = 5;
    ended.status = TMQ_STATUS_COMPLETED;
    ended.result = buf_new ("done", 4);
    ended.result_bytes = 4;
    ended.payload_bytes = 5 % 7 * 3000;
    fixture_change (f, batch, &ended, TMQ_EVENT_COMPLETED);
    record_t gone = test_record (3);
    batch_add_removal (batch, &gone, TMQ_PURGED, 77);
    fixture_commit (f, batch);
    store_flush (f->store);
    WAIT_FOR (is_stalled (f), TIMING_PATIENCE_MS);
    assert_int_equal (store_live (f->store, &visitor, &error), STORE_OK);
    static const int64_t WANTED[] = {7, 1, 1, 0, 1, 0, 1, 0};
    assert_memory_equal (numbers, WANTED, sizeof (WANTED));
    record_t *record = fixture_load (f, "default", &ended.id);
    assert_non_null (record);
    assert_int_equal (record->status, TMQ_STATUS_COMPLETED);
    assert_body (record->result, "done", 4);
    assert_int_equal (buf_length (record->payload), ended.payload_bytes);
    record_free (record);
    lookup_t key = {.kind = LOOKUP_ID, .ns = "default", .id = gone.id};
    assert_int_equal (store_load (f->store, &key, 1, &error), STORE_OK);
    assert_null (key.record);
    assert_int_equal (key.tombstone, TMQ_PURGED);
    fault_vfs_disarm ();
    fixture_settle (f);
    assert_true (is_stored (f, 5));
    assert_false (is_stored (f, 3));
    buf_drop (ended.result);
}

/* A sync that failed once may report success the next time: the journal is not touched again. */
static void a_failed_sync_ends_all_commits (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    for (int64_t number = 1; number <= 5; number++)
        assert_int_equal (try_commit (f, number, &error), STORE_OK);
    fault_t fault = {JOURNAL, FAULT_SYNC, false, 0, true};
    fault_vfs_arm (&fault);
    assert_int_equal (try_commit (f, 6, &error), STORE_ERROR_IO);
    assert_int_equal (fault_vfs_failed (), 1);
    uint64_t syncs = fault_vfs_matched ();
    assert_int_equal (try_commit (f, 7, &error), STORE_ERROR_IO);
    assert_int_equal (fault_vfs_matched (), syncs);
    fault_vfs_disarm ();
    store_reader_close (&f->reader);
    assert_int_equal (store_close (&f->store, &error), STORE_ERROR_IO);
    fixture_open (f);
    for (int64_t number = 1; number <= 5; number++)
        assert_true (is_stored (f, number));
    assert_false (is_stored (f, 7));
}

typedef struct failure {
    atomic_int count;
    store_code_t code;
} failure_t;

static void note_failure (void *context, const store_error_t *error)
{
    failure_t *failure = context;
    failure->code = error->code;
    atomic_fetch_add (&failure->count, 1);
}

static void a_broken_write_back_is_told (void **state)
{
    fixture_t *f = *state;
    static failure_t failure;
    store_error_t error;
    fixture_close (f);
    f->options.failed = note_failure;
    f->options.notify_context = &failure;
    atomic_store (&failure.count, 0);
    fixture_open (f);
    fault_t fault = {TABLES_WAL, FAULT_SYNC, false, 0, true};
    fault_vfs_arm (&fault);
    assert_int_equal (try_commit (f, 1, &error), STORE_OK);
    store_flush (f->store);
    WAIT_FOR (atomic_load (&failure.count) == 1, TIMING_PATIENCE_MS);
    assert_int_equal (failure.code, STORE_ERROR_IO);
    assert_int_equal (try_commit (f, 2, &error), STORE_ERROR_IO);
    fault_vfs_disarm ();
    store_reader_close (&f->reader);
    assert_int_equal (store_close (&f->store, &error), STORE_ERROR_IO);
    assert_int_equal (atomic_load (&failure.count), 1);
    f->options.failed = NULL;
    fixture_open (f);
    assert_true (is_stored (f, 1));
    assert_false (is_stored (f, 2));
}

/* Fails each write, sync and truncate of a recovery in turn: the next start finds everything. */
static void a_recovery_that_fails_can_be_repeated (void **state)
{
    fixture_t *f = *state;
    store_error_t error;
    uint64_t failures = 0;
    int64_t stored = 0;
    for (int full = 0; full < 2; full++) {
        for (uint64_t after = 0;; after += 1 + after / 8) {
            /* An unclean end with something in the journal. */
            fault_t stall = {TABLES_WAL, FAULT_WRITE, true, 0, false};
            fault_vfs_arm (&stall);
            for (int i = 0; i < 3; i++)
                assert_int_equal (try_commit (f, ++stored, &error), STORE_OK);
            store_reader_close (&f->reader);
            assert_int_equal (store_close (&f->store, &error), STORE_ERROR_FULL);
            fault_t fault = {"", FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE, full == 1, after, true};
            fault_vfs_arm (&fault);
            store_code_t code = store_open (&f->store, "sqlite", &f->options, &f->boot, &error);
            bool failed = fault_vfs_failed () > 0;
            fault_vfs_disarm ();
            if (code == STORE_OK) {
                assert_int_equal (store_close (&f->store, &error), STORE_OK);
            } else {
                assert_true (failed);
                assert_true (code == STORE_ERROR_IO || code == STORE_ERROR_FULL);
                failures++;
            }
            fixture_open (f);
            for (int64_t number = stored > 6 ? stored - 6 : 1; number <= stored; number++)
                assert_true (is_stored (f, number));
            if (!failed)
                break;
        }
    }
    assert_true (failures > 20);
    assert_int_equal (f->boot.last_number, stored);
    assert_int_equal (f->boot.tasks, (uint64_t) stored);
    assert_int_equal (f->boot.last_pos, f->pos);
}

/* While the disk is slow the committer works and its owner does not wait. */
static void the_committer_takes_the_wait (void **state)
{
    fixture_t *f = *state;
    committer_t *committer = committer_new (f->store);
    commit_result_t result;
    assert_non_null (committer);
    assert_true (committer_idle (committer));
    assert_false (committer_result (committer, &result));
    batch_t *batch = task_batch (f, 1);
    committer_commit (committer, &batch, 1, &result);
    assert_int_equal (result.code, STORE_OK);
    assert_int_equal (result.batch, 1);
    fault_vfs_delay_syncs (20000);
    batch = task_batch (f, 2);
    committer_submit (committer, &batch, 1);
    assert_false (committer_idle (committer));
    WAIT_FOR (committer_result (committer, &result), TIMING_PATIENCE_MS);
    assert_int_equal (result.code, STORE_OK);
    assert_int_equal (result.batch, 2);
    assert_true (committer_idle (committer));
    fault_t fault = {JOURNAL, FAULT_WRITE, true, 0, false};
    fault_vfs_arm (&fault);
    batch = task_batch (f, 3);
    committer_submit (committer, &batch, 1);
    WAIT_FOR (committer_result (committer, &result), TIMING_PATIENCE_MS);
    assert_int_equal (result.code, STORE_ERROR_FULL);
    assert_int_equal (result.batch, 3);
    assert_true (result.text[0] != '\0');
    fault_vfs_disarm ();
    committer_free (&committer);
    assert_null (committer);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, faults_setup, faults_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_full_disk_refuses_a_commit_and_no_more),
        TEST (a_full_disk_stalls_the_rows_and_loses_none),
        TEST (a_full_disk_holds_up_the_checkpoint_only),
        TEST (a_store_closed_while_full_keeps_its_journal),
        TEST (batches_of_one_commit_share_its_sync),
        TEST (batches_of_one_commit_are_kept_or_refused_together),
        TEST (what_waits_for_space_is_still_read),
        TEST (rows_that_wait_for_space_are_still_read),
        TEST (a_failed_sync_ends_all_commits),
        TEST (a_broken_write_back_is_told),
        TEST (a_recovery_that_fails_can_be_repeated),
        TEST (the_committer_takes_the_wait),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
