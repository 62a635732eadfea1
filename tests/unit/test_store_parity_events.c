/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What every backend promises of events: histories, cursors, and what the exporters read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_support.h"

/* Batch b (1..20) holds events of tasks 1..3 each: sequences 3b-2..3b. */
static void fill_events (fixture_t *f)
{
    record_t records[3];
    for (int i = 0; i < 3; i++)
        records[i] = test_record (i + 1);
    for (int b = 1; b <= 20; b++) {
        batch_t *batch = fixture_batch (f);
        for (int i = 0; i < 3; i++)
            fixture_change (f, batch, &records[i], TMQ_EVENT_CHANGED);
        fixture_commit (f, batch);
    }
    fixture_settle (f);
}

static void a_history_is_read_in_pages (void **state)
{
    fixture_t *f = *state;
    fill_events (f);
    read_t read = {.kind = READ_HISTORY, .filter = {.ns = "default"}, .last_seq = 59, .limit = 7};
    uint64_t expected = 59; /* task 2 has 2, 5, …, 59 */
    size_t pages = 0;
    do {
        uint64_t seqs[8];
        fixture_read (f, &read);
        size_t count = list_seqs (read.list, seqs, 8);
        assert_true (count <= 7);
        for (size_t i = count; i > 0; i--) {
            assert_int_equal (seqs[i - 1], expected);
            expected -= 3;
        }
        pages++;
        uint64_t before = read.before_seq;
        assert_true (before == 0 || before == expected + 1);
        read_clear (&read);
        read = (read_t){.kind = READ_HISTORY,
                        .filter = {.ns = "default"},
                        .last_seq = 59,
                        .limit = 7,
                        .before_seq = before};
    } while (read.before_seq != 0);
    assert_int_equal (expected, (uint64_t) -1);
    assert_int_equal (pages, 3);
}

static void a_history_of_nothing_is_empty (void **state)
{
    fixture_t *f = *state;
    read_t read = {.kind = READ_HISTORY, .filter = {.ns = "default"}, .last_seq = 5, .limit = 7};
    fixture_read (f, &read);
    assert_int_equal (buf_length (read.list), 0);
    assert_int_equal (read.before_seq, 0);
    read_clear (&read);
}

/* Every cursor gets every later event once, whatever the size of the pages. */
static void events_follow_a_cursor (void **state)
{
    fixture_t *f = *state;
    fill_events (f);
    for (uint64_t cursor = 0; cursor <= 61; cursor++) {
        uint64_t next = cursor + 1;
        bool more = true;
        while (more) {
            read_t read = {.kind = READ_EVENTS,
                           .filter = {.ns = "default"},
                           .after_seq = next - 1,
                           .limit = 150};
            fixture_read (f, &read);
            assert_int_equal (read.first_seq, 1);
            assert_int_equal (read.last_seq_seen, 60);
            for (size_t b = 0; b < read.blocks_count; b++) {
                const event_block_t *block = &read.blocks[b];
                uint64_t seqs[64];
                size_t count = list_seqs (block->list, seqs, 64);
                assert_int_equal (count, block->count);
                assert_int_equal (seqs[0], block->first_seq);
                assert_int_equal (block->first_pos, block->first_seq);
                assert_string_equal (block->ns, "default");
                assert_true (block->first_seq <= next);
                next = block->first_seq + block->count;
            }
            more = read.more;
            assert_true (!more || read.blocks_count > 0);
            read_clear (&read);
        }
        assert_int_equal (next, cursor <= 60 ? 61 : cursor + 1);
    }
    read_t none = {.kind = READ_EVENTS, .filter = {.ns = "other"}, .limit = 100};
    fixture_read (f, &none);
    assert_int_equal (none.blocks_count, 0);
    assert_int_equal (none.first_seq, 0);
}

static void a_time_becomes_a_cursor (void **state)
{
    fixture_t *f = *state;
    fill_events (f); /* batch b is of 5000 + b */
    for (int64_t since = 4990; since <= 5030; since++) {
        read_t read = {.kind = READ_SINCE, .filter = {.ns = "default"}, .since_ms = since};
        fixture_read (f, &read);
        int64_t batch = since - 5000 < 1 ? 1 : since - 5000;
        assert_int_equal (read.seq, batch > 20 ? 60 : (uint64_t) (batch - 1) * 3);
    }
}

static void fill_two_namespaces (fixture_t *f)
{
    fill_events (f);
    record_t other = test_record (9);
    other.ns = "other";
    batch_t *batch = fixture_batch (f);
    f->pos++;
    batch_add_event (batch, "other", 1, f->pos, 1, &other.id, TMQ_EVENT_SUBMITTED, 0);
    other.last_seq = 1;
    batch_add_record (batch, &other);
    fixture_commit (f, batch);
    fixture_submit (f, 10, 30);
    fixture_settle (f);
}

static void the_export_has_the_last_state_of_each_task (void **state)
{
    fixture_t *f = *state;
    fill_two_namespaces (f);
    for (size_t limit = 1; limit < 100; limit *= 3) {
        uint64_t pos = 0;
        size_t items = 0;
        bool more = true;
        while (more) {
            read_t read = {.kind = READ_EXPORT, .after_pos = pos, .limit = limit};
            fixture_read (f, &read);
            assert_true (read.items_count <= limit);
            for (size_t i = 0; i < read.items_count; i++) {
                const export_item_t *item = &read.items[i];
                assert_true (item->pos > pos);
                pos = item->pos;
                assert_int_equal (item->seq, item->record->last_seq);
                if (items < 3)
                    assert_int_equal (item->record->number, items + 1);
                else if (items == 3)
                    assert_string_equal (item->record->ns, "other");
                items++;
            }
            assert_true (read.upto_pos >= pos);
            pos = read.upto_pos;
            more = read.more;
            read_clear (&read);
        }
        assert_int_equal (items, 3 + 1 + 21);
        assert_int_equal (pos, f->pos);
    }
    read_t nothing = {.kind = READ_EXPORT, .after_pos = f->pos, .limit = 10};
    fixture_read (f, &nothing);
    assert_int_equal (nothing.items_count, 0);
    assert_int_equal (nothing.upto_pos, f->pos);
}

/* Each block once, in the order of positions, of all namespaces. */
static void blocks_are_read_by_position (void **state)
{
    fixture_t *f = *state;
    fill_two_namespaces (f);
    for (size_t limit = 1; limit < 10000; limit *= 10) {
        size_t others = 0;
        read_t read = {.kind = READ_BLOCKS, .limit = limit, .more = true};
        for (uint64_t pos = 0; pos < f->pos; read_clear (&read)) {
            read.after_pos = pos;
            fixture_read (f, &read);
            for (size_t i = 0; i < read.blocks_count; i++) {
                assert_int_equal (read.blocks[i].first_pos, pos + 1);
                pos += read.blocks[i].count;
                others += strcmp (read.blocks[i].ns, "other") == 0;
            }
            assert_int_equal (read.more, pos < f->pos);
            read.more = false;
        }
        assert_int_equal (others, 1);
    }
    /* From the middle of a block on it comes whole. */
    read_t last = {.kind = READ_BLOCKS, .after_pos = f->pos - 1, .limit = 1};
    fixture_read (f, &last);
    assert_int_equal (last.blocks_count, 1);
    assert_int_equal (last.blocks[0].first_pos + last.blocks[0].count - 1, f->pos);
    read_clear (&last);
}

static void it_is_told_which_events_are_the_newest (void **state)
{
    fixture_t *f = *state;
    fill_events (f);
    record_t record = test_record (1);
    record_t *stored = fixture_load (f, "default", &record.id);
    assert_non_null (stored);
    standing_t standing[] = {{"default", record.id, stored->last_seq, false},
                             {"default", record.id, stored->last_seq - 1, true},
                             {"other", record.id, stored->last_seq, true},
                             {"default", test_id (999), 1, true}};
    read_t read = {.kind = READ_STANDING, .standing = standing, .standing_count = 4};
    fixture_read (f, &read);
    assert_true (standing[0].stands);
    for (size_t i = 1; i < 4; i++)
        assert_false (standing[i].stands);
    record_free (stored);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL (a_history_is_read_in_pages),
        ON_ALL (a_history_of_nothing_is_empty),
        ON_ALL (events_follow_a_cursor),
        ON_ALL (a_time_becomes_a_cursor),
        ON_ALL (the_export_has_the_last_state_of_each_task),
        ON_ALL (blocks_are_read_by_position),
        ON_ALL (it_is_told_which_events_are_the_newest),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
