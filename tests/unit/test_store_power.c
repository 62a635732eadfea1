/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A loss of power at every moment. One run of a store is recorded, operation by operation; then
 * the disk is put together as it may be found after a crash behind the nth of them: what was
 * synced is there, of what was not synced nothing, all, single writes or sectors. Each time the
 * store must open, be whole, and hold every batch that had been acknowledged by then.
 *
 * TASKMQ_SEED gives another run, TASKMQ_POINTS says how many moments are tried. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "fault_vfs.h"
#include "store_support.h"
#include "support/timing.h"
#include "vfs_disk.h"

/* What is lost is the same under a sanitizer, which takes ten times as long. */
#ifdef __SANITIZE_ADDRESS__
#define POINTS 100
#else
#define POINTS 500
#endif

enum { POINTS_DEFAULT = POINTS, SEED_DEFAULT = 12, BATCHES = 60, LARGE_LOG = 40 };

/* As marks among the operations: what the store was asked and said. */
enum { BEGUN, ACKNOWLEDGED };

/* The run that is recorded. */
static batch_t *power_batch (fixture_t *f, uint64_t n)
{
    batch_t *batch = fixture_batch (f);
    record_t record = test_record ((int64_t) n);
    size_t size = (size_t) (n * 131 % 3000);
    record.payload = buf_new_uninitialised (size);
    memset (buf_mutable (record.payload), 'a' + (int) (n % 26), size);
    record.payload_bytes = (uint32_t) size;
    f->seq = f->pos = 2 * (n - 1);
    fixture_change (f, batch, &record, TMQ_EVENT_SUBMITTED);
    buf_drop (record.payload);
    record_t older = test_record ((int64_t) (n / 2 + 1));
    older.payload_bytes = (uint32_t) ((uint64_t) older.number * 131 % 3000);
    older.version = n;
    older.attempt = (uint32_t) n;
    fixture_change (f, batch, &older, TMQ_EVENT_CLAIMED);
    return batch;
}

static void run_recorded (recording_t *recording, bool synchronous_normal)
{
    fixture_device = &fault_device;
    fixture_t *f = fixture_new ("sqlite");
    fixture_device = NULL;
    f->options.synchronous_normal = synchronous_normal;
    /* Small, so that it is used again often. Without syncs it holds many commits, of which a loss
     * of power takes some from the middle. */
    f->options.journal_bytes = synchronous_normal ? 1 << 20 : 1 << 14;
    f->options.dirty_tasks_max = 7;
    f->options.dirty_ms_max = 3;
    char root[sizeof (f->directory)];
    memcpy (root, f->directory, sizeof (root));
    recording->root = root;
    fault_vfs_record (recording_add, recording);
    fixture_open (f);
    for (uint64_t n = 1; n <= BATCHES; n++) {
        fault_vfs_mark (BEGUN, n);
        fixture_commit (f, power_batch (f, n));
        fault_vfs_mark (ACKNOWLEDGED, n);
        if (n % 20 == 0) {
            fixture_close (f);
            if (n == LARGE_LOG)
                f->options.journal_bytes = 1 << 18; /* a start that makes a log of many writes */
            fixture_open (f);
        } else if (n % 5 == 0) {
            fixture_settle (f);
        }
    }
    fixture_close (f);
    fault_vfs_record (NULL, NULL);
    recording->root = NULL;
    void *state = f;
    fixture_teardown (&state);
}

static void verify_task (fixture_t *f, uint64_t number)
{
    tmq_id_t id = test_id (number);
    record_t *record = fixture_load (f, "default", &id);
    assert_non_null (record);
    size_t size = (size_t) (number * 131 % 3000);
    const buf_t *payload = record == NULL ? NULL : record->payload;
    assert_int_equal (buf_length (payload), size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal (buf_bytes (payload)[i], 'a' + (int) (number % 26));
    record_free (record);
}

/* What is there is whole, whatever was lost. */
static void verify (fixture_t *f, uint64_t begun)
{
    uint64_t stored = (uint64_t) f->boot.last_number;
    assert_true (stored <= begun);
    assert_int_equal (f->boot.last_pos, 2 * stored);
    assert_int_equal (f->boot.tasks, stored);
    for (uint64_t number = 1; number <= stored; number++)
        verify_task (f, number);
    if (stored < 2)
        return;
    tmq_id_t id = test_id (stored / 2 + 1); /* the other half of the newest batch */
    record_t *record = fixture_load (f, "default", &id);
    assert_int_equal (record->attempt, stored);
    assert_int_equal (record->last_seq, 2 * stored);
    record_free (record);
}

/* Returns the number of the newest batch that is there; *cuts counts the logs that were cut. */
static uint64_t lose_power (const vfs_disk_t *disk, size_t point, vfs_loss_t loss, uint64_t begun,
                            uint64_t seed, uint64_t *cuts)
{
    uint64_t random = seed + point * LOSSES + loss;
    fixture_t *f = fixture_new ("sqlite");
    store_error_t error = {STORE_OK, ""};
    f->options.journal_bytes = 1 << 16;
    vfs_disk_lose (disk, f->directory, loss, &random);
    store_code_t code = store_open (&f->store, "sqlite", &f->options, &f->boot, &error);
    if (code != STORE_OK)
        fail_msg ("crash at %zu, loss %u, in %s: %s", point, (unsigned) loss, f->directory,
                  error.text);
    assert_int_equal (store_reader_open (&f->reader, f->store, &error), STORE_OK);
    verify (f, begun);
    *cuts += f->boot.lost.why != NULL;
    uint64_t stored = (uint64_t) f->boot.last_number;
    void *state = f;
    fixture_teardown (&state);
    return stored;
}

static uint64_t number_from (const char *name, uint64_t fallback)
{
    const char *text = getenv (name);
    return text == NULL ? fallback : strtoull (text, NULL, 10);
}

/* Tries so many moments, evenly spread and shifted by the seed. Returns at how many of them
 * something acknowledged was lost; *cuts: of them the log had lost commits in its middle. */
static uint64_t try_moments (bool synchronous_normal, uint64_t points, uint64_t seed,
                             uint64_t *cuts)
{
    recording_t recording = {NULL, NULL, 0, 0};
    vfs_disk_t *disk = vfs_disk_new ();
    uint64_t begun = 0;
    uint64_t acknowledged = 0;
    uint64_t tried = 0;
    uint64_t losses = 0;
    *cuts = 0;
    fault_vfs_install ();
    fault_vfs_skip_syncs (true);
    run_recorded (&recording, synchronous_normal);
    print_message ("TASKMQ_SEED=%llu: %zu operations\n", (unsigned long long) seed,
                   recording.count);
    assert_true (recording.count > 500);
    for (size_t i = 0; i < recording.count; i++) {
        const vfs_op_t *op = &recording.ops[i];
        vfs_disk_apply (disk, op);
        if (op->kind == VFS_MARK && op->offset == BEGUN)
            begun = op->length;
        if (op->kind == VFS_MARK && op->offset == ACKNOWLEDGED)
            acknowledged = op->length;
        if ((i * points + seed) % recording.count >= points)
            continue;
        vfs_loss_t loss = (vfs_loss_t) ((seed + tried++) % LOSSES);
        uint64_t stored = lose_power (disk, i, loss, begun, seed, cuts);
        if (stored < acknowledged) {
            losses++;
            print_message ("crash at %zu: %llu batches of %llu\n", i, (unsigned long long) stored,
                           (unsigned long long) acknowledged);
        }
    }
    assert_in_range (tried, points / 2, points * 2);
    assert_int_equal (acknowledged, BATCHES);
    fault_vfs_skip_syncs (false);
    vfs_disk_free (disk);
    recording_free (&recording);
    return losses;
}

static void a_loss_of_power_loses_nothing_acknowledged (void **state)
{
    (void) state;
    uint64_t points = number_from ("TASKMQ_POINTS", POINTS_DEFAULT);
    uint64_t seed = number_from ("TASKMQ_SEED", SEED_DEFAULT);
    uint64_t cuts;
    assert_int_equal (try_moments (false, points, seed, &cuts), 0);
    assert_int_equal (cuts, 0);
}

/* The test itself is worth something: it sees what NORMAL, which does not sync each commit, loses.
 * But that is the newest only: what is there is whole, and the store opens, with a log that lost
 * some from its middle too. */
static void without_syncs_the_newest_is_lost (void **state)
{
    (void) state;
    uint64_t points = number_from ("TASKMQ_POINTS", POINTS_DEFAULT) / 4;
    uint64_t seed = number_from ("TASKMQ_SEED", SEED_DEFAULT);
    uint64_t cuts;
    assert_true (try_moments (true, points, seed, &cuts) > 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_loss_of_power_loses_nothing_acknowledged),
        cmocka_unit_test (without_syncs_the_newest_is_lost),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
