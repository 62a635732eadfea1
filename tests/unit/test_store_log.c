/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The journal's file on a disk in memory: a loss of power at every operation, with everything that
 * may be left of what was not synced; flipped bits; other people's files; no space and failed syncs
 * at each operation.
 *
 * TASKMQ_SEED gives the first run, TASKMQ_RUNS says how many. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "log_world.h"

enum {
    RUNS_DEFAULT = 200,
    LIVES = 4, /* of a run */
    ZEROES_STEP = 16
};

/* One life: runs until the operation at which the power goes. False: that never came. */
static bool live_until (world_t *w, uint64_t operation, bool after_it, size_t steps)
{
    w->disk.fails_from = operation;
    w->disk.fails_with = EIO;
    w->disk.fails_after_it = after_it;
    store_code_t code = w->journal == NULL ? world_start (w) : world_begin (w);
    for (size_t i = 0; code == STORE_OK && i < steps; i++)
        code = world_step (w);
    if (code != STORE_OK && code != STORE_ERROR_IO && code != STORE_ERROR_ACCESS)
        fail_msg ("a failed disk: %u %s", (unsigned) code, w->error.text);
    return code != STORE_OK;
}

static void choose_disk (world_t *w, uint64_t seed)
{
    w->options.unsynced = seed % 5 == 4;
    w->disk.refuses_direct = seed % 3 == 1;
    w->disk.refuses_first_write = seed % 3 == 2;
    w->options.bytes = seed % 7 == 3 ? 1 << 17 : 1 << 16;
}

/* Some lives, each ended by the power. */
static void one_run (uint64_t seed)
{
    static world_t world;
    world_t *w = &world;
    char what[96];
    world_init (w, seed);
    choose_disk (w, seed);
    for (unsigned life = 0; life < LIVES; life++) {
        uint64_t operation = w->disk.operations + power_random (&w->random) % 160;
        power_loss_t loss = (power_loss_t) (power_random (&w->random) % POWER_LOSSES);
        bool after_it = (power_random (&w->random) & 1) != 0;
        snprintf (what, sizeof (what), "TASKMQ_SEED=%llu, life %u, operation %llu, loss %u",
                  (unsigned long long) seed, life, (unsigned long long) operation, (unsigned) loss);
        live_until (w, operation, after_it, 80);
        world_lose (w, loss);
        assert_reads (w, what);
    }
    world_destroy (w);
}

static uint64_t number_from (const char *name, uint64_t fallback)
{
    const char *text = getenv (name);
    return text == NULL ? fallback : strtoull (text, NULL, 10);
}

static void a_loss_of_power_loses_nothing_acknowledged (void **state)
{
    (void) state;
    uint64_t runs = number_from ("TASKMQ_RUNS", RUNS_DEFAULT);
    uint64_t seed = number_from ("TASKMQ_SEED", 1);
    for (uint64_t i = 0; i < runs; i++)
        one_run (seed + i);
}

/* One life from the first operation on, ended at each of them in turn, in each way. */
static void every_operation_is_a_place_to_lose_power (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    char what[64];
    bool ended = true;
    uint64_t operation;
    for (operation = 0; ended; operation++) {
        for (unsigned way = 0; way < 2 * POWER_LOSSES; way++) {
            power_loss_t loss = (power_loss_t) (way % POWER_LOSSES);
            world_init (w, 5);
            ended = live_until (w, operation, way >= POWER_LOSSES, 40);
            world_lose (w, loss);
            snprintf (what, sizeof (what), "operation %llu, way %u", (unsigned long long) operation,
                      way);
            if (w->tables.epoch > 0 || power_disk_file (&w->disk, JOURNAL_FILE) != NULL)
                assert_reads (w, what);
            world_destroy (w);
        }
    }
    assert_true (operation > 60);
}

/* What nobody synced is told, as the newest that is missing. The test sees what is lost. */
static void without_syncs_some_of_the_newest_are_lost (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    size_t lost = 0;
    size_t cuts = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool cut;
        world_init (w, seed);
        w->options.unsynced = true;
        w->options.bytes = 1 << 18; /* else it grows, with a sync */
        assert_int_equal (world_start (w), STORE_OK);
        for (int i = 0; i < 12; i++)
            assert_int_equal (world_commit (w, 2, 300), STORE_OK);
        world_lose (w, (power_loss_t) (seed % POWER_LOSSES));
        w->options.unsynced = seed % 2 == 0; /* whatever the next start is asked for */
        assert_int_equal (world_read (w, &cut), STORE_OK);
        w->options.unsynced = true;
        assert_replayed (w, "without syncs");
        lost += w->replayed_count < w->acked_count;
        cuts += cut;
        world_destroy (w);
    }
    print_message ("%zu lost, %zu cuts\n", lost, cuts);
    assert_in_range (lost, 20, 39);
    assert_true (cuts > 10);
}

/* A log of some commits, as a kill leaves it. */
static void prepare (world_t *w, size_t commits)
{
    world_init (w, 3);
    assert_int_equal (world_start (w), STORE_OK);
    for (size_t i = 0; i < commits; i++)
        assert_int_equal (world_commit (w, i % 3 + 1, i * 400), STORE_OK);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
}

/* Whole, or refused with its message; shorter only by the last commit, behind which nothing stands
 * that would tell. */
static void judge_flip (world_t *w, size_t byte, unsigned counts[3])
{
    bool cut;
    store_code_t code = world_read (w, &cut);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    if (code != STORE_OK) {
        bool told = code == STORE_ERROR_CORRUPT && strstr (w->error.text, "journal.log") != NULL;
        if (!told)
            fail_msg ("byte %zu: %u %s", byte, (unsigned) code, w->error.text);
        counts[1]++;
        return;
    }
    size_t last = 1;
    known_t newest = w->acked[w->acked_count - 1];
    while (last < 4 && w->acked[w->acked_count - last - 1].stamp == newest.stamp - (int64_t) last &&
           w->acked[w->acked_count - last - 1].bytes + last == newest.bytes)
        last++;
    if (cut || (w->replayed_count != w->acked_count && w->replayed_count != w->acked_count - last))
        fail_msg ("byte %zu: %zu batches of %zu", byte, w->replayed_count, w->acked_count);
    size_t all = w->acked_count;
    w->acked_count = w->replayed_count;
    assert_replayed (w, "a flipped bit");
    w->acked_count = all;
    counts[w->replayed_count == all ? 0 : 2]++;
}

static void no_flipped_bit_shortens_a_log_in_silence (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    unsigned counts[3] = {0};
    size_t tried = 0;
    prepare (w, 7);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    bool all = getenv ("TASKMQ_RUNS") != NULL; /* else of the zeroes only some */
    for (size_t i = 0; i < file->length; i++) {
        uint8_t bit = (uint8_t) (1u << i % 8);
        if (file->bytes[i] == 0 && i % ZEROES_STEP != 0 && !all)
            continue;
        file->bytes[i] ^= bit;
        judge_flip (w, i, counts);
        file->bytes[i] ^= bit;
        tried++;
    }
    print_message ("%u whole, %u refused, %u without the last commit\n", counts[0], counts[1],
                   counts[2]);
    assert_in_range (counts[1], 5000, tried);
    assert_in_range (counts[2], 1000, counts[1] / 2);
    assert_int_equal (counts[0] + counts[1] + counts[2], tried);
    world_destroy (w);
}

/* Blocks that are gone, exchanged or from elsewhere in the log. */
static void no_lost_block_shortens_a_log_in_silence (void **state)
{
    (void) state;
    static world_t world;
    static uint8_t kept[FORM_BLOCK_BYTES];
    world_t *w = &world;
    prepare (w, 7);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    size_t blocks = file->length / FORM_BLOCK_BYTES;
    for (size_t i = 0; i < blocks * blocks; i++) {
        unsigned counts[3] = {0};
        uint8_t *at = file->bytes + i / blocks * FORM_BLOCK_BYTES;
        const uint8_t *other = file->bytes + i % blocks * FORM_BLOCK_BYTES;
        memcpy (kept, at, sizeof (kept));
        if (other == at)
            memset (at, 0, sizeof (kept));
        else
            memcpy (at, other, sizeof (kept));
        judge_flip (w, i / blocks * FORM_BLOCK_BYTES, counts);
        memcpy (at, kept, sizeof (kept));
    }
    world_destroy (w);
}

static void assert_refused (world_t *w, store_code_t wanted, const char *text)
{
    bool cut;
    store_code_t code = world_read (w, &cut);
    if (code != wanted || strstr (w->error.text, text) == NULL)
        fail_msg ("%u instead of %u: %s without %s", (unsigned) code, (unsigned) wanted,
                  w->error.text, text);
    assert_null (w->journal);
    power_disk_close_all (&w->disk);
}

static void a_journal_belongs_to_its_tables (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    prepare (w, 3);
    w->tables.generation++;
    assert_refused (w, STORE_ERROR_CORRUPT, "another taskmq.db");
    w->tables.generation--;
    w->tables.epoch--;
    assert_refused (w, STORE_ERROR_CORRUPT, "lacks its newest part");
    w->tables.epoch++;
    w->tables.epoch++; /* of an older epoch: the tables have all of it */
    w->tables.clean = true;
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_int_equal (w->replayed_count, 0);
    w->tables.clean = false;
    journal_free (&w->journal);
    w->tables.epoch--;
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    size_t length = file->length;
    file->length = length / 2;
    assert_refused (w, STORE_ERROR_CORRUPT, "shorter than it was made");
    file->length = FORM_HEADER_BYTES; /* of a piece of one block, too, it is known whose it was */
    assert_refused (w, STORE_ERROR_CORRUPT, "shorter than it was made");
    file->length = 0;
    assert_refused (w, STORE_ERROR_CORRUPT, "missing or empty");
    file->length = length;
    uint8_t *bytes = file->bytes;
    file->bytes = memory_zero (length, 1);
    memcpy (file->bytes, "SQLite format 3", 16);
    assert_refused (w, STORE_ERROR_FOREIGN, "is not a journal of taskmq");
    free (file->bytes);
    file->bytes = bytes;
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_int_equal (w->replayed_count, w->acked_count);
    world_destroy (w);
}

static void tables_that_lack_what_was_given_up_are_known (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    prepare (w, 0);
    assert_int_equal (world_start (w), STORE_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal (world_commit (w, 1, 100), STORE_OK);
    assert_false (journal_can_rest (w->journal));
    journal_written (w->journal, 4);
    assert_true (journal_can_rest (w->journal));
    assert_int_equal (journal_rest (w->journal, &w->error), STORE_OK);
    assert_false (journal_can_rest (w->journal));
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    w->tables.written = 3;
    assert_refused (w, STORE_ERROR_CORRUPT, "ends at batch 3, but had all up to 4");
    w->tables.written = 4;
    assert_reads (w, "one behind");
    assert_int_equal (w->replayed_count, 1);
    world_destroy (w);
}

static void only_one_has_it_open (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    journal_t *other = NULL;
    prepare (w, 1);
    assert_int_equal (world_start (w), STORE_OK);
    assert_int_equal (journal_open (&other, &w->options, &w->tables, true, &w->error),
                      STORE_ERROR_BUSY);
    assert_null (other);
    world_destroy (w);
}

enum { BLOCKS_MAX = 64 };

/* Where parts begin in the file, in its order. */
static size_t parts_in (const power_file_t *file, size_t at[BLOCKS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < file->length; i += FORM_BLOCK_BYTES)
        if (memcmp (file->bytes + i, "tmqp", 4) == 0) {
            assert_in_range (count, 0, BLOCKS_MAX - 1);
            at[count++] = i;
        }
    return count;
}

/* Each part is durable before the next one: a whole one behind one that is not is damage. Only the
 * last one may be what a crash cut short. */
static void a_later_part_proves_the_earlier_ones (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    size_t at[BLOCKS_MAX];
    bool cut;
    prepare (w, 0);
    assert_int_equal (world_start (w), STORE_OK);
    assert_int_equal (world_commit (w, 1, 100), STORE_OK);
    assert_int_equal (world_commit (w, 1, 60000), STORE_OK);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    size_t parts = parts_in (file, at);
    assert_in_range (parts, 5, 9);
    for (size_t i = 1; i < parts; i++) { /* 0 is the first commit */
        file->bytes[at[i] + FORM_PART_BYTES + 7] ^= 4;
        if (i + 1 < parts) {
            assert_refused (w, STORE_ERROR_CORRUPT, "before commits that were acknowledged");
        } else {
            assert_int_equal (world_read (w, &cut), STORE_OK);
            assert_false (cut);
            assert_int_equal (w->replayed_count, 1);
            journal_free (&w->journal);
            power_disk_close_all (&w->disk);
        }
        file->bytes[at[i] + FORM_PART_BYTES + 7] ^= 4;
    }
    assert_reads (w, "all of it");
    world_destroy (w);
}

/* Of a commit that found no space nothing is left that would prove a commit. */
static void all_parts_are_taken_back (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    size_t at[BLOCKS_MAX];
    unsigned refused = 0;
    for (uint64_t operation = 0; operation < 24; operation++) {
        prepare (w, 0);
        w->options.bytes = 1 << 18;
        assert_int_equal (world_start (w), STORE_OK);
        assert_int_equal (world_commit (w, 1, 100), STORE_OK);
        size_t before = parts_in (power_disk_file (&w->disk, JOURNAL_FILE), at);
        w->disk.fails_from = w->disk.operations + operation;
        w->disk.fails_until = w->disk.fails_from + 1;
        w->disk.fails_with = ENOSPC;
        w->disk.fails_after_it = true;
        store_code_t code = world_commit (w, 1, 160000);
        size_t after = parts_in (power_disk_file (&w->disk, JOURNAL_FILE), at);
        if (code == STORE_ERROR_FULL) {
            refused++;
            assert_int_equal (after, before);
        }
        world_lose (w, POWER_KEEP);
        assert_reads (w, "taken back");
        world_destroy (w);
    }
    assert_in_range (refused, 2, 23);
}

/* Somebody decides that the rest is worth more than what stands behind the damage. */
static void damage_can_be_given_up (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    prepare (w, 6);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    file->bytes[2 * FORM_BLOCK_BYTES + FORM_PART_BYTES + FORM_BLOCK_BYTES] ^= 1; /* the second */
    assert_refused (w, STORE_ERROR_CORRUPT, JOURNAL_CUT_FILE);
    snprintf (power_disk_file (&w->disk, "")->name, POWER_NAME_MAX, JOURNAL_CUT_FILE);
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_true (cut);
    assert_int_equal (w->replayed_count, 1);
    lost_t lost = journal_lost (w->journal);
    assert_int_equal (lost.first, 2);
    assert_int_equal (lost.last, w->acked[w->acked_count - 1].no);
    assert_non_null (strstr (lost.why, JOURNAL_CUT_FILE));
    assert_int_equal (world_begin (w), STORE_OK);
    assert_null (power_disk_file (&w->disk, JOURNAL_CUT_FILE));
    world_destroy (w);
}

/* Without a backup a file that is short, damaged in both headers or gone has a way on, too. */
static void what_is_left_can_be_taken (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    for (int way = 0; way < 3; way++) {
        prepare (w, 6);
        power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
        if (way == 0)
            file->length = 2 * (size_t) FORM_SEGMENT_BYTES_MIN;
        if (way == 1)
            file->bytes[20] ^= 1, file->bytes[FORM_BLOCK_BYTES + 20] ^= 1;
        if (way == 2)
            file->length = 0;
        assert_refused (w, STORE_ERROR_CORRUPT,
                        way == 1 ? "headers are damaged" : JOURNAL_CUT_FILE);
        snprintf (power_disk_file (&w->disk, "")->name, POWER_NAME_MAX, JOURNAL_CUT_FILE);
        assert_int_equal (world_read (w, &cut), STORE_OK);
        assert_true (cut);
        assert_non_null (strstr (journal_lost (w->journal).why, JOURNAL_CUT_FILE));
        if (way == 0)
            assert_in_range (w->replayed_count, 1, w->acked_count);
        else
            assert_int_equal (w->replayed_count, 0);
        assert_int_equal (world_begin (w), STORE_OK);
        assert_null (power_disk_file (&w->disk, JOURNAL_CUT_FILE));
        assert_int_equal (world_commit (w, 1, 100), STORE_OK);
        world_lose (w, POWER_KEEP);
        assert_reads (w, "made anew");
        world_destroy (w);
    }
}

/* An older copy of the file lacks what was committed since, and does not show it: the tables do. */
static void a_journal_older_than_its_tables_is_known (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    prepare (w, 5);
    w->tables.written = w->acked[w->acked_count - 1].no;
    assert_reads (w, "all of it is in the tables");
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    w->tables.written++;
    assert_refused (w, STORE_ERROR_CORRUPT, "is older than taskmq.db");
    w->tables.clean = true; /* they need none */
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_false (cut);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    w->tables.clean = false;
    w->tables.epoch++; /* of the start before: only until something was committed */
    w->tables.written = 1;
    assert_refused (w, STORE_ERROR_CORRUPT, JOURNAL_CUT_FILE);
    snprintf (power_disk_file (&w->disk, "")->name, POWER_NAME_MAX, JOURNAL_CUT_FILE);
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_true (cut);
    assert_int_equal (w->replayed_count, 0);
    assert_int_equal (world_begin (w), STORE_OK);
    assert_null (power_disk_file (&w->disk, JOURNAL_CUT_FILE));
    world_destroy (w);
}

static void put_back (world_t *w, const uint8_t *copy, size_t length)
{
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_int_equal (file->length, length);
    memcpy (file->bytes, copy, length);
}

/* A copy of the file at the beginning of this start, or of the one before, has nothing that the
 * tables could miss. */
static void a_copy_from_a_beginning_is_known (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    world_init (w, 9);
    assert_int_equal (world_start (w), STORE_OK);
    assert_int_equal (world_commit (w, 2, 100), STORE_OK);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    size_t length = file->length;
    uint8_t *before = memory_alloc (length);
    uint8_t *begun = memory_alloc (length);
    memcpy (before, file->bytes, length);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_int_equal (world_start (w), STORE_OK);
    memcpy (begun, power_disk_file (&w->disk, JOURNAL_FILE)->bytes, length);
    for (int i = 0; i < 3; i++)
        assert_int_equal (world_commit (w, 1, 100), STORE_OK);

    put_back (w, before, length); /* nothing was written back yet */
    assert_refused (w, STORE_ERROR_CORRUPT, "is older than taskmq.db");
    w->tables.written = w->acked[0].no;
    assert_refused (w, STORE_ERROR_CORRUPT, "is older than taskmq.db");
    put_back (w, begun, length);
    assert_refused (w, STORE_ERROR_CORRUPT, JOURNAL_CUT_FILE);
    w->tables.written = 0; /* a kill before the first commit looks the same */
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_false (cut);
    free (before);
    free (begun);
    world_destroy (w);
}

/* A start that does not sync may lose all of its commits, and says so where no commit can. */
static void unsynced_commits_may_all_be_lost (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    world_init (w, 10);
    w->options.unsynced = true;
    assert_int_equal (world_start (w), STORE_OK);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    size_t length = file->length;
    uint8_t *begun = memory_alloc (length);
    memcpy (begun, file->bytes, length);
    assert_int_equal (world_commit (w, 2, 100), STORE_OK);
    w->tables.written = w->acked[0].no;
    put_back (w, begun, length);
    w->options.unsynced = false; /* the next start syncs */
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_true (cut);
    free (begun);
    world_destroy (w);
}

/* Else it would give up in silence what is damaged years later. */
static void a_decision_stands_for_one_start (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    bool cut;
    prepare (w, 6);
    snprintf (power_disk_file (&w->disk, "")->name, POWER_NAME_MAX, JOURNAL_CUT_FILE);
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_false (cut);
    assert_int_equal (w->replayed_count, w->acked_count);
    assert_int_equal (world_begin (w), STORE_OK);
    assert_null (power_disk_file (&w->disk, JOURNAL_CUT_FILE));
    world_destroy (w);
}

/* What somebody put behind the last segment is none, however long it is. */
static void behind_the_last_segment_is_nothing (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    prepare (w, 2);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    form_header_t run;
    form_part_t head;
    assert_int_equal (form_unpack_header (&run, file->bytes), FORM_WHOLE);
    size_t size = (size_t) run.segment_bytes;
    uint8_t *bytes = memory_zero (file->length + size, 1);
    memcpy (bytes, file->bytes, file->length);
    uint8_t *part = bytes + file->length + form_first_part (1);
    memcpy (part, bytes + form_first_part (0), FORM_BLOCK_BYTES);
    assert_int_equal (form_unpack_part (&head, part, FORM_BLOCK_BYTES, run.salt), FORM_WHOLE);
    head.previous = 99;
    head.first = head.last = 100;
    form_pack_part (part, &head);
    free (file->bytes);
    file->bytes = bytes;
    file->length += size;
    assert_reads (w, "with a segment too many");
    assert_int_equal (w->replayed_count, w->acked_count);
    world_destroy (w);
}

/* Whichever operation finds no space: that commit is refused as a whole, the next is taken, and
 * none that was refused ever comes back, even if all of its bytes got to the disk. */
static void no_space_at_each_operation (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    unsigned refused = 0;
    unsigned ended = 0;
    for (uint64_t operation = 0; operation < 240; operation++) {
        world_init (w, operation % 4);
        choose_disk (w, operation % 3); /* with syncs */
        assert_int_equal (world_start (w), STORE_OK);
        w->disk.fails_from = w->disk.operations + operation % 120;
        w->disk.fails_until = w->disk.fails_from + 1 + operation % 3; /* also what takes it back */
        w->disk.fails_with = operation % 2 == 0 ? ENOSPC : EDQUOT;
        w->disk.fails_after_it = operation >= 120;
        for (int i = 0; i < 60; i++) {
            store_code_t code = world_step (w);
            refused += code == STORE_ERROR_FULL;
            if (code != STORE_OK && code != STORE_ERROR_FULL) {
                assert_int_equal (code, STORE_ERROR_IO); /* a sync that failed is final */
                ended++;
                break;
            }
        }
        world_lose (w, (power_loss_t) (operation % POWER_LOSSES));
        assert_reads (w, "no space");
        world_destroy (w);
    }
    print_message ("%u refused, %u ended\n", refused, ended);
    assert_in_range (refused, 60, 240);
    assert_true (ended > 20);
}

/* After a failed sync nothing is written any more. */
static void a_failed_sync_at_each_operation (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    unsigned failed = 0;
    for (uint64_t operation = 0; operation < 120; operation++) {
        world_init (w, operation % 5);
        choose_disk (w, operation % 3);
        assert_int_equal (world_start (w), STORE_OK);
        w->disk.fails_from = w->disk.operations + operation;
        w->disk.fails_until = w->disk.fails_from + 1;
        w->disk.fails_with = EIO;
        w->disk.fails_syncs_only = true;
        store_code_t code = STORE_OK;
        for (int i = 0; code == STORE_OK && i < 60; i++)
            code = world_step (w);
        if (code != STORE_OK) {
            uint64_t writes = w->disk.writes;
            size_t flying = w->flying_count;
            known_t kept[COMMIT_MAX];
            memcpy (kept, w->flying, sizeof (kept));
            assert_int_equal (code, STORE_ERROR_IO);
            assert_int_equal (world_commit (w, 1, 10), STORE_ERROR_IO);
            assert_int_equal (journal_rest (w->journal, &w->error), STORE_ERROR_IO);
            assert_int_equal (w->disk.writes, writes);
            memcpy (w->flying, kept, sizeof (kept));
            w->flying_count = flying;
            failed++;
        }
        world_lose (w, (power_loss_t) (operation % POWER_LOSSES));
        assert_reads (w, "a failed sync");
        world_destroy (w);
    }
    assert_true (failed > 40);
}

/* Content that looks like a commit is none, whatever of the commit around it is lost. */
static void content_is_no_commit (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    prepare (w, 2);
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    uint8_t *second = file->bytes + 3 * (size_t) FORM_BLOCK_BYTES;
    form_part_t head;
    form_header_t run;
    assert_int_equal (form_unpack_header (&run, file->bytes), FORM_WHOLE);
    assert_int_equal (form_unpack_part (&head, second, FORM_BLOCK_BYTES, run.salt), FORM_WHOLE);
    /* A copy of it by somebody who does not know the salt, where the next commit would be. */
    memcpy (second + FORM_BLOCK_BYTES, second, FORM_BLOCK_BYTES);
    head.salt++;
    head.serial++;
    head.previous = head.last;
    head.first = head.last = head.last + 1;
    form_pack_part (second + FORM_BLOCK_BYTES, &head);
    assert_reads (w, "with a forged part");
    assert_int_equal (w->replayed_count, w->acked_count);
    world_destroy (w);
}

int main (int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_journal_belongs_to_its_tables),
        cmocka_unit_test (tables_that_lack_what_was_given_up_are_known),
        cmocka_unit_test (only_one_has_it_open),
        cmocka_unit_test (damage_can_be_given_up),
        cmocka_unit_test (a_journal_older_than_its_tables_is_known),
        cmocka_unit_test (a_copy_from_a_beginning_is_known),
        cmocka_unit_test (unsynced_commits_may_all_be_lost),
        cmocka_unit_test (a_decision_stands_for_one_start),
        cmocka_unit_test (behind_the_last_segment_is_nothing),
        cmocka_unit_test (content_is_no_commit),
        cmocka_unit_test (no_flipped_bit_shortens_a_log_in_silence),
        cmocka_unit_test (no_lost_block_shortens_a_log_in_silence),
        cmocka_unit_test (a_later_part_proves_the_earlier_ones),
        cmocka_unit_test (all_parts_are_taken_back),
        cmocka_unit_test (what_is_left_can_be_taken),
        cmocka_unit_test (no_space_at_each_operation),
        cmocka_unit_test (a_failed_sync_at_each_operation),
        cmocka_unit_test (every_operation_is_a_place_to_lose_power),
        cmocka_unit_test (a_loss_of_power_loses_nothing_acknowledged),
        cmocka_unit_test (without_syncs_some_of_the_newest_are_lost),
    };
    if (argc > 1)
        cmocka_set_test_filter (argv[1]);
    return cmocka_run_group_tests (tests, NULL, NULL);
}
