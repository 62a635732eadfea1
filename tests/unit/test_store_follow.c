/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A follower of the events that keeps up is served from memory, one that lags from the tables: what
 * it sees must be the same. */
#include <stdlib.h>
#include <string.h>

#include "store_support.h"

enum { TASKS = 30 };

/* The newest line of each task, as a follower keeps them. */
typedef struct follower {
    uint64_t pos;
    record_t *last[TASKS + 1];
    uint64_t lines;
    uint64_t from_memory;
} follower_t;

static void follow (fixture_t *f, follower_t *self)
{
    bool more = true;
    while (more) {
        read_t read = {.kind = READ_EXPORT, .after_pos = self->pos, .limit = 7};
        fixture_read (f, &read);
        self->from_memory += read.release != NULL;
        for (size_t i = 0; i < read.items_count; i++) {
            const export_item_t *item = &read.items[i];
            assert_true (item->pos > self->pos);
            self->pos = item->pos;
            assert_int_equal (item->seq, item->record->last_seq);
            int64_t number = item->record->number;
            record_free (self->last[number]);
            self->last[number] = record_new (item->record);
            self->lines++;
        }
        assert_true (read.upto_pos >= self->pos);
        self->pos = read.upto_pos;
        more = read.more;
        read_clear (&read);
    }
}

static void follower_clear (follower_t *self)
{
    for (size_t i = 0; i <= TASKS; i++)
        record_free (self->last[i]);
    *self = (follower_t){0};
}

static void assert_same_lines (const follower_t *a, const follower_t *b)
{
    for (size_t i = 1; i <= TASKS; i++) {
        assert_int_equal (a->last[i] == NULL, b->last[i] == NULL);
        if (a->last[i] != NULL)
            assert_same_record (a->last[i], b->last[i], true);
    }
}

static void submit (fixture_t *f, batch_t *batch, record_t *record, int64_t number)
{
    *record = test_record (number);
    record->payload_bytes = 7;
    record->payload = buf_new ("payload", 7);
    fixture_change (f, batch, record, TMQ_EVENT_SUBMITTED);
    buf_drop (record->payload);
    record->payload = NULL; /* later images do not have it */
}

static void finish (fixture_t *f, batch_t *batch, record_t *record)
{
    record->status = TMQ_STATUS_COMPLETED;
    record->outcome = TMQ_OUTCOME_RESULT;
    record->result_bytes = 6;
    record->result = buf_new ("result", 6);
    fixture_change (f, batch, record, TMQ_EVENT_COMPLETED);
    buf_drop (record->result);
    record->result = NULL;
}

/* Tasks that begin and end in one write-back, in two, and in one after the other. */
static void a_follower_sees_the_same_in_memory_and_in_the_tables (void **state)
{
    fixture_t *f = *state;
    follower_t near = {0};
    record_t records[TASKS + 1];
    follow (f, &near);
    for (int64_t number = 1; number <= TASKS; number++) {
        batch_t *batch = fixture_batch (f);
        submit (f, batch, &records[number], number);
        fixture_commit (f, batch);
        batch = fixture_batch (f);
        if (number % 3 == 0)
            finish (f, batch, &records[number]);
        else if (number > 2)
            finish (f, batch, &records[number - 2]);
        else
            fixture_change (f, batch, &records[1], TMQ_EVENT_CHANGED);
        fixture_commit (f, batch);
        fixture_settle (f);
        follow (f, &near);
    }
    assert_int_equal (near.from_memory, TASKS);
    follower_t far = {0};
    follow (f, &far);
    assert_int_equal (far.from_memory, 0);
    assert_int_equal (far.pos, near.pos);
    assert_int_equal (far.pos, f->pos);
    assert_true (far.lines < near.lines);
    assert_same_lines (&near, &far);
    for (size_t i = 1; i <= TASKS; i++)
        assert_body (near.last[i]->payload, "payload", 7);
    follower_clear (&near);
    follower_clear (&far);
}

/* The body of a state that was overtaken cannot be had any more: the newer state has its
 * own line. */
static void a_state_that_was_overtaken_is_skipped (void **state)
{
    fixture_t *f = *state;
    follower_t lagging = {0};
    record_t record;
    follow (f, &lagging);
    batch_t *batch = fixture_batch (f);
    submit (f, batch, &record, 1);
    fixture_commit (f, batch);
    fixture_settle (f);
    follow (f, &lagging);
    assert_int_equal (lagging.lines, 1);
    batch = fixture_batch (f);
    fixture_change (f, batch, &record, TMQ_EVENT_CLAIMED);
    fixture_commit (f, batch);
    fixture_settle (f);
    batch = fixture_batch (f);
    finish (f, batch, &record);
    fixture_commit (f, batch);
    fixture_settle (f);
    follow (f, &lagging);
    assert_int_equal (lagging.lines, 2);
    assert_int_equal (lagging.from_memory, 3);
    assert_int_equal (lagging.last[1]->status, TMQ_STATUS_COMPLETED);
    assert_body (lagging.last[1]->payload, "payload", 7);
    assert_body (lagging.last[1]->result, "result", 6);
    follower_clear (&lagging);
}

static void a_removed_task_gets_no_line (void **state)
{
    fixture_t *f = *state;
    follower_t follower = {0};
    record_t record;
    follow (f, &follower);
    batch_t *batch = fixture_batch (f);
    submit (f, batch, &record, 1);
    finish (f, batch, &record);
    fixture_commit (f, batch);
    batch = fixture_batch (f);
    f->seq++;
    f->pos++;
    batch_add_event (batch, "default", f->seq, f->pos, 1, &record.id, TMQ_EVENT_EXPIRED,
                     record.last_seq);
    batch_add_removal (batch, &record, TMQ_EXPIRED, 9);
    fixture_commit (f, batch);
    fixture_settle (f);
    follow (f, &follower);
    assert_int_equal (follower.lines, 0);
    assert_int_equal (follower.pos, f->pos);
    follower_clear (&follower);
}

/* What nobody follows is not kept, and who comes later reads the tables. */
static void nothing_is_kept_for_nobody (void **state)
{
    fixture_t *f = *state;
    follower_t follower = {0};
    fixture_submit (f, 1, TASKS);
    fixture_settle (f);
    follow (f, &follower);
    assert_int_equal (follower.from_memory, 0);
    assert_int_equal (follower.lines, TASKS);
    follower_clear (&follower);
}

/* Rows are written when a test settles, and not before. */
static int setup (void **state)
{
    fixture_t *f = fixture_new ("sqlite");
    f->options.dirty_ms_max = 60 * 1000;
    fixture_open (f);
    *state = f;
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_follower_sees_the_same_in_memory_and_in_the_tables),
        TEST (a_state_that_was_overtaken_is_skipped),
        TEST (a_removed_task_gets_no_line),
        TEST (nothing_is_kept_for_nobody),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
