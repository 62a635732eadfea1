/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Packs and unpacks commit batches. The checksum is the last field and covers all bytes before it,
 * so a body whose end is missing is damaged like one whose middle is. */
#include "store/journal_codec.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "ids.h"
#include "journal.pb-c.h"

/* Numbers of fields in journal.proto. */
enum { FIELD_RECORDS = 7, FIELD_ATTEMPTS = 8, FIELD_REMOVALS = 9, FIELD_BLOCKS = 10 };

enum {
    FORMAT_VERSION = 1,
    CHECKSUM_TAG = 15 << 3 | 1, /* field 15, fixed64 */
    CHECKSUM_BYTES = 8,
    TRAILER_BYTES = 1 + CHECKSUM_BYTES
};

/* No secret: the checksum guards against damage, not against people. */
static const uint8_t CHECKSUM_KEY[crypto_shorthash_KEYBYTES] = "taskmq journal";

static const uint8_t ZERO[32];

/* ---- Packing ----------------------------------------------------------------------------------- */

/* protobuf-c's messages want pointers that are not const; packing does not write through them. */
static char *text (const char *value)
{
    return (char *) value;
}

static ProtobufCBinaryData blob (const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length, (uint8_t *) bytes};
}

/* All zero means "not given" and is left out. */
static ProtobufCBinaryData fixed (const uint8_t *bytes, size_t length)
{
    return blob (bytes, memcmp (bytes, ZERO, length) == 0 ? 0 : length);
}

static ProtobufCBinaryData body_blob (const buf_t *body)
{
    return blob (buf_bytes (body), buf_length (body));
}

static void pack_what (Journal__Record *to, const record_t *from)
{
    to->number = (uint64_t) from->number;
    to->id = blob (from->id.bytes, sizeof (from->id.bytes));
    to->ns = text (from->ns);
    to->owner = text (from->owner);
    to->queue = text (from->queue);
    to->session = text (from->session);
    to->method = text (from->method);
    to->content_type = text (from->content_type);
    to->dedup_key = text (from->dedup_key);
    to->meta = text (from->meta);
    to->priority = from->priority;
    to->created_at = (uint64_t) from->created_at;
    to->not_before = (uint64_t) from->not_before;
    to->ttl_ms = (uint64_t) from->ttl_ms;
    to->poll_interval_ms = from->poll_interval_ms;
    to->lease_ms = from->lease_ms;
    to->backoff_ms = from->backoff_ms;
    to->max_attempts = from->max_attempts;
    to->digest = fixed (from->digest, sizeof (from->digest));
    to->payload_bytes = from->payload_bytes;
    to->payload = body_blob (from->payload);
}

static void pack_state (Journal__Record *to, const record_t *from)
{
    to->status = from->status;
    to->status_message = text (from->status_message);
    to->dead = from->dead;
    to->updated_at = (uint64_t) from->updated_at;
    to->started_at = (uint64_t) from->started_at;
    to->finished_at = (uint64_t) from->finished_at;
    to->expires_at = (uint64_t) from->expires_at;
    to->attempt = from->attempt;
    to->failures = from->failures;
    to->returns = from->returns;
    to->record_version = from->version;
    to->last_seq = from->last_seq;
    to->leased = from->leased;
    to->lease_started = from->lease_started;
    to->secret = fixed (from->secret, sizeof (from->secret));
    to->worker_id = fixed (from->worker_id, sizeof (from->worker_id));
    to->worker = text (from->worker);
    to->request_id = fixed (from->request_id, sizeof (from->request_id));
    to->progress_done = from->progress_done;
    to->progress_total = from->progress_total;
    to->progress_unit = text (from->progress_unit);
    to->progress_message = text (from->progress_message);
    to->outcome = from->outcome;
    to->result_bytes = from->result_bytes;
    to->result = body_blob (from->result);
    to->result_type = text (from->result_type);
    to->error_code = from->error_code;
    to->error_message = text (from->error_message);
    to->error_data = text (from->error_data);
}

static void append_record (bytes_t *body, const record_t *record)
{
    Journal__Record packed = JOURNAL__RECORD__INIT;
    Journal__Label labels[TMQ_LABELS_MAX];
    Journal__Label *label_list[TMQ_LABELS_MAX];
    assert (record->labels_count <= TMQ_LABELS_MAX);
    pack_what (&packed, record);
    pack_state (&packed, record);
    for (size_t i = 0; i < record->labels_count; i++) {
        labels[i] = (Journal__Label) JOURNAL__LABEL__INIT;
        labels[i].key = text (record->labels[i].key);
        labels[i].value = text (record->labels[i].value);
        label_list[i] = &labels[i];
    }
    packed.labels = label_list;
    packed.n_labels = record->labels_count;
    bytes_append_message (body, FIELD_RECORDS, &packed.base);
}

static void append_attempt (bytes_t *body, const attempt_t *attempt)
{
    Journal__Attempt packed = JOURNAL__ATTEMPT__INIT;
    packed.number = (uint64_t) attempt->number;
    packed.id = blob (attempt->id.bytes, sizeof (attempt->id.bytes));
    packed.attempt = attempt->attempt;
    packed.worker = text (attempt->worker);
    packed.started_at = (uint64_t) attempt->started_at;
    packed.ended_at = (uint64_t) attempt->ended_at;
    packed.how = attempt->how;
    packed.error_code = attempt->error_code;
    packed.error_message = text (attempt->error_message);
    packed.secret = fixed (attempt->secret, sizeof (attempt->secret));
    packed.request_id = fixed (attempt->request_id, sizeof (attempt->request_id));
    bytes_append_message (body, FIELD_ATTEMPTS, &packed.base);
}

static void append_removal (bytes_t *body, const removal_t *removal)
{
    Journal__Removal packed = JOURNAL__REMOVAL__INIT;
    packed.number = (uint64_t) removal->number;
    packed.id = blob (removal->id.bytes, sizeof (removal->id.bytes));
    packed.ns = text (removal->ns);
    packed.code = removal->code;
    packed.at = (uint64_t) removal->at;
    bytes_append_message (body, FIELD_REMOVALS, &packed.base);
}

static void append_block (bytes_t *body, const event_block_t *block)
{
    Journal__Block packed = JOURNAL__BLOCK__INIT;
    packed.ns = text (block->ns);
    packed.first_seq = block->first_seq;
    packed.first_pos = block->first_pos;
    packed.count = block->count;
    packed.list = body_blob (block->list);
    bytes_append_message (body, FIELD_BLOCKS, &packed.base);
}

static void checksum (const uint8_t *bytes, size_t length, uint8_t out[CHECKSUM_BYTES])
{
    _Static_assert(crypto_shorthash_BYTES == CHECKSUM_BYTES, "SipHash-2-4 gives 64 bits");
    crypto_shorthash (out, bytes, length, CHECKSUM_KEY);
}

void journal_encode (bytes_t *body, const journal_head_t *head, const batch_t *batch)
{
    Journal__Batch packed = JOURNAL__BATCH__INIT;
    packed.version = FORMAT_VERSION;
    packed.generation = head->generation;
    packed.epoch = head->epoch;
    packed.no = batch->no;
    packed.previous = head->previous;
    packed.wall_ms = (uint64_t) batch->wall_ms;
    bytes_clear (body);
    bytes_append_packed (body, &packed.base);
    for (size_t i = 0; i < batch->records_count; i++)
        append_record (body, batch->records[i]);
    for (size_t i = 0; i < batch->attempts_count; i++)
        append_attempt (body, &batch->attempts[i]);
    for (size_t i = 0; i < batch->removals_count; i++)
        append_removal (body, &batch->removals[i]);
    for (size_t i = 0; i < batch->blocks_count; i++)
        append_block (body, &batch->blocks[i]);
    uint8_t trailer[TRAILER_BYTES] = {CHECKSUM_TAG};
    if (!body->failed)
        checksum (body->data, body->length, trailer + 1);
    bytes_append (body, trailer, sizeof (trailer));
    if (body->failed)
        abort (); /* as all of the engine: what was applied cannot be kept */
}

/* ---- Unpacking --------------------------------------------------------------------------------- */

static void fixed_to (uint8_t *to, size_t length, const ProtobufCBinaryData *from)
{
    if (from->len == length)
        memcpy (to, from->data, length);
    else
        memset (to, 0, length);
}

static buf_t *body_from (const ProtobufCBinaryData *from)
{
    return from->len == 0 ? NULL : buf_new (from->data, from->len);
}

static void unpack_what (record_t *to, const Journal__Record *from)
{
    to->number = (int64_t) from->number;
    id_from_bytes (&to->id, from->id.data, from->id.len);
    to->ns = from->ns;
    to->owner = from->owner;
    to->queue = from->queue;
    to->session = from->session;
    to->method = from->method;
    to->content_type = from->content_type;
    to->dedup_key = from->dedup_key;
    to->meta = from->meta;
    to->priority = (uint8_t) from->priority;
    to->created_at = (int64_t) from->created_at;
    to->not_before = (int64_t) from->not_before;
    to->ttl_ms = (int64_t) from->ttl_ms;
    to->poll_interval_ms = from->poll_interval_ms;
    to->lease_ms = from->lease_ms;
    to->backoff_ms = from->backoff_ms;
    to->max_attempts = from->max_attempts;
    fixed_to (to->digest, sizeof (to->digest), &from->digest);
    to->payload_bytes = from->payload_bytes;
    to->payload = body_from (&from->payload);
}

static void unpack_state (record_t *to, const Journal__Record *from)
{
    to->status = (tmq_status_t) from->status;
    to->status_message = from->status_message;
    to->dead = from->dead;
    to->updated_at = (int64_t) from->updated_at;
    to->started_at = (int64_t) from->started_at;
    to->finished_at = (int64_t) from->finished_at;
    to->expires_at = (int64_t) from->expires_at;
    to->attempt = from->attempt;
    to->failures = from->failures;
    to->returns = from->returns;
    to->version = from->record_version;
    to->last_seq = from->last_seq;
    to->leased = from->leased;
    to->lease_started = from->lease_started;
    fixed_to (to->secret, sizeof (to->secret), &from->secret);
    fixed_to (to->worker_id, sizeof (to->worker_id), &from->worker_id);
    to->worker = from->worker;
    fixed_to (to->request_id, sizeof (to->request_id), &from->request_id);
    to->progress_done = from->progress_done;
    to->progress_total = from->progress_total;
    to->progress_unit = from->progress_unit;
    to->progress_message = from->progress_message;
    to->outcome = (tmq_outcome_kind_t) from->outcome;
    to->result_bytes = from->result_bytes;
    to->result = body_from (&from->result);
    to->result_type = from->result_type;
    to->error_code = from->error_code;
    to->error_message = from->error_message;
    to->error_data = from->error_data;
}

static record_t *unpack_record (const Journal__Record *from)
{
    record_t record = {0};
    unpack_what (&record, from);
    unpack_state (&record, from);
    label_t *labels = memory_alloc (from->n_labels * sizeof (label_t));
    for (size_t i = 0; i < from->n_labels; i++)
        labels[i] = (label_t){from->labels[i]->key, from->labels[i]->value};
    record.labels = labels;
    record.labels_count = from->n_labels;
    record_t *copy = record_new (&record);
    buf_drop (record.payload);
    buf_drop (record.result);
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
    to->at = (int64_t) from->at;
}

static void unpack_block (event_block_t *to, const Journal__Block *from)
{
    to->ns = memory_text (from->ns);
    to->first_seq = from->first_seq;
    to->first_pos = from->first_pos;
    to->count = from->count;
    to->list = buf_new (from->list.data, from->list.len);
}

static batch_t *unpack_batch (const Journal__Batch *from)
{
    batch_t *batch = memory_zero (1, sizeof (*batch));
    batch->no = from->no;
    batch->wall_ms = (int64_t) from->wall_ms;
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
    return batch;
}

batch_t *journal_decode (const uint8_t *body, size_t body_bytes, journal_head_t *head, bool *newer)
{
    *newer = false;
    if (body_bytes < TRAILER_BYTES)
        return NULL;
    size_t covered = body_bytes - TRAILER_BYTES;
    uint8_t sum[CHECKSUM_BYTES];
    checksum (body, covered, sum);
    if (body[covered] != CHECKSUM_TAG || memcmp (body + covered + 1, sum, sizeof (sum)) != 0)
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
