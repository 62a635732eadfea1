/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "ids.h"
#include "store/checksum.h"
#include "store/journal/journal_codec.h"

enum { LABELS, BODY };

const char *const ROW_TEXTS[ROW_STATEMENTS] = {
    [LABELS] = "SELECT key, value FROM label WHERE number = ?1 AND position < " LABELS_END
               " ORDER BY position",
    [BODY] = "SELECT bytes, sum FROM body WHERE number = ?1 AND kind = ?2",
};

/* Sums. */

uint64_t row_sum_of_body (int64_t number, int kind, const void *bytes, size_t length)
{
    const int64_t numbers[] = {number, kind};
    return checksum_add_numbers (checksum_add (0, bytes, length), numbers, 2);
}

uint64_t row_sum_of_attempt (const attempt_t *attempt)
{
    const int64_t numbers[] = {attempt->number,   attempt->attempt, attempt->started_at,
                               attempt->ended_at, attempt->how,     attempt->error_code};
    uint64_t sum = checksum_add_numbers (0, numbers, sizeof (numbers) / sizeof (numbers[0]));
    sum = checksum_add (sum, attempt->secret, sizeof (attempt->secret));
    sum = checksum_add (sum, attempt->request_id, sizeof (attempt->request_id));
    sum = checksum_add_text (sum, attempt->worker);
    return checksum_add_text (sum, attempt->error_message);
}

enum { TOMBSTONE_WHY_SHIFT = 8 }; /* a policy stands above the code, in one column */

int64_t row_tombstone_code (const removal_t *removal)
{
    return (int64_t) removal->code | (int64_t) removal->why << TOMBSTONE_WHY_SHIFT;
}

void row_take_tombstone_code (removal_t *removal, int64_t column)
{
    removal->code = (tmq_code_t) (column & ((1 << TOMBSTONE_WHY_SHIFT) - 1));
    removal->why = (uint8_t) (column >> TOMBSTONE_WHY_SHIFT);
}

uint64_t row_sum_of_tombstone (const removal_t *removal, int64_t ns)
{
    const int64_t numbers[] = {ns, removal->number, row_tombstone_code (removal), removal->at};
    uint64_t sum = checksum_add_numbers (0, numbers, sizeof (numbers) / sizeof (numbers[0]));
    sum = checksum_add (sum, removal->id.bytes, sizeof (removal->id.bytes));
    return checksum_add_text (checksum_add_text (sum, removal->owner), removal->queue);
}

uint64_t row_sum_of_events (int64_t key, int64_t pos, int64_t count, int64_t at,
                            const uint8_t *list, size_t list_bytes)
{
    const int64_t numbers[] = {key, pos, count, at};
    return checksum_add_numbers (checksum_add (0, list, list_bytes), numbers, 4);
}

uint64_t row_sum_of_kind_row (int kind, const void *key, size_t key_bytes, const void *body,
                              size_t body_bytes, int64_t expires_at)
{
    const int64_t numbers[] = {kind, (int64_t) key_bytes, expires_at};
    uint64_t sum = checksum_add (checksum_add (0, body, body_bytes), key, key_bytes);
    return checksum_add_numbers (sum, numbers, 3);
}

bool row_read_attempt (sqlite3_stmt *row, attempt_t *out)
{
    *out = (attempt_t){.number = sqlite3_column_int64 (row, 0),
                       .attempt = (uint32_t) sqlite3_column_int64 (row, 1),
                       .started_at = sqlite3_column_int64 (row, 3),
                       .ended_at = sqlite3_column_int64 (row, 4),
                       .how = (tmq_event_kind_t) sqlite3_column_int (row, 5),
                       .error_code = sqlite3_column_int (row, 6)};
    snprintf (out->worker, sizeof (out->worker), "%s", sql_column_text (row, 2));
    snprintf (out->error_message, sizeof (out->error_message), "%s", sql_column_text (row, 7));
    sql_column_bytes (row, 8, out->secret, sizeof (out->secret));
    sql_column_bytes (row, 9, out->request_id, sizeof (out->request_id));
    return row_sum_of_attempt (out) == (uint64_t) sqlite3_column_int64 (row, 10);
}

store_code_t row_check_events (sqlite3_stmt *row, store_error_t *error)
{
    int64_t key = sqlite3_column_int64 (row, ROW_EVENTS_KEY);
    int64_t count = sqlite3_column_int64 (row, ROW_EVENTS_COUNT);
    uint64_t sum = row_sum_of_events (key, sqlite3_column_int64 (row, ROW_EVENTS_POS), count,
                                      sqlite3_column_int64 (row, ROW_EVENTS_AT),
                                      sqlite3_column_blob (row, ROW_EVENTS_LIST),
                                      (size_t) sqlite3_column_bytes (row, ROW_EVENTS_LIST));
    if (sum == (uint64_t) sqlite3_column_int64 (row, ROW_EVENTS_SUM))
        return STORE_OK;
    int64_t ns = key >> 42;
    uint64_t first = (uint64_t) key & ((UINT64_C (1) << 42) - 1);
    return store_fail (error, STORE_ERROR_DAMAGED,
                       "%s: the events from %llu of namespace %lld, %lld by its count, are damaged",
                       sqlite3_db_filename (sqlite3_db_handle (row), "main"),
                       (unsigned long long) first, (long long) ns, (long long) count);
}

/* The longest piece first, then the columns; names as their numbers, for they have sums of
 * their own. */
static uint64_t sum_of_task (const record_t *record, const row_names_t *names,
                             const tmq_id_t *parent, const uint8_t *rest, size_t rest_bytes)
{
    const int64_t numbers[] = {record->number,
                               names->ns,
                               names->owner,
                               names->queue,
                               names->session,
                               record->status,
                               record->created_at,
                               record->expires_at,
                               record->leased,
                               (int64_t) record->last_seq,
                               (int64_t) record->labels_count,
                               record->payload_bytes,
                               record->result_bytes};
    uint64_t sum = checksum_add (0, rest, rest_bytes);
    sum = checksum_add_numbers (sum, numbers, sizeof (numbers) / sizeof (numbers[0]));
    sum = checksum_add (sum, record->id.bytes, sizeof (record->id.bytes));
    sum = checksum_add_text (sum, record->dedup_key);
    for (size_t i = 0; i < record->labels_count; i++) {
        sum = checksum_add_text (sum, record->labels[i].key);
        sum = checksum_add_text (sum, record->labels[i].value);
    }
    return parent == NULL ? sum : checksum_add (sum, parent->bytes, sizeof (parent->bytes));
}

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

/* A body with its sum; NULL where there is none or where it stands in table body. */
static void bind_inline (sqlite3_stmt *statement, row_column_t column, row_column_t sum_column,
                         int64_t number, int kind, const buf_t *body)
{
    if (buf_length (body) > ROW_BODY_INLINE_MAX)
        body = NULL;
    sql_bind_body (statement, (int) column + 1, body);
    if (buf_length (body) == 0)
        sqlite3_bind_null (statement, (int) sum_column + 1);
    else
        bind_number (statement, sum_column,
                     (int64_t) row_sum_of_body (number, kind, buf_bytes (body), buf_length (body)));
}

/* The column is for its index: the parent itself stands in the extra. */
static void bind_parent (sqlite3_stmt *statement, const record_t *record, const row_names_t *names,
                         const bytes_t *rest)
{
    tmq_id_t parent;
    bool part = record->extra != NULL && extra_parent (record->extra, &parent);
    if (part)
        sqlite3_bind_blob (statement, ROW_PARENT + 1, parent.bytes, sizeof (parent.bytes),
                           SQLITE_TRANSIENT);
    else
        sqlite3_bind_null (statement, ROW_PARENT + 1);
    bind_number (
        statement, ROW_SUM,
        (int64_t) sum_of_task (record, names, part ? &parent : NULL, rest->data, rest->length));
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
    bind_parent (statement, record, names, rest);
    bind_inline (statement, ROW_PAYLOAD, ROW_PAYLOAD_SUM, record->number, ROW_BODY_PAYLOAD,
                 payload);
    bind_inline (statement, ROW_RESULT, ROW_RESULT_SUM, record->number, ROW_BODY_RESULT, result);
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

/* The id is what users know; where it is damaged itself the number helps. */
static store_code_t row_damaged (sqlite3_stmt *row, const char *what, store_error_t *error)
{
    tmq_id_t id;
    char text[ID_TEXT_SIZE];
    sql_column_bytes (row, ROW_ID, id.bytes, sizeof (id.bytes));
    id_format (&id, text);
    return store_fail (error, STORE_ERROR_DAMAGED, "%s: %s of task %s (number %lld) is damaged",
                       sqlite3_db_filename (sqlite3_db_handle (row), "main"), what, text,
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
    return row_damaged (row, "the row", error);
}

static store_code_t read_names (name_numbers_t *names, sqlite3_stmt *row, record_t *record,
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

/* The body in a column; NULL when it is not what was written. */
static buf_t *body_of (sqlite3_stmt *statement, int column, int sum_column, int64_t number,
                       int kind, uint32_t size)
{
    const void *bytes = sqlite3_column_blob (statement, column);
    size_t length = (size_t) sqlite3_column_bytes (statement, column);
    uint64_t sum = (uint64_t) sqlite3_column_int64 (statement, sum_column);
    if (bytes == NULL || length != size || sum != row_sum_of_body (number, kind, bytes, length))
        return NULL;
    return buf_new (bytes, length);
}

static store_code_t read_body (const row_reader_t *reader, sqlite3_stmt *row, int kind,
                               uint32_t size, buf_t **out, store_error_t *error)
{
    bool is_payload = kind == ROW_BODY_PAYLOAD;
    int64_t number = number_of (row, ROW_NUMBER);
    *out = NULL;
    if (size == 0)
        return STORE_OK;
    if (size <= ROW_BODY_INLINE_MAX) {
        *out = body_of (row, is_payload ? ROW_PAYLOAD : ROW_RESULT,
                        is_payload ? ROW_PAYLOAD_SUM : ROW_RESULT_SUM, number, kind, size);
    } else {
        sqlite3_stmt *statement = reader->statements[BODY];
        sqlite3_bind_int64 (statement, 1, number);
        sqlite3_bind_int (statement, 2, kind);
        int rc = sqlite3_step (statement);
        if (rc == SQLITE_ROW)
            *out = body_of (statement, 0, 1, number, kind, size);
        store_code_t code = STORE_OK;
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            code = sql_fail (sqlite3_db_handle (statement), "a body cannot be read", error);
        sqlite3_reset (statement);
        if (code != STORE_OK)
            return code;
    }
    return *out != NULL ? STORE_OK
                        : row_damaged (row, is_payload ? "the payload" : "the result", error);
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
        code = row_damaged (row, "a label", error);
    sqlite3_reset (statement);
    return code;
}

static uint64_t sum_of_row (sqlite3_stmt *row, const record_t *record, const uint8_t *rest,
                            size_t rest_bytes)
{
    const row_names_t names = {number_of (row, ROW_NS), number_of (row, ROW_OWNER),
                               number_of (row, ROW_QUEUE), number_of (row, ROW_SESSION)};
    tmq_id_t parent;
    bool part = sqlite3_column_type (row, ROW_PARENT) != SQLITE_NULL;
    sql_column_bytes (row, ROW_PARENT, parent.bytes, sizeof (parent.bytes));
    return sum_of_task (record, &names, part ? &parent : NULL, rest, rest_bytes);
}

static store_code_t check_row (sqlite3_stmt *row, const record_t *record, store_error_t *error)
{
    uint64_t sum = sum_of_row (row, record, sqlite3_column_blob (row, ROW_REST),
                               (size_t) sqlite3_column_bytes (row, ROW_REST));
    return sum == (uint64_t) number_of (row, ROW_SUM) ? STORE_OK
                                                      : row_damaged (row, "the row", error);
}

/* The columns; the labels stay in `labels`. */
static store_code_t read_with_labels (const row_reader_t *reader, sqlite3_stmt *row,
                                      record_t *record, labels_t *labels, store_error_t *error)
{
    read_columns (row, record);
    store_code_t code = read_labels (reader, row, labels, error);
    record->labels = labels->list;
    record->labels_count = labels->count;
    return code;
}

store_code_t row_sum_with (const row_reader_t *reader, sqlite3_stmt *row, const uint8_t *rest,
                           size_t rest_bytes, uint64_t *out, store_error_t *error)
{
    record_t record = {0};
    labels_t labels MEMORY_FILLED_BEFORE_READ;
    store_code_t code = read_with_labels (reader, row, &record, &labels, error);
    if (code == STORE_OK)
        *out = sum_of_row (row, &record, rest, rest_bytes);
    return code;
}

static store_code_t read_bodies (const row_reader_t *reader, sqlite3_stmt *row, record_t *record,
                                 store_error_t *error)
{
    store_code_t code =
        read_body (reader, row, ROW_BODY_PAYLOAD, record->payload_bytes, &record->payload, error);
    if (code == STORE_OK)
        code =
            read_body (reader, row, ROW_BODY_RESULT, record->result_bytes, &record->result, error);
    return code;
}

store_code_t row_read (const row_reader_t *reader, sqlite3_stmt *row, bool bodies, record_t **out,
                       store_error_t *error)
{
    record_t record = {0};
    labels_t labels MEMORY_FILLED_BEFORE_READ;
    store_code_t code = read_with_labels (reader, row, &record, &labels, error);
    if (code == STORE_OK)
        code = check_row (row, &record, error);
    if (code == STORE_OK)
        code = read_rest (reader->arena, row, &record, error);
    if (code == STORE_OK)
        code = read_names (reader->names, row, &record, error);
    if (code == STORE_OK && bodies)
        code = read_bodies (reader, row, &record, error);
    if (code == STORE_OK)
        *out = record_new (&record);
    else if (code == STORE_ERROR_CORRUPT)
        code = row_damaged (row, "a part", error); /* its name or a page: the others can be read */
    buf_drop (record.payload);
    buf_drop (record.result);
    buf_drop (record.extra);
    return code;
}
