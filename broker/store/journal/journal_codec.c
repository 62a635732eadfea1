/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packs and unpacks commit batches. The checksum is the last field and covers all bytes before it,
 * so a body whose end is missing is damaged like one whose middle is. */
#include "store/journal/journal_codec.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "decode.h"
#include "ids.h"
#include "journal.pb-c.h"
#include "store/checksum.h"

/* Numbers of fields in journal.proto. Packing them one by one takes a third of the time that
 * protobuf-c takes to walk its descriptors; the test of this file unpacks with protobuf-c. */
enum {
    BATCH_VERSION = 1,
    BATCH_GENERATION = 2,
    BATCH_EPOCH = 3,
    BATCH_NO = 4,
    BATCH_PREVIOUS = 5,
    BATCH_WALL_MS = 6,
    BATCH_RECORDS = 7,
    BATCH_ATTEMPTS = 8,
    BATCH_REMOVALS = 9,
    BATCH_BLOCKS = 10,
    BATCH_ROWS = 11,
    BATCH_EXPIRY_MS = 12,

    LABEL_KEY = 1,
    LABEL_VALUE = 2,

    RECORD_NUMBER = 1,
    RECORD_ID = 2,
    RECORD_NS = 3,
    RECORD_OWNER = 4,
    RECORD_QUEUE = 5,
    RECORD_SESSION = 6,
    RECORD_METHOD = 7,
    RECORD_CONTENT_TYPE = 8,
    RECORD_DEDUP_KEY = 9,
    RECORD_META = 10,
    RECORD_LABELS = 11,
    RECORD_STATUS = 12,
    RECORD_STATUS_MESSAGE = 13,
    RECORD_PRIORITY = 14,
    RECORD_DEAD = 15,
    RECORD_CREATED_AT = 16,
    RECORD_UPDATED_AT = 17,
    RECORD_STARTED_AT = 18,
    RECORD_FINISHED_AT = 19,
    RECORD_EXPIRES_AT = 20,
    RECORD_NOT_BEFORE = 21,
    RECORD_TTL_MS = 22,
    RECORD_POLL_INTERVAL_MS = 23,
    RECORD_LEASE_MS = 24,
    RECORD_BACKOFF_MS = 25,
    RECORD_MAX_ATTEMPTS = 26,
    RECORD_ATTEMPT = 27,
    RECORD_FAILURES = 28,
    RECORD_RETURNS = 29,
    RECORD_RECORD_VERSION = 30,
    RECORD_LAST_SEQ = 31,
    RECORD_LEASED = 32,
    RECORD_LEASE_STARTED = 33,
    RECORD_SECRET = 34,
    RECORD_WORKER_ID = 35,
    RECORD_WORKER = 36,
    RECORD_REQUEST_ID = 37,
    RECORD_PROGRESS_DONE = 38,
    RECORD_PROGRESS_TOTAL = 39,
    RECORD_PROGRESS_UNIT = 40,
    RECORD_PROGRESS_MESSAGE = 41,
    RECORD_DIGEST = 42,
    RECORD_PAYLOAD_BYTES = 43,
    RECORD_PAYLOAD = 44,
    RECORD_OUTCOME = 45,
    RECORD_RESULT_BYTES = 46,
    RECORD_RESULT = 47,
    RECORD_RESULT_TYPE = 48,
    RECORD_ERROR_CODE = 49,
    RECORD_ERROR_MESSAGE = 50,
    RECORD_ERROR_DATA = 51,
    RECORD_HOLDER = 52,
    RECORD_EXTRA = 53,
    RECORD_RELABELLED = 54,

    ATTEMPT_NUMBER = 1,
    ATTEMPT_ID = 2,
    ATTEMPT_ATTEMPT = 3,
    ATTEMPT_WORKER = 4,
    ATTEMPT_STARTED_AT = 5,
    ATTEMPT_ENDED_AT = 6,
    ATTEMPT_HOW = 7,
    ATTEMPT_ERROR_CODE = 8,
    ATTEMPT_ERROR_MESSAGE = 9,
    ATTEMPT_SECRET = 10,
    ATTEMPT_REQUEST_ID = 11,

    REMOVAL_NUMBER = 1,
    REMOVAL_ID = 2,
    REMOVAL_NS = 3,
    REMOVAL_CODE = 4,
    REMOVAL_AT = 5,
    REMOVAL_OWNER = 6,
    REMOVAL_QUEUE = 7,
    REMOVAL_WHY = 8,

    BLOCK_NS = 1,
    BLOCK_FIRST_SEQ = 2,
    BLOCK_FIRST_POS = 3,
    BLOCK_COUNT = 4,
    BLOCK_LIST = 5,

    ROW_KIND = 1,
    ROW_KEY = 2,
    ROW_BODY = 3,
    ROW_GONE = 4,
    ROW_EXPIRY = 5
};

enum {
    FORMAT_VERSION = 2,
    CHECKSUM_TAG = 15 << 3 | 1 /* field 15, fixed64 */
};

static const uint8_t ZERO[32];

/* Packing. */

/* All zero means "not given" and is left out. */
static void append_fixed (bytes_t *body, uint32_t field, const uint8_t *bytes, size_t length)
{
    if (memcmp (bytes, ZERO, length) != 0)
        bytes_append_blob (body, field, bytes, length);
}

static void append_id (bytes_t *body, uint32_t field, const tmq_id_t *id)
{
    bytes_append_blob (body, field, id->bytes, sizeof (id->bytes));
}

/* Times and numbers are never negative. */
static void append_number (bytes_t *body, uint32_t field, int64_t value)
{
    bytes_append_uint (body, field, (uint64_t) value);
}

static void append_body (bytes_t *body, uint32_t field, const buf_t *buf)
{
    bytes_append_blob (body, field, buf_bytes (buf), buf_length (buf));
}

static void append_label (bytes_t *body, const label_t *label)
{
    bytes_mark_t mark = bytes_open (body, RECORD_LABELS);
    bytes_append_string (body, LABEL_KEY, label->key);
    bytes_append_string (body, LABEL_VALUE, label->value);
    bytes_close (body, mark);
}

/* What has columns of its own in a row. */
static void append_columns (bytes_t *body, const record_t *record)
{
    append_number (body, RECORD_NUMBER, record->number);
    append_id (body, RECORD_ID, &record->id);
    bytes_append_string (body, RECORD_NS, record->ns);
    bytes_append_string (body, RECORD_OWNER, record->owner);
    bytes_append_string (body, RECORD_QUEUE, record->queue);
    bytes_append_string (body, RECORD_SESSION, record->session);
    bytes_append_string (body, RECORD_DEDUP_KEY, record->dedup_key);
    for (size_t i = 0; i < record->labels_count; i++)
        append_label (body, &record->labels[i]);
    bytes_append_uint (body, RECORD_STATUS, record->status);
    append_number (body, RECORD_CREATED_AT, record->created_at);
    append_number (body, RECORD_EXPIRES_AT, record->expires_at);
    bytes_append_uint (body, RECORD_LAST_SEQ, record->last_seq);
    bytes_append_uint (body, RECORD_LEASED, record->leased);
    bytes_append_uint (body, RECORD_PAYLOAD_BYTES, record->payload_bytes);
    append_body (body, RECORD_PAYLOAD, record->payload);
    bytes_append_uint (body, RECORD_RESULT_BYTES, record->result_bytes);
    append_body (body, RECORD_RESULT, record->result);
}

void journal_pack_rest (bytes_t *body, const record_t *record)
{
    bytes_append_string (body, RECORD_METHOD, record->method);
    bytes_append_string (body, RECORD_CONTENT_TYPE, record->content_type);
    bytes_append_string (body, RECORD_META, record->meta);
    bytes_append_string (body, RECORD_STATUS_MESSAGE, record->status_message);
    bytes_append_uint (body, RECORD_PRIORITY, record->priority);
    bytes_append_uint (body, RECORD_DEAD, record->dead);
    append_number (body, RECORD_UPDATED_AT, record->updated_at);
    append_number (body, RECORD_STARTED_AT, record->started_at);
    append_number (body, RECORD_FINISHED_AT, record->finished_at);
    append_number (body, RECORD_NOT_BEFORE, record->not_before);
    append_number (body, RECORD_TTL_MS, record->ttl_ms);
    bytes_append_uint (body, RECORD_POLL_INTERVAL_MS, record->poll_interval_ms);
    bytes_append_uint (body, RECORD_LEASE_MS, record->lease_ms);
    bytes_append_uint (body, RECORD_BACKOFF_MS, record->backoff_ms);
    bytes_append_uint (body, RECORD_MAX_ATTEMPTS, record->max_attempts);
    bytes_append_uint (body, RECORD_ATTEMPT, record->attempt);
    bytes_append_uint (body, RECORD_FAILURES, record->failures);
    bytes_append_uint (body, RECORD_RETURNS, record->returns);
    bytes_append_uint (body, RECORD_RECORD_VERSION, record->version);
    bytes_append_uint (body, RECORD_LEASE_STARTED, record->lease_started);
    append_fixed (body, RECORD_SECRET, record->secret, sizeof (record->secret));
    append_fixed (body, RECORD_WORKER_ID, record->worker_id, sizeof (record->worker_id));
    bytes_append_string (body, RECORD_WORKER, record->worker);
    append_fixed (body, RECORD_REQUEST_ID, record->request_id, sizeof (record->request_id));
    bytes_append_double (body, RECORD_PROGRESS_DONE, record->progress_done);
    bytes_append_double (body, RECORD_PROGRESS_TOTAL, record->progress_total);
    bytes_append_string (body, RECORD_PROGRESS_UNIT, record->progress_unit);
    bytes_append_string (body, RECORD_PROGRESS_MESSAGE, record->progress_message);
    append_fixed (body, RECORD_DIGEST, record->digest, sizeof (record->digest));
    bytes_append_uint (body, RECORD_OUTCOME, record->outcome);
    bytes_append_string (body, RECORD_RESULT_TYPE, record->result_type);
    bytes_append_sint (body, RECORD_ERROR_CODE, record->error_code);
    bytes_append_string (body, RECORD_ERROR_MESSAGE, record->error_message);
    bytes_append_string (body, RECORD_ERROR_DATA, record->error_data);
    bytes_append_string (body, RECORD_HOLDER, record->holder);
    append_body (body, RECORD_EXTRA, record->extra);
    bytes_append_uint (body, RECORD_RELABELLED, record->relabelled);
}

static void append_record (bytes_t *body, const record_t *record)
{
    bytes_mark_t mark = bytes_open (body, BATCH_RECORDS);
    append_columns (body, record);
    journal_pack_rest (body, record);
    bytes_close (body, mark);
}

static void append_attempt (bytes_t *body, const attempt_t *attempt)
{
    bytes_mark_t mark = bytes_open (body, BATCH_ATTEMPTS);
    append_number (body, ATTEMPT_NUMBER, attempt->number);
    append_id (body, ATTEMPT_ID, &attempt->id);
    bytes_append_uint (body, ATTEMPT_ATTEMPT, attempt->attempt);
    bytes_append_string (body, ATTEMPT_WORKER, attempt->worker);
    append_number (body, ATTEMPT_STARTED_AT, attempt->started_at);
    append_number (body, ATTEMPT_ENDED_AT, attempt->ended_at);
    bytes_append_uint (body, ATTEMPT_HOW, attempt->how);
    bytes_append_sint (body, ATTEMPT_ERROR_CODE, attempt->error_code);
    bytes_append_string (body, ATTEMPT_ERROR_MESSAGE, attempt->error_message);
    append_fixed (body, ATTEMPT_SECRET, attempt->secret, sizeof (attempt->secret));
    append_fixed (body, ATTEMPT_REQUEST_ID, attempt->request_id, sizeof (attempt->request_id));
    bytes_close (body, mark);
}

static void append_removal (bytes_t *body, const removal_t *removal)
{
    bytes_mark_t mark = bytes_open (body, BATCH_REMOVALS);
    append_number (body, REMOVAL_NUMBER, removal->number);
    append_id (body, REMOVAL_ID, &removal->id);
    bytes_append_string (body, REMOVAL_NS, removal->ns);
    bytes_append_uint (body, REMOVAL_CODE, removal->code);
    append_number (body, REMOVAL_AT, removal->at);
    bytes_append_string (body, REMOVAL_OWNER, removal->owner);
    bytes_append_string (body, REMOVAL_QUEUE, removal->queue);
    bytes_append_uint (body, REMOVAL_WHY, removal->why);
    bytes_close (body, mark);
}

static void append_block (bytes_t *body, const event_block_t *block)
{
    bytes_mark_t mark = bytes_open (body, BATCH_BLOCKS);
    bytes_append_string (body, BLOCK_NS, block->ns);
    bytes_append_uint (body, BLOCK_FIRST_SEQ, block->first_seq);
    bytes_append_uint (body, BLOCK_FIRST_POS, block->first_pos);
    bytes_append_uint (body, BLOCK_COUNT, block->count);
    append_body (body, BLOCK_LIST, block->list);
    bytes_close (body, mark);
}

static void append_row (bytes_t *body, const row_t *row)
{
    bytes_mark_t mark = bytes_open (body, BATCH_ROWS);
    bytes_append_uint (body, ROW_KIND, row->kind);
    append_body (body, ROW_KEY, row->key);
    append_body (body, ROW_BODY, row->body);
    bytes_append_uint (body, ROW_GONE, row->gone);
    append_number (body, ROW_EXPIRY, row->expires_at);
    bytes_close (body, mark);
}

void journal_seal (bytes_t *body, size_t start)
{
    uint8_t trailer[JOURNAL_TRAILER_BYTES] = {CHECKSUM_TAG};
    if (!body->failed)
        checksum_put (trailer + 1, checksum_add (0, body->data + start, body->length - start));
    bytes_append (body, trailer, sizeof (trailer));
}

bool journal_is_whole (const uint8_t *body, size_t body_bytes)
{
    if (body_bytes < JOURNAL_TRAILER_BYTES)
        return false;
    size_t covered = body_bytes - JOURNAL_TRAILER_BYTES;
    return body[covered] == CHECKSUM_TAG &&
           checksum_get (body + covered + 1) == checksum_add (0, body, covered);
}

void journal_encode (bytes_t *body, const journal_head_t *head, const batch_t *batch)
{
    size_t start = body->length;
    bytes_append_uint (body, BATCH_VERSION, FORMAT_VERSION);
    bytes_append_uint (body, BATCH_GENERATION, head->generation);
    bytes_append_uint (body, BATCH_EPOCH, head->epoch);
    bytes_append_uint (body, BATCH_NO, batch->no);
    bytes_append_uint (body, BATCH_PREVIOUS, head->previous);
    append_number (body, BATCH_WALL_MS, batch->wall_ms);
    if (batch->expiry_ms != batch->wall_ms)
        append_number (body, BATCH_EXPIRY_MS, batch->expiry_ms);
    for (size_t i = 0; i < batch->records_count; i++)
        append_record (body, batch->records[i]);
    for (size_t i = 0; i < batch->attempts_count; i++)
        append_attempt (body, &batch->attempts[i]);
    for (size_t i = 0; i < batch->removals_count; i++)
        append_removal (body, &batch->removals[i]);
    for (size_t i = 0; i < batch->blocks_count; i++)
        append_block (body, &batch->blocks[i]);
    for (size_t i = 0; i < batch->rows_count; i++)
        append_row (body, &batch->rows[i]);
    journal_seal (body, start);
    if (body->failed)
        abort (); /* as all of the engine: what was applied cannot be kept */
}

/* Unpacking. */

static void fixed_to (uint8_t *to, size_t length, const ProtobufCBinaryData *from)
{
    if (from->len == length)
        memcpy (to, from->data, length);
    else
        memset (to, 0, length);
}

/* Of a longer one, which an older version wrote, the beginning. */
static void digest_to (uint8_t to[RECORD_DIGEST_BYTES], const ProtobufCBinaryData *from)
{
    const ProtobufCBinaryData first = {
        from->len < RECORD_DIGEST_BYTES ? from->len : RECORD_DIGEST_BYTES, from->data};
    fixed_to (to, RECORD_DIGEST_BYTES, &first);
}

static buf_t *body_from (const ProtobufCBinaryData *from)
{
    return from->len == 0 ? NULL : buf_new (from->data, from->len);
}

static void unpack_columns (record_t *to, label_t *labels, const Journal__Record *from)
{
    to->number = (int64_t) from->number;
    id_from_bytes (&to->id, from->id.data, from->id.len);
    to->ns = from->ns;
    to->owner = from->owner;
    to->queue = from->queue;
    to->session = from->session;
    to->dedup_key = from->dedup_key;
    for (size_t i = 0; i < from->n_labels; i++)
        labels[i] = (label_t){from->labels[i]->key, from->labels[i]->value};
    to->labels = labels;
    to->labels_count = from->n_labels;
    to->status = (tmq_status_t) from->status;
    to->created_at = (int64_t) from->created_at;
    to->expires_at = (int64_t) from->expires_at;
    to->last_seq = from->last_seq;
    to->leased = from->leased;
    to->payload_bytes = from->payload_bytes;
    to->payload = body_from (&from->payload);
    to->result_bytes = from->result_bytes;
    to->result = body_from (&from->result);
}

static void unpack_rest (record_t *to, const Journal__Record *from)
{
    to->method = from->method;
    to->content_type = from->content_type;
    to->meta = from->meta;
    to->status_message = from->status_message;
    to->priority = (uint8_t) from->priority;
    to->dead = from->dead;
    to->updated_at = (int64_t) from->updated_at;
    to->started_at = (int64_t) from->started_at;
    to->finished_at = (int64_t) from->finished_at;
    to->not_before = (int64_t) from->not_before;
    to->ttl_ms = (int64_t) from->ttl_ms;
    to->poll_interval_ms = from->poll_interval_ms;
    to->lease_ms = from->lease_ms;
    to->backoff_ms = from->backoff_ms;
    to->max_attempts = from->max_attempts;
    to->attempt = from->attempt;
    to->failures = from->failures;
    to->returns = from->returns;
    to->version = from->record_version;
    to->lease_started = from->lease_started;
    fixed_to (to->secret, sizeof (to->secret), &from->secret);
    fixed_to (to->worker_id, sizeof (to->worker_id), &from->worker_id);
    to->worker = from->worker;
    fixed_to (to->request_id, sizeof (to->request_id), &from->request_id);
    to->progress_done = from->progress_done;
    to->progress_total = from->progress_total;
    to->progress_unit = from->progress_unit;
    to->progress_message = from->progress_message;
    digest_to (to->digest, &from->digest);
    to->outcome = (tmq_outcome_kind_t) from->outcome;
    to->result_type = from->result_type;
    to->error_code = from->error_code;
    to->error_message = from->error_message;
    to->error_data = from->error_data;
    to->holder = from->holder;
    to->extra = body_from (&from->extra);
    to->relabelled = from->relabelled;
}

bool journal_unpack_rest (record_t *to, arena_t *arena, const uint8_t *bytes, size_t length)
{
    codec_report_t report;
    const ProtobufCMessage *packed =
        decode_message (&report, arena, &journal__record__descriptor, bytes, length);
    if (packed != NULL)
        unpack_rest (to, (const Journal__Record *) packed);
    return packed != NULL;
}

static record_t *unpack_record (const Journal__Record *from)
{
    record_t record = {0};
    label_t *labels = memory_alloc (from->n_labels * sizeof (label_t));
    unpack_columns (&record, labels, from);
    unpack_rest (&record, from);
    record_t *copy = record_new (&record);
    buf_drop (record.payload);
    buf_drop (record.result);
    buf_drop (record.extra);
    free (labels);
    return copy;
}

static void text_to (char *to, size_t size, const char *from)
{
    size_t length = strnlen (from, size - 1);
    memcpy (to, from, length);
    to[length] = '\0';
}

static void unpack_attempt (attempt_t *to, const Journal__Attempt *from)
{
    to->number = (int64_t) from->number;
    id_from_bytes (&to->id, from->id.data, from->id.len);
    to->attempt = from->attempt;
    text_to (to->worker, sizeof (to->worker), from->worker);
    to->started_at = (int64_t) from->started_at;
    to->ended_at = (int64_t) from->ended_at;
    to->how = (tmq_event_kind_t) from->how;
    to->error_code = from->error_code;
    text_to (to->error_message, sizeof (to->error_message), from->error_message);
    fixed_to (to->secret, sizeof (to->secret), &from->secret);
    fixed_to (to->request_id, sizeof (to->request_id), &from->request_id);
}

static void unpack_removal (removal_t *to, const Journal__Removal *from)
{
    to->number = (int64_t) from->number;
    id_from_bytes (&to->id, from->id.data, from->id.len);
    to->ns = memory_text (from->ns);
    to->code = (tmq_code_t) from->code;
    to->why = (uint8_t) from->why;
    to->at = (int64_t) from->at;
    to->owner = memory_text (from->owner);
    to->queue = memory_text (from->queue);
}

static void unpack_block (event_block_t *to, const Journal__Block *from)
{
    to->ns = memory_text (from->ns);
    to->first_seq = from->first_seq;
    to->first_pos = from->first_pos;
    to->count = from->count;
    to->list = buf_new (from->list.data, from->list.len);
}

static void unpack_row (row_t *to, const Journal__Row *from)
{
    to->kind = (row_kind_t) from->kind;
    to->gone = from->gone;
    to->key = body_from (&from->key);
    to->body = body_from (&from->body);
    to->expires_at = (int64_t) from->expires_at;
}

static batch_t *unpack_batch (const Journal__Batch *from)
{
    batch_t *batch = memory_zero (1, sizeof (*batch));
    batch->no = from->no;
    batch->wall_ms = (int64_t) from->wall_ms;
    batch->expiry_ms = from->expiry_ms == 0 ? batch->wall_ms : (int64_t) from->expiry_ms;
    batch->records_count = from->n_records;
    batch->records = memory_zero (from->n_records, sizeof (record_t *));
    for (size_t i = 0; i < from->n_records; i++)
        batch->records[i] = unpack_record (from->records[i]);
    batch->attempts_count = from->n_attempts;
    batch->attempts = memory_zero (from->n_attempts, sizeof (attempt_t));
    for (size_t i = 0; i < from->n_attempts; i++)
        unpack_attempt (&batch->attempts[i], from->attempts[i]);
    batch->removals_count = from->n_removals;
    batch->removals = memory_zero (from->n_removals, sizeof (removal_t));
    for (size_t i = 0; i < from->n_removals; i++)
        unpack_removal (&batch->removals[i], from->removals[i]);
    batch->blocks_count = from->n_blocks;
    batch->blocks = memory_zero (from->n_blocks, sizeof (event_block_t));
    for (size_t i = 0; i < from->n_blocks; i++)
        unpack_block (&batch->blocks[i], from->blocks[i]);
    batch->rows_count = from->n_rows;
    batch->rows = memory_zero (from->n_rows, sizeof (row_t));
    for (size_t i = 0; i < from->n_rows; i++)
        unpack_row (&batch->rows[i], from->rows[i]);
    return batch;
}

batch_t *journal_decode (const uint8_t *body, size_t body_bytes, journal_head_t *head, bool *newer)
{
    *newer = false;
    if (!journal_is_whole (body, body_bytes))
        return NULL;
    Journal__Batch *packed = journal__batch__unpack (NULL, body_bytes, body);
    if (packed == NULL)
        return NULL;
    batch_t *batch = NULL;
    *newer = packed->version > FORMAT_VERSION;
    if (!*newer) {
        *head = (journal_head_t){packed->generation, packed->epoch, packed->previous};
        batch = unpack_batch (packed);
        batch->bytes = body_bytes;
    }
    journal__batch__free_unpacked (packed, NULL);
    return batch;
}
