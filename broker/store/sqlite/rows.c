/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/rows.h"

#include <stdlib.h>
#include <string.h>

#include "store/sqlite/journal_codec.h"

enum { LABELS, BODY };

const char *const ROW_TEXTS[ROW_STATEMENTS] = {
    [LABELS] = "SELECT key, value FROM label WHERE number = ?1 ORDER BY position",
    [BODY] = "SELECT bytes FROM body WHERE number = ?1 AND kind = ?2",
};

/* Record to row. */

static void bind_number (sqlite3_stmt *statement, row_column_t column, int64_t value)
{
    sqlite3_bind_int64 (statement, (int) column + 1, value);
}

static void bind_bytes (sqlite3_stmt *statement, row_column_t column, const uint8_t *bytes,
                        size_t size)
{
    sqlite3_bind_blob (statement, (int) column + 1, bytes, (int) size, SQLITE_STATIC);
}

static void bind_inline (sqlite3_stmt *statement, row_column_t column, const buf_t *body)
{
    sql_bind_body (statement, (int) column + 1,
                   buf_length (body) <= ROW_BODY_INLINE_MAX ? body : NULL);
}

void row_bind (sqlite3_stmt *statement, const record_t *record, const row_names_t *names,
               const buf_t *payload, const buf_t *result, bytes_t *rest)
{
    bytes_clear (rest);
    journal_pack_rest (rest, record);
    if (rest->failed)
        abort (); /* as all of the store: what was committed must be written */
    bind_number (statement, ROW_NUMBER, record->number);
    bind_number (statement, ROW_NS, names->ns);
    bind_bytes (statement, ROW_ID, record->id.bytes, sizeof (record->id.bytes));
    bind_number (statement, ROW_OWNER, names->owner);
    bind_number (statement, ROW_QUEUE, names->queue);
    if (names->session == 0)
        sqlite3_bind_null (statement, ROW_SESSION + 1);
    else
        bind_number (statement, ROW_SESSION, names->session);
    bind_number (statement, ROW_STATUS, record->status);
    bind_number (statement, ROW_CREATED_AT, record->created_at);
    bind_number (statement, ROW_EXPIRES_AT, record->expires_at);
    bind_number (statement, ROW_LEASED, record->leased);
    bind_number (statement, ROW_LAST_EVENT, (int64_t) record->last_seq);
    sql_bind_text (statement, ROW_DEDUP_KEY + 1, record->dedup_key);
    bind_number (statement, ROW_LABELS, (int64_t) record->labels_count);
    bind_number (statement, ROW_PAYLOAD_BYTES, record->payload_bytes);
    bind_number (statement, ROW_RESULT_BYTES, record->result_bytes);
    bind_bytes (statement, ROW_REST, rest->data, rest->length);
    bind_inline (statement, ROW_PAYLOAD, payload);
    bind_inline (statement, ROW_RESULT, result);
}

/* Row to record. */

static int64_t number_of (sqlite3_stmt *row, row_column_t column)
{
    return sqlite3_column_int64 (row, (int) column);
}

static uint32_t small_of (sqlite3_stmt *row, row_column_t column)
{
    return (uint32_t) sqlite3_column_int64 (row, (int) column);
}

static store_code_t row_damaged (sqlite3_stmt *row, const char *what, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_CORRUPT, "%s: %s of task %lld",
                       sqlite3_db_filename (sqlite3_db_handle (row), "main"), what,
                       (long long) number_of (row, ROW_NUMBER));
}

static void read_columns (sqlite3_stmt *row, record_t *record)
{
    record->number = number_of (row, ROW_NUMBER);
    sql_column_bytes (row, ROW_ID, record->id.bytes, sizeof (record->id.bytes));
    record->status = (tmq_status_t) small_of (row, ROW_STATUS);
    record->created_at = number_of (row, ROW_CREATED_AT);
    record->expires_at = number_of (row, ROW_EXPIRES_AT);
    record->leased = number_of (row, ROW_LEASED) != 0;
    record->last_seq = (uint64_t) number_of (row, ROW_LAST_EVENT);
    record->dedup_key = sql_column_text (row, ROW_DEDUP_KEY);
    record->payload_bytes = small_of (row, ROW_PAYLOAD_BYTES);
    record->result_bytes = small_of (row, ROW_RESULT_BYTES);
}

static store_code_t read_rest (arena_t *arena, sqlite3_stmt *row, record_t *record,
                               store_error_t *error)
{
    const uint8_t *bytes = sqlite3_column_blob (row, ROW_REST);
    size_t length = (size_t) sqlite3_column_bytes (row, ROW_REST);
    arena_reset (arena);
    if (journal_unpack_rest (record, arena, bytes, length))
        return STORE_OK;
    return row_damaged (row, "the packed fields are damaged", error);
}

static store_code_t read_names (names_t *names, sqlite3_stmt *row, record_t *record,
                                store_error_t *error)
{
    names_trim (names);
    store_code_t code =
        names_text (names, NAME_NAMESPACE, number_of (row, ROW_NS), &record->ns, error);
    if (code == STORE_OK)
        code = names_text (names, NAME_OWNER, number_of (row, ROW_OWNER), &record->owner, error);
    if (code == STORE_OK)
        code = names_text (names, NAME_QUEUE, number_of (row, ROW_QUEUE), &record->queue, error);
    if (code == STORE_OK)
        code =
            names_text (names, NAME_SESSION, number_of (row, ROW_SESSION), &record->session, error);
    return code;
}

static buf_t *blob_of (sqlite3_stmt *statement, int column)
{
    const void *bytes = sqlite3_column_blob (statement, column);
    return bytes == NULL ? NULL
                         : buf_new (bytes, (size_t) sqlite3_column_bytes (statement, column));
}

static store_code_t read_body (const row_reader_t *reader, sqlite3_stmt *row, row_column_t column,
                               int kind, uint32_t size, buf_t **out, store_error_t *error)
{
    *out = NULL;
    if (size == 0)
        return STORE_OK;
    if (size <= ROW_BODY_INLINE_MAX) {
        *out = blob_of (row, (int) column);
    } else {
        sqlite3_stmt *statement = reader->statements[BODY];
        sqlite3_bind_int64 (statement, 1, number_of (row, ROW_NUMBER));
        sqlite3_bind_int (statement, 2, kind);
        int rc = sqlite3_step (statement);
        if (rc == SQLITE_ROW)
            *out = blob_of (statement, 0);
        sqlite3_reset (statement);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return sql_fail (sqlite3_db_handle (statement), "a body cannot be read", error);
    }
    if (buf_length (*out) == size)
        return STORE_OK;
    buf_drop (*out);
    *out = NULL;
    return row_damaged (row, "a body is not as long as said", error);
}

/* The statement stays at its last row until record_new has copied the texts: so each label is
 * copied out at once. */
typedef struct labels {
    label_t list[TMQ_LABELS_MAX];
    char texts[TMQ_LABELS_MAX][TMQ_NAME_LENGTH_MAX + TMQ_LABEL_BYTES_MAX + 2];
    size_t count;
} labels_t;

static void label_copy (labels_t *labels, sqlite3_stmt *statement)
{
    char *text = labels->texts[labels->count];
    size_t key_room = strlen (sql_column_text (statement, 0)) + 1;
    size_t value_room = strlen (sql_column_text (statement, 1)) + 1;
    if (key_room + value_room > sizeof (labels->texts[0]))
        return; /* longer than was ever accepted */
    memcpy (text, sql_column_text (statement, 0), key_room);
    memcpy (text + key_room, sql_column_text (statement, 1), value_room);
    labels->list[labels->count++] = (label_t){text, text + key_room};
}

static store_code_t read_labels (const row_reader_t *reader, sqlite3_stmt *row, labels_t *labels,
                                 store_error_t *error)
{
    labels->count = 0;
    size_t wanted = (size_t) number_of (row, ROW_LABELS);
    if (wanted == 0)
        return STORE_OK;
    sqlite3_stmt *statement = reader->statements[LABELS];
    sqlite3_bind_int64 (statement, 1, number_of (row, ROW_NUMBER));
    int rc = sqlite3_step (statement);
    for (; rc == SQLITE_ROW && labels->count < TMQ_LABELS_MAX; rc = sqlite3_step (statement))
        label_copy (labels, statement);
    store_code_t code = STORE_OK;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = sql_fail (sqlite3_db_handle (statement), "labels cannot be read", error);
    else if (labels->count != wanted)
        code = row_damaged (row, "labels are missing", error);
    sqlite3_reset (statement);
    return code;
}

store_code_t row_read (const row_reader_t *reader, sqlite3_stmt *row, bool bodies, record_t **out,
                       store_error_t *error)
{
    record_t record = {0};
    labels_t labels;
    read_columns (row, &record);
    store_code_t code = read_rest (reader->arena, row, &record, error);
    if (code == STORE_OK)
        code = read_names (reader->names, row, &record, error);
    if (code == STORE_OK)
        code = read_labels (reader, row, &labels, error);
    if (code == STORE_OK && bodies)
        code = read_body (reader, row, ROW_PAYLOAD, ROW_BODY_PAYLOAD, record.payload_bytes,
                          &record.payload, error);
    if (code == STORE_OK && bodies)
        code = read_body (reader, row, ROW_RESULT, ROW_BODY_RESULT, record.result_bytes,
                          &record.result, error);
    if (code == STORE_OK) {
        record.labels = labels.list;
        record.labels_count = labels.count;
        *out = record_new (&record);
    }
    buf_drop (record.payload);
    buf_drop (record.result);
    return code;
}
