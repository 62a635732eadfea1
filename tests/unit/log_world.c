/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "log_world.h"

#include <string.h>

void world_init (world_t *w, uint64_t seed)
{
    memset (w, 0, sizeof (*w));
    power_disk_init (&w->disk);
    w->random = seed * 7919 + 1;
    w->options = (journal_options_t){.directory = "x", .bytes = 1 << 16, .device = &w->disk.device};
    w->tables = (journal_tables_t){GENERATION, 0, 0, true};
}

void world_destroy (world_t *w)
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

store_code_t world_read (world_t *w, bool *cut)
{
    w->replayed_count = 0;
    store_code_t code =
        journal_open (&w->journal, &w->options, &w->tables, !w->tables.clean, &w->error);
    if (code == STORE_OK)
        code = journal_replay (w->journal, take_replayed, w, cut, &w->error);
    return code;
}

store_code_t world_begin (world_t *w)
{
    w->tables.epoch++;
    w->tables.written = 0;
    w->tables.clean = true;
    w->acked_count = w->flying_count = 0;
    store_code_t code = journal_begin (w->journal, GENERATION, w->tables.epoch, &w->error);
    w->tables.clean = code != STORE_OK;
    return code;
}

store_code_t world_start (world_t *w)
{
    bool cut;
    store_code_t code = world_read (w, &cut);
    return code == STORE_OK ? world_begin (w) : code;
}

store_code_t world_commit (world_t *w, size_t count, size_t bytes)
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

store_code_t world_step (world_t *w)
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

void assert_replayed (const world_t *w, const char *what)
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

void world_lose (world_t *w, power_loss_t loss)
{
    power_disk_t left;
    power_disk_lose (&left, &w->disk, loss, &w->random);
    journal_free (&w->journal);
    power_disk_destroy (&w->disk);
    w->disk = left;
}

void assert_reads (world_t *w, const char *what)
{
    bool cut;
    store_code_t code = world_read (w, &cut);
    if (code != STORE_OK)
        fail_msg ("%s: %s", what, w->error.text);
    if (cut && !w->options.unsynced)
        fail_msg ("%s: a log whose commits were synced was cut", what);
    assert_replayed (w, what);
}
