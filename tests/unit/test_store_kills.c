/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A process with the sqlite backend that is killed: what was acknowledged is there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ids.h"
#include "store/sqlite/sql.h"
#include "store_support.h"
#include "support/timing.h"

enum { KILLS = 10, KILL_TASKS = 40, KILL_BATCHES_MAX = 100000 };

/* What happens to whom in the nth batch ever is a function of the seed alone, so that the parent
 * knows what the child wrote. */
static uint64_t mix (uint64_t seed, uint64_t n)
{
    uint64_t z = seed + n * UINT64_C (0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C (0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Batch n: number n is new; one older task gets version n, a result of n bytes and an attempt. */
static batch_t *kill_batch (fixture_t *f, uint64_t seed, uint64_t n)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record ((int64_t) n);
    size_t size = (size_t) (mix (seed, n) % 5000);
    record.payload = buf_new_uninitialised (size);
    memset (buf_mutable (record.payload), 'a' + (int) (n % 26), size);
    record.payload_bytes = (uint32_t) size;
    f->seq = f->pos = 2 * (n - 1);
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    buf_drop (record.payload);
    uint64_t back = 1 + mix (seed, n + 1000000) % KILL_TASKS;
    record_t other = test_record ((int64_t) (n > back ? n - back : n));
    size = (size_t) (mix (seed, (uint64_t) other.number) % 5000);
    other.payload_bytes = (uint32_t) size;
    other.status = TMQ_STATUS_COMPLETED;
    other.version = n;
    other.result = buf_new_uninitialised (n % 3000);
    memset (buf_mutable (other.result), 'A' + (int) (n % 26), (size_t) (n % 3000));
    other.result_bytes = (uint32_t) (n % 3000);
    attempt_t attempt = {.number = other.number, .id = other.id, .attempt = (uint32_t) n};
    batch_add_attempt (batch, &attempt);
    fixture_change (f, batch, &other, TMQ_EVENT_COMPLETED);
    buf_drop (other.result);
    return batch;
}

/* The child: commits from batch *first on, reports each acknowledged one, until it is killed or
 * ends without any goodbye. */
static void kill_child (fixture_t *f, uint64_t seed, uint64_t first, int report)
{
    f->options.dirty_tasks_max = 20;
    f->options.dirty_ms_max = 5;
    f->options.journal_bytes = 1 << 18;
    fixture_open (f);
    uint64_t last = first + mix (seed, first) % 400;
    for (uint64_t n = first; n <= last; n++) {
        fixture_commit (f, kill_batch (f, seed, n));
        if (write (report, &n, sizeof (n)) != (ssize_t) sizeof (n))
            break;
        if (mix (seed, n) % 50 == 0)
            timing_pause (7);
    }
    _exit (0);
}

/* The events are gapless from the first to the last; returns the last. */
static uint64_t verify_events (fixture_t *f)
{
    uint64_t next = 1;
    uint64_t last = 0;
    bool more = true;
    while (more) {
        read_t read = {.kind = READ_EVENTS,
                       .filter = {.ns = "default"},
                       .after_seq = next - 1,
                       .limit = 1 << 20};
        fixture_read (f, &read);
        for (size_t i = 0; i < read.blocks_count; i++) {
            assert_int_equal (read.blocks[i].first_seq, next);
            next += read.blocks[i].count;
        }
        last = read.last_seq_seen;
        more = read.more;
        read_clear (&read);
    }
    assert_int_equal (next, last + 1);
    return last;
}

static void verify_kill (fixture_t *f, uint64_t seed, uint64_t acknowledged, uint64_t *stored)
{
    *stored = verify_events (f) / 2;
    assert_true (*stored == acknowledged || *stored == acknowledged + 1);
    assert_int_equal (f->boot.last_number, *stored);
    assert_int_equal (f->boot.tasks, *stored);
    uint64_t from = *stored > 300 ? *stored - 300 : 1;
    for (uint64_t number = from; number <= *stored; number++) {
        tmq_id_t id = test_id (number);
        record_t *record = fixture_load (f, "default", &id);
        assert_non_null (record);
        size_t size = (size_t) (mix (seed, number) % 5000);
        assert_int_equal (buf_length (record->payload), size);
        if (size > 0)
            assert_int_equal (buf_bytes (record->payload)[size - 1], 'a' + (int) (number % 26));
        uint64_t version = record->version;
        if (record->status == TMQ_STATUS_COMPLETED && record->result_bytes > 0)
            assert_int_equal (buf_bytes (record->result)[0], 'A' + (int) ((version - 1) % 26));
        record_free (record);
    }
    /* The newest change of the newest batch is there. */
    uint64_t back = 1 + mix (seed, *stored + 1000000) % KILL_TASKS;
    tmq_id_t id = test_id (*stored > back ? *stored - back : *stored);
    lookup_t key = {
        .kind = LOOKUP_ATTEMPT, .ns = "default", .id = id, .attempt = (uint32_t) *stored};
    store_error_t error;
    assert_int_equal (store_load (f->store, &key, 1, &error), STORE_OK);
    assert_non_null (key.attempt_row);
    free (key.attempt_row);
}

static uint64_t kill_once (fixture_t *f, uint64_t seed, uint64_t first, uint64_t round)
{
    int report[2];
    assert_int_equal (pipe (report), 0);
    pid_t child = fork ();
    assert_true (child >= 0);
    if (child == 0) {
        close (report[0]);
        kill_child (f, seed, first, report[1]);
    }
    close (report[1]);
    uint64_t acknowledged = first - 1;
    uint64_t last = first + mix (seed, round + 5000) % 300;
    uint64_t n;
    while (read (report[0], &n, sizeof (n)) == (ssize_t) sizeof (n)) {
        acknowledged = n;
        if (n >= last)
            kill (child, SIGKILL);
    }
    close (report[0]);
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    if (WIFEXITED (status))
        assert_int_equal (WEXITSTATUS (status), 0);
    return acknowledged;
}

/* In the tables of a closed store. */
static int64_t faults_of (const fixture_t *f)
{
    static const char SQL[] =
        "SELECT count (*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'";
    int64_t faults = -1;
    sqlite3 *db = NULL;
    store_error_t error;
    assert_int_equal (sql_open (&db, f->directory, "taskmq.db", true, &error), STORE_OK);
    assert_int_equal (sql_number (db, SQL, &faults, &error), STORE_OK);
    sql_close (&db);
    return faults;
}

static void a_kill_loses_nothing_acknowledged (void **state)
{
    fixture_t *f = *state;
    const char *given = getenv ("TASKMQ_SEED");
    uint64_t seed = given != NULL ? strtoull (given, NULL, 10) : 1;
    print_message ("TASKMQ_SEED=%llu\n", (unsigned long long) seed);
    uint64_t next = 1;
    uint64_t recovered = 0;
    for (uint64_t round = 0; round < KILLS && next < KILL_BATCHES_MAX; round++) {
        fixture_close (f); /* no thread is left when the child is made */
        uint64_t acknowledged = kill_once (f, seed, next, round);
        fixture_open (f);
        recovered += f->boot.recovered_batches;
        uint64_t stored;
        verify_kill (f, seed, acknowledged, &stored);
        next = stored + 1;
    }
    assert_true (recovered > 0);
    fixture_close (f);
    assert_int_equal (faults_of (f), 0);
    fixture_open (f);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown (a_kill_loses_nothing_acknowledged, fixture_setup,
                                                  fixture_teardown, (void *) "sqlite"),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
