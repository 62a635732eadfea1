/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/extra.h"
#include "ids.h"
#include "store/journal/journal_codec.h"

/* Labels: key and value of each, each with a NUL behind it. */

static void put_labels (bytes_t *to, const record_t *record, bytes_t *scratch)
{
    bytes_clear (scratch);
    for (size_t i = 0; i < record->labels_count; i++) {
        const label_t *label = &record->labels[i];
        bytes_append (scratch, label->key, strlen (label->key) + 1);
        bytes_append (scratch, label->value, strlen (label->value) + 1);
    }
    if (scratch->failed)
        abort (); /* as all of the store: what was committed must be written */
    if (record->labels_count == 0)
        pg_put_null (to);
    else
        pg_put_bytes (to, scratch->data, scratch->length);
}

/* The text that begins here and ends before end; *next stands behind its NUL. NULL: it has none. */
static const char *take_text (const char *from, const char *end, const char **next)
{
    const char *stop = memchr (from, '\0', (size_t) (end - from));
    *next = stop == NULL ? end : stop + 1;
    return stop == NULL ? NULL : from;
}

/* The labels point into the cell. False: they are damaged. */
static bool read_labels (const PGresult *result, int row, int column,
                         label_t labels[TMQ_LABELS_MAX], record_t *record)
{
    size_t length;
    const char *next = (const char *) pg_bytes (result, row, column, &length);
    const char *end = next + length;
    record->labels = labels;
    while (next < end) {
        if (record->labels_count == TMQ_LABELS_MAX)
            return false;
        label_t *label = &labels[record->labels_count++];
        label->key = take_text (next, end, &next);
        label->value = label->key == NULL || next == end ? NULL : take_text (next, end, &next);
        if (label->value == NULL)
            return false;
    }
    return true;
}

/* Record to row. */

void pg_row_put (bytes_t *const places[PG_ROW_FIELDS], int32_t ns, const record_t *record,
                 const buf_t *payload, const buf_t *result, bytes_t *scratch)
{
    bytes_t *const *at = places + 1; /* by column */
    tmq_id_t parent;
    pg_put_int4 (places[0], ns);
    pg_put_int8 (at[PG_ROW_NUMBER], record->number);
    pg_put_id (at[PG_ROW_ID], record->id.bytes);
    pg_put_text (at[PG_ROW_OWNER], record->owner);
    pg_put_text (at[PG_ROW_QUEUE], record->queue);
    pg_put_text_or_null (at[PG_ROW_SESSION], record->session);
    pg_put_int2 (at[PG_ROW_STATUS], (int16_t) record->status);
    pg_put_int8 (at[PG_ROW_CREATED_AT], record->created_at);
    pg_put_int8 (at[PG_ROW_EXPIRES_AT], record->expires_at);
    pg_put_bool (at[PG_ROW_LEASED], record->leased);
    pg_put_int8 (at[PG_ROW_LAST_EVENT], (int64_t) record->last_seq);
    pg_put_text_or_null (at[PG_ROW_DEDUP_KEY], record->dedup_key);
    if (record->extra != NULL && extra_parent (record->extra, &parent))
        pg_put_id (at[PG_ROW_PARENT], parent.bytes);
    else
        pg_put_null (at[PG_ROW_PARENT]);
    put_labels (at[PG_ROW_LABELS], record, scratch);
    pg_put_int4 (at[PG_ROW_PAYLOAD_BYTES], (int32_t) record->payload_bytes);
    pg_put_int4 (at[PG_ROW_RESULT_BYTES], (int32_t) record->result_bytes);
    bytes_clear (scratch);
    journal_pack_rest (scratch, record);
    if (scratch->failed)
        abort ();
    pg_put_bytes (at[PG_ROW_REST], scratch->data, scratch->length);
    pg_put_body (at[PG_ROW_PAYLOAD], payload);
    pg_put_body (at[PG_ROW_RESULT], result);
}

/* Row to record. */

static void read_columns (const PGresult *result, int row, int column, record_t *record)
{
    record->number = pg_int8 (result, row, column + PG_ROW_NUMBER);
    pg_fixed (result, row, column + PG_ROW_ID, record->id.bytes, sizeof (record->id.bytes));
    record->owner = pg_text (result, row, column + PG_ROW_OWNER);
    record->queue = pg_text (result, row, column + PG_ROW_QUEUE);
    record->session = pg_text (result, row, column + PG_ROW_SESSION);
    record->status = (tmq_status_t) pg_int2 (result, row, column + PG_ROW_STATUS);
    record->created_at = pg_int8 (result, row, column + PG_ROW_CREATED_AT);
    record->expires_at = pg_int8 (result, row, column + PG_ROW_EXPIRES_AT);
    record->leased = pg_bool (result, row, column + PG_ROW_LEASED);
    record->last_seq = (uint64_t) pg_int8 (result, row, column + PG_ROW_LAST_EVENT);
    record->dedup_key = pg_text (result, row, column + PG_ROW_DEDUP_KEY);
    record->payload_bytes = (uint32_t) pg_int4 (result, row, column + PG_ROW_PAYLOAD_BYTES);
    record->result_bytes = (uint32_t) pg_int4 (result, row, column + PG_ROW_RESULT_BYTES);
}

/* False: they are not as long as the row says. */
static bool read_bodies (const PGresult *result, int row, int column, record_t *record)
{
    record->payload = pg_body (result, row, column + PG_ROW_PAYLOAD);
    record->result = pg_body (result, row, column + PG_ROW_RESULT);
    return buf_length (record->payload) == record->payload_bytes &&
           buf_length (record->result) == record->result_bytes;
}

store_code_t pg_row_read (const PGresult *result, int row, int column, const char *ns, bool bodies,
                          arena_t *arena, record_t **out, store_error_t *error)
{
    record_t record = {.ns = ns};
    label_t labels[TMQ_LABELS_MAX];
    size_t rest_bytes;
    const uint8_t *rest = pg_bytes (result, row, column + PG_ROW_REST, &rest_bytes);
    read_columns (result, row, column, &record);
    arena_reset (arena);
    bool whole = read_labels (result, row, column + PG_ROW_LABELS, labels, &record) &&
                 journal_unpack_rest (&record, arena, rest, rest_bytes) &&
                 (!bodies || read_bodies (result, row, column, &record));
    if (whole)
        *out = record_new (&record);
    buf_drop (record.payload);
    buf_drop (record.result);
    buf_drop (record.extra);
    if (whole)
        return STORE_OK;
    char id[ID_TEXT_SIZE];
    id_format (&record.id, id);
    return store_fail (error, STORE_ERROR_DAMAGED, "the row of task %s (number %lld) is damaged",
                       id, (long long) record.number);
}

/* The others. */

void pg_attempt_read (const PGresult *result, int row, int column, attempt_t *out)
{
    size_t length;
    const uint8_t *message = pg_bytes (result, row, column + 7, &length);
    *out = (attempt_t){.number = pg_int8 (result, row, column),
                       .attempt = (uint32_t) pg_int8 (result, row, column + 1),
                       .started_at = pg_int8 (result, row, column + 3),
                       .ended_at = pg_int8 (result, row, column + 4),
                       .how = (tmq_event_kind_t) pg_int2 (result, row, column + 5),
                       .error_code = pg_int4 (result, row, column + 6)};
    snprintf (out->worker, sizeof (out->worker), "%s", pg_text (result, row, column + 2));
    snprintf (out->error_message, sizeof (out->error_message), "%.*s", (int) length, message);
    pg_fixed (result, row, column + 8, out->secret, sizeof (out->secret));
    pg_fixed (result, row, column + 9, out->request_id, sizeof (out->request_id));
}
