/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The journal's file on a disk in memory: a loss of power at every operation, with everything that
 * may be left of what was not synced; flipped bits; other people's files; no space and failed syncs
 * at each operation.
 *
 * TASKMQ_SEED gives the first run, TASKMQ_RUNS says how many. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "power_disk.h"
#include "store/journal/form.h"
#include "store/journal/journal.h"
#include "store_support.h"

enum {
    RUNS_DEFAULT = 200,
    LIVES = 4, /* of a run */
    BATCHES_MAX = 400,
    COMMIT_MAX = 4,
    ZEROES_STEP = 16,
    GENERATION = 77
};

typedef struct known {
    uint64_t no;
    int64_t stamp;
    size_t bytes;
} known_t;

/* A journal, its disk, and what the tables and the peers know. */
typedef struct world {
    power_disk_t disk;
    journal_options_t options;
    journal_tables_t tables;
    journal_t *journal;
    known_t acked[BATCHES_MAX]; /* of this epoch */
    size_t acked_count;
    known_t flying[COMMIT_MAX]; /* of the commit whose answer never came */
    size_t flying_count;
    known_t replayed[BATCHES_MAX];
    size_t replayed_count;
    int64_t stamp;
    uint64_t random;
    store_error_t error;
} world_t;

static void world_init (world_t *w, uint64_t seed)
{
    memset (w, 0, sizeof (*w));
    power_disk_init (&w->disk);
    w->random = seed * 7919 + 1;
    w->options = (journal_options_t){.directory = "x", .bytes = 1 << 16, .device = &w->disk.device};
    w->tables = (journal_tables_t){GENERATION, 0, 0, true};
}

static void world_destroy (world_t *w)
{
    journal_free (&w->journal);
    power_disk_destroy (&w->disk);
}

static batch_t *batch_of (const known_t *known)
{
    batch_t *batch = batch_make (known->no, known->stamp);
    record_t record = test_record ((int64_t) known->no);
    record.payload = buf_new_uninitialised (known->bytes);
    memset (buf_mutable (record.payload), 'a' + (int) (known->stamp % 26), known->bytes);
    record.payload_bytes = (uint32_t) known->bytes;
    batch_add_record (batch, &record);
    buf_drop (record.payload);
    return batch;
}

static store_code_t take_replayed (void *context, batch_t *batch, store_error_t *error)
{
    world_t *w = context;
    (void) error;
    assert_true (w->replayed_count < BATCHES_MAX);
    assert_int_equal (batch->records_count, 1);
    const buf_t *payload = batch->records[0]->payload;
    known_t known = {batch->no, batch->wall_ms, buf_length (payload)};
    for (size_t i = 0; i < known.bytes; i++)
        if (buf_bytes (payload)[i] != 'a' + known.stamp % 26)
            fail_msg ("batch %llu has other bytes", (unsigned long long) known.no);
    w->replayed[w->replayed_count++] = known;
    batch_free (batch);
    return STORE_OK;
}

static store_code_t world_read (world_t *w, bool *cut)
{
    w->replayed_count = 0;
    store_code_t code =
        journal_open (&w->journal, &w->options, &w->tables, !w->tables.clean, &w->error);
    if (code == STORE_OK)
        code = journal_replay (w->journal, take_replayed, w, cut, &w->error);
    return code;
}

/* The rows are in the tables, which begin a new epoch; then the journal does. */
static store_code_t world_begin (world_t *w)
{
    w->tables.epoch++;
    w->tables.written = 0;
    w->tables.clean = false;
    w->acked_count = w->flying_count = 0;
    return journal_begin (w->journal, GENERATION, w->tables.epoch, &w->error);
}

static store_code_t world_start (world_t *w)
{
    bool cut;
    store_code_t code = world_read (w, &cut);
    return code == STORE_OK ? world_begin (w) : code;
}

static store_code_t world_commit (world_t *w, size_t count, size_t bytes)
{
    batch_t *batches[COMMIT_MAX];
    uint64_t no = w->acked_count == 0 ? 0 : w->acked[w->acked_count - 1].no;
    assert_true (w->acked_count + count <= BATCHES_MAX);
    for (size_t i = 0; i < count; i++) {
        w->flying[i] = (known_t){++no, ++w->stamp, bytes + i};
        batches[i] = batch_of (&w->flying[i]);
    }
    w->flying_count = count;
    store_code_t code = journal_append (w->journal, batches, count, &w->error);
    for (size_t i = 0; i < count; i++)
        batch_free (batches[i]);
    if (code == STORE_OK)
        for (size_t i = 0; i < count; i++)
            w->acked[w->acked_count++] = w->flying[i];
    if (code == STORE_OK || code == STORE_ERROR_FULL)
        w->flying_count = 0;
    return code;
}

static size_t some_bytes (world_t *w)
{
    switch (power_random (&w->random) % 12) {
    case 0: return (size_t) (power_random (&w->random) % 40000); /* more than a segment */
    case 1:
    case 2: return (size_t) (power_random (&w->random) % 12000);
    case 3: return FORM_BLOCK_BYTES - 200 + (size_t) (power_random (&w->random) % 100);
    default: return (size_t) (power_random (&w->random) % 300);
    }
}

/* Something that a broker does. */
static store_code_t world_step (world_t *w)
{
    uint64_t dice = power_random (&w->random) % 10;
    if (dice == 0 && journal_can_rest (w->journal))
        return journal_rest (w->journal, &w->error);
    if (dice == 3)
        return journal_make_room (w->journal, &w->error);
    if (dice <= 2 && w->acked_count > 0) {
        uint64_t written = w->acked[power_random (&w->random) % w->acked_count].no;
        if (written > w->tables.written) {
            w->tables.written = written;
            journal_written (w->journal, written);
        }
        return STORE_OK;
    }
    return world_commit (w, (size_t) (power_random (&w->random) % COMMIT_MAX) + 1, some_bytes (w));
}

/* What came back is what was acknowledged and not in the tables, in order; then all or nothing of
 * the commit that had no answer. Without syncs the newest may be missing. */
static void assert_replayed (const world_t *w, const char *what)
{
    size_t first = 0;
    while (first < w->acked_count && w->acked[first].no <= w->tables.written)
        first++;
    size_t wanted = w->acked_count - first;
    for (size_t i = 0; i < w->replayed_count; i++) {
        const known_t *known = i < wanted ? &w->acked[first + i] : NULL;
        if (known == NULL && i - wanted < w->flying_count)
            known = &w->flying[i - wanted];
        if (known == NULL || memcmp (known, &w->replayed[i], sizeof (*known)) != 0)
            fail_msg ("%s: another batch %llu came back", what,
                      (unsigned long long) w->replayed[i].no);
    }
    if (w->options.unsynced && w->replayed_count < wanted)
        return;
    if (w->replayed_count != wanted && w->replayed_count != wanted + w->flying_count)
        fail_msg ("%s: %zu batches of %zu", what, w->replayed_count, wanted);
}

/* The power goes; then it comes back. */
static void world_lose (world_t *w, power_loss_t loss)
{
    power_disk_t left;
    power_disk_lose (&left, &w->disk, loss, &w->random);
    journal_free (&w->journal);
    power_disk_destroy (&w->disk);
    w->disk = left;
}

static void assert_reads (world_t *w, const char *what)
{
    bool cut;
    store_code_t code = world_read (w, &cut);
    if (code != STORE_OK)
        fail_msg ("%s: %s", what, w->error.text);
    if (cut && !w->options.unsynced)
        fail_msg ("%s: a log whose commits were synced was cut", what);
    assert_replayed (w, what);
}

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
    assert_int_equal (world_read (w, &cut), STORE_OK);
    assert_int_equal (w->replayed_count, 0);
    journal_free (&w->journal);
    w->tables.epoch--;
    power_file_t *file = power_disk_file (&w->disk, JOURNAL_FILE);
    size_t length = file->length;
    file->length = length / 2;
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
    assert_int_equal (world_begin (w), STORE_OK);
    assert_null (power_disk_file (&w->disk, JOURNAL_CUT_FILE));
    world_destroy (w);
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

/* However many batches: one write and one sync, and in place of what the tables have. */
static void a_commit_is_one_write (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    world_init (w, 1);
    w->options.bytes = 1 << 20;
    assert_int_equal (world_start (w), STORE_OK);
    assert_string_equal (journal_way (w->journal), "direct");
    size_t length = power_disk_file (&w->disk, JOURNAL_FILE)->length;
    for (int i = 0; i < 90; i++) {
        uint64_t writes = w->disk.writes;
        uint64_t syncs = w->disk.syncs;
        assert_int_equal (world_commit (w, COMMIT_MAX, 3000), STORE_OK);
        assert_int_equal (w->disk.writes, writes + 1);
        assert_int_equal (w->disk.syncs, syncs + 1);
        if (w->acked_count > 20)
            journal_written (w->journal, w->tables.written = w->acked_count - 20);
    }
    assert_int_equal (power_disk_file (&w->disk, JOURNAL_FILE)->length, length);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "after many");
    assert_int_equal (w->replayed_count, 20);
    world_destroy (w);
}

/* The file has grown before a commit needs it: a commit stays one write. */
static void a_commit_finds_room (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    world_init (w, 1);
    assert_int_equal (world_start (w), STORE_OK);
    size_t length = power_disk_file (&w->disk, JOURNAL_FILE)->length;
    assert_int_equal (journal_make_room (w->journal, &w->error), STORE_OK);
    assert_int_equal (power_disk_file (&w->disk, JOURNAL_FILE)->length, length);
    for (int i = 0; i < 60; i++) {
        uint64_t writes = w->disk.writes;
        assert_int_equal (world_commit (w, 1, 7000), STORE_OK);
        assert_int_equal (w->disk.writes, writes + 1);
        assert_int_equal (journal_make_room (w->journal, &w->error), STORE_OK);
    }
    assert_true (power_disk_file (&w->disk, JOURNAL_FILE)->length > 4 * length);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "grown ahead");
    world_destroy (w);
}

/* A disk whose first large write waits until somebody lets it go on: the zeroes of a new
 * segment. */
static struct held_disk {
    world_t *world;
    int (*write) (const device_t *, int, const void *, size_t, uint64_t, bool);
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool armed;
    bool reached;
    bool released;
    bool committed;
} held = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int held_write (const device_t *device, int fd, const void *bytes, size_t length,
                       uint64_t at, bool durable)
{
    pthread_mutex_lock (&held.lock);
    if (held.armed && !durable) {
        held.armed = false;
        held.reached = true;
        pthread_cond_broadcast (&held.changed);
        while (!held.released)
            pthread_cond_wait (&held.changed, &held.lock);
    }
    pthread_mutex_unlock (&held.lock);
    return held.write (device, fd, bytes, length, at, durable);
}

static void *grow_in_thread (void *context)
{
    store_error_t error;
    (void) context;
    assert_int_equal (journal_make_room (held.world->journal, &error), STORE_OK);
    return NULL;
}

static void *commit_in_thread (void *context)
{
    (void) context;
    assert_int_equal (world_commit (held.world, 1, 7000), STORE_OK);
    pthread_mutex_lock (&held.lock);
    held.committed = true;
    pthread_cond_broadcast (&held.changed);
    pthread_mutex_unlock (&held.lock);
    return NULL;
}

/* … and gives one that must not come some time to come. */
static void let_go_on (void)
{
    struct timespec until;
    clock_gettime (CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    pthread_mutex_lock (&held.lock);
    int waited = 0;
    while (!held.committed && waited == 0)
        waited = pthread_cond_timedwait (&held.changed, &held.lock, &until);
    assert_false (held.committed);
    held.released = true;
    pthread_cond_broadcast (&held.changed);
    pthread_mutex_unlock (&held.lock);
}

static void a_commit_waits_for_the_segment_under_way (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    pthread_t grower;
    pthread_t committer;
    world_init (w, 1);
    held.world = w;
    held.write = w->disk.device.write;
    w->disk.device.write = held_write;
    assert_int_equal (world_start (w), STORE_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal (world_commit (w, 1, 7000), STORE_OK);
    held.armed = true;
    assert_int_equal (pthread_create (&grower, NULL, grow_in_thread, NULL), 0);
    pthread_mutex_lock (&held.lock);
    while (!held.reached)
        pthread_cond_wait (&held.changed, &held.lock);
    pthread_mutex_unlock (&held.lock);
    assert_int_equal (pthread_create (&committer, NULL, commit_in_thread, NULL), 0);
    let_go_on ();
    pthread_join (grower, NULL);
    pthread_join (committer, NULL);
    assert_int_equal (w->acked_count, 5);
    w->disk.device.write = held.write;
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "grown beside a commit");
    assert_int_equal (w->replayed_count, 5);
    world_destroy (w);
}

/* What no segment is free for: the file grows to its limit, then a commit has to wait. */
static void a_journal_is_bounded (void **state)
{
    (void) state;
    static world_t world;
    world_t *w = &world;
    world_init (w, 1);
    w->options.bytes = 4 << 20;
    assert_int_equal (world_start (w), STORE_OK);
    store_code_t code = STORE_OK;
    while (code == STORE_OK)
        code = world_commit (w, 1, 700000);
    assert_int_equal (code, STORE_ERROR_BUSY);
    assert_in_range (power_disk_file (&w->disk, JOURNAL_FILE)->length, 60 << 20, 64 << 20);
    journal_written (w->journal, w->tables.written = w->acked_count / 2);
    assert_int_equal (world_commit (w, 1, 700000), STORE_OK);
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "at its limit");
    assert_int_equal (world_begin (w), STORE_OK);
    assert_int_equal (power_disk_file (&w->disk, JOURNAL_FILE)->length, 4 << 20);
    assert_int_equal (world_commit (w, 1, 5 << 20), STORE_OK); /* more than all of it */
    journal_free (&w->journal);
    power_disk_close_all (&w->disk);
    assert_reads (w, "a large one");
    assert_int_equal (w->replayed_count, 1);
    world_destroy (w);
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
        cmocka_unit_test (a_commit_is_one_write),
        cmocka_unit_test (a_commit_finds_room),
        cmocka_unit_test (a_commit_waits_for_the_segment_under_way),
        cmocka_unit_test (a_journal_is_bounded),
        cmocka_unit_test (a_journal_belongs_to_its_tables),
        cmocka_unit_test (tables_that_lack_what_was_given_up_are_known),
        cmocka_unit_test (only_one_has_it_open),
        cmocka_unit_test (damage_can_be_given_up),
        cmocka_unit_test (a_journal_older_than_its_tables_is_known),
        cmocka_unit_test (a_decision_stands_for_one_start),
        cmocka_unit_test (behind_the_last_segment_is_nothing),
        cmocka_unit_test (content_is_no_commit),
        cmocka_unit_test (no_flipped_bit_shortens_a_log_in_silence),
        cmocka_unit_test (no_lost_block_shortens_a_log_in_silence),
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
