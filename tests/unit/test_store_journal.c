/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The body of a journal's row: what is packed comes back, and any damage is noticed. */
#include <string.h>

#include "core/base/memory.h"
#include "journal.pb-c.h"
#include "store/journal/journal_codec.h"
#include "store_support.h"

static batch_t *full_batch (void)
{
    static const label_t LABELS[] = {{"a", "1"}, {"b", ""}};
    batch_t *batch = batch_make (42, 1700000000123);
    record_t record = test_record (9007199254740993);
    record.session = "s";
    record.method = "m";
    record.dedup_key = "k";
    record.meta = "{}";
    record.labels = LABELS;
    record.labels_count = 2;
    record.status = TMQ_STATUS_FAILED;
    record.status_message = "message";
    record.dead = true;
    record.started_at = 5;
    record.finished_at = 6;
    record.not_before = 7;
    record.attempt = 8;
    record.failures = 9;
    record.returns = 10;
    record.version = 11;
    record.last_seq = 12;
    record.leased = true;
    record.lease_started = true;
    memset (record.secret, 1, 16);
    memset (record.worker_id, 2, 16);
    memset (record.request_id, 3, 16);
    record.worker = "w";
    record.progress_done = 0.1;
    record.progress_total = 1.7976931348623157e308;
    record.progress_unit = "u";
    record.progress_message = "pm";
    record.payload = buf_new ("pay\0load", 8);
    record.payload_bytes = 8;
    record.outcome = TMQ_OUTCOME_TOOL_ERROR;
    record.result = buf_new ("res", 3);
    record.result_bytes = 3;
    record.result_type = "text/plain";
    record.error_code = -32000;
    record.error_message = "em";
    record.error_data = "[]";
    batch_add_record (batch, &record);
    buf_drop (record.payload);
    buf_drop (record.result);
    buf_drop (record.extra);
    record_t plain = test_record (1);
    batch_add_record (batch, &plain);
    batch->expiry_ms -= 7200000; /* a leap is held */
    batch_add_event (batch, "default", 7, 70, 1, &plain.id, TMQ_EVENT_CLAIMED, 3);
    batch_add_event (batch, "default", 8, 71, 1, &plain.id, TMQ_EVENT_FAILED, 7);
    batch_add_event (batch, "other", 1, 72, 1, &plain.id, TMQ_EVENT_PURGED, 0);
    attempt_t attempt = {.number = 1,
                         .id = plain.id,
                         .attempt = 4,
                         .worker = "w",
                         .started_at = 1,
                         .ended_at = 2,
                         .how = TMQ_EVENT_RELEASED,
                         .error_code = -1,
                         .error_message = "e"};
    memset (attempt.secret, 4, 16);
    memset (attempt.request_id, 5, 16);
    batch_add_attempt (batch, &attempt);
    batch_add_removal (batch, &plain, TMQ_EXPIRED, 99);
    batch_add_row (batch, ROW_KIND_TEST, "key", "body");
    batch->rows[0].expires_at = 1234567890123;
    batch_add_row (batch, ROW_KIND_TEST, "empty", "");
    batch_add_row (batch, ROW_KIND_TEST_LIVE, "gone", NULL);
    return batch;
}

static void assert_same_batch (const batch_t *a, const batch_t *b)
{
    assert_int_equal (a->no, b->no);
    assert_int_equal (a->wall_ms, b->wall_ms);
    assert_int_equal (a->expiry_ms, b->expiry_ms);
    assert_int_equal (a->records_count, b->records_count);
    for (size_t i = 0; i < a->records_count; i++)
        assert_same_record (a->records[i], b->records[i], true);
    assert_int_equal (a->attempts_count, b->attempts_count);
    assert_memory_equal (a->attempts, b->attempts, a->attempts_count * sizeof (attempt_t));
    assert_int_equal (a->removals_count, b->removals_count);
    for (size_t i = 0; i < a->removals_count; i++) {
        assert_int_equal (a->removals[i].number, b->removals[i].number);
        assert_memory_equal (&a->removals[i].id, &b->removals[i].id, sizeof (tmq_id_t));
        assert_string_equal (a->removals[i].ns, b->removals[i].ns);
        assert_int_equal (a->removals[i].code, b->removals[i].code);
        assert_int_equal (a->removals[i].at, b->removals[i].at);
    }
    assert_int_equal (a->blocks_count, b->blocks_count);
    for (size_t i = 0; i < a->blocks_count; i++) {
        assert_string_equal (a->blocks[i].ns, b->blocks[i].ns);
        assert_int_equal (a->blocks[i].first_seq, b->blocks[i].first_seq);
        assert_int_equal (a->blocks[i].first_pos, b->blocks[i].first_pos);
        assert_int_equal (a->blocks[i].count, b->blocks[i].count);
        assert_body (a->blocks[i].list, (const char *) buf_bytes (b->blocks[i].list),
                     buf_length (b->blocks[i].list));
    }
}

static void assert_same_rows (const batch_t *a, const batch_t *b)
{
    assert_int_equal (a->rows_count, b->rows_count);
    for (size_t i = 0; i < a->rows_count; i++) {
        assert_int_equal (row_compare (&a->rows[i], &b->rows[i]), 0);
        assert_int_equal (a->rows[i].gone, b->rows[i].gone);
        assert_int_equal (a->rows[i].expires_at, b->rows[i].expires_at);
        assert_body (a->rows[i].body, (const char *) buf_bytes (b->rows[i].body),
                     buf_length (b->rows[i].body));
    }
}

static void a_batch_comes_back (void **state)
{
    (void) state;
    batch_t *batch = full_batch ();
    journal_head_t head = {11, 22, 33};
    journal_head_t found = {0, 0, 0};
    bytes_t body = BYTES_INIT;
    bool newer;
    journal_encode (&body, &head, batch);
    batch_t *copy = journal_decode (body.data, body.length, &found, &newer);
    assert_non_null (copy);
    assert_false (newer);
    assert_memory_equal (&found, &head, sizeof (head));
    assert_same_batch (batch, copy);
    assert_same_rows (batch, copy);
    batch_free (batch);
    batch_free (copy);
    bytes_free (&body);
}

static void an_empty_batch_comes_back (void **state)
{
    (void) state;
    batch_t *batch = batch_make (1, 0);
    journal_head_t head = {1, 1, 0};
    bytes_t body = BYTES_INIT;
    bool newer;
    journal_encode (&body, &head, batch);
    batch_t *copy = journal_decode (body.data, body.length, &head, &newer);
    assert_non_null (copy);
    assert_same_batch (batch, copy);
    batch_free (batch);
    batch_free (copy);
    bytes_free (&body);
}

static void damage_is_noticed (void **state)
{
    (void) state;
    batch_t *batch = full_batch ();
    journal_head_t head = {11, 22, 33};
    bytes_t body = BYTES_INIT;
    bool newer;
    journal_encode (&body, &head, batch);
    for (size_t i = 0; i < body.length * 8; i++) {
        body.data[i / 8] ^= (uint8_t) (1u << i % 8);
        assert_null (journal_decode (body.data, body.length, &head, &newer));
        assert_false (newer);
        body.data[i / 8] ^= (uint8_t) (1u << i % 8);
    }
    for (size_t length = 0; length < body.length; length++)
        assert_null (journal_decode (body.data, length, &head, &newer));
    batch_free (batch);
    bytes_free (&body);
}

/* What packs by hand and what protobuf-c packs are the same bytes, but for the order of fields. */
static void the_fields_are_those_of_the_proto (void **state)
{
    (void) state;
    batch_t *batch = full_batch ();
    journal_head_t head = {11, 22, 33};
    bytes_t body = BYTES_INIT;
    journal_encode (&body, &head, batch);
    Journal__Batch *packed = journal__batch__unpack (NULL, body.length, body.data);
    assert_non_null (packed);
    assert_int_equal (packed->version, 2);
    assert_int_equal (packed->base.n_unknown_fields, 0);
    for (size_t i = 0; i < packed->n_records; i++)
        assert_int_equal (packed->records[i]->base.n_unknown_fields, 0);
    assert_int_equal (packed->attempts[0]->base.n_unknown_fields, 0);
    assert_int_equal (packed->removals[0]->base.n_unknown_fields, 0);
    assert_int_equal (packed->blocks[0]->base.n_unknown_fields, 0);
    assert_int_equal (journal__batch__get_packed_size (packed), body.length);
    journal__batch__free_unpacked (packed, NULL);
    batch_free (batch);
    bytes_free (&body);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_batch_comes_back),
        cmocka_unit_test (an_empty_batch_comes_back),
        cmocka_unit_test (damage_is_noticed),
        cmocka_unit_test (the_fields_are_those_of_the_proto),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
