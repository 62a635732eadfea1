/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/kind_rows.h"

#include "core/base/memory.h"

static void bind_key (sqlite3_stmt *statement, row_kind_t kind, const buf_t *key)
{
    sqlite3_bind_int (statement, 1, (int) kind);
    sqlite3_bind_blob64 (statement, 2, buf_bytes (key), buf_length (key), SQLITE_STATIC);
}

/* Columns of the texts. */
enum { KEY, SUM, BODY, EXPIRES_AT, KIND };

/* *body: NULL when it is empty. */
static store_code_t read_body (sqlite3_stmt *row, row_kind_t kind, buf_t **body,
                               int64_t *expires_at, store_error_t *error)
{
    const void *bytes = sqlite3_column_blob (row, BODY);
    size_t length = (size_t) sqlite3_column_bytes (row, BODY);
    uint64_t sum = row_sum_of_kind_row ((int) kind, sqlite3_column_blob (row, KEY),
                                        (size_t) sqlite3_column_bytes (row, KEY), bytes, length,
                                        sqlite3_column_int64 (row, EXPIRES_AT));
    *body = NULL;
    *expires_at = sqlite3_column_int64 (row, EXPIRES_AT);
    if (sum != (uint64_t) sqlite3_column_int64 (row, SUM))
        return store_fail (error, STORE_ERROR_DAMAGED, "%s: a row of kind %s is damaged",
                           sqlite3_db_filename (sqlite3_db_handle (row), "main"),
                           row_kind_name (kind));
    if (length > 0)
        *body = buf_new (bytes, length);
    return STORE_OK;
}

store_code_t kind_rows_find (view_t *view, sqlite3_stmt *statement, lookup_t *key,
                             store_error_t *error)
{
    key->row_body = NULL;
    key->row_expires_at = 0;
    bind_key (statement, key->row_kind, key->row_key);
    store_code_t code = view_step (view, statement, &key->row_found, error);
    if (code == STORE_OK && key->row_found)
        code = read_body (statement, key->row_kind, &key->row_body, &key->row_expires_at, error);
    sqlite3_reset (statement);
    return code;
}

/* The key that the next row stands behind; NULL: none. */
static const buf_t *key_before (const read_t *read)
{
    return read->rows_count > 0 ? read->rows[read->rows_count - 1].key : read->after;
}

static int compare_keys (const buf_t *a, const buf_t *b)
{
    row_t left = {.key = (buf_t *) a};
    row_t right = {.key = (buf_t *) b};
    return row_compare (&left, &right);
}

/* Takes the row that the statement stands on, or ends the read before it. */
static store_code_t take_row (view_t *view, sqlite3_stmt *statement, kind_page_t *page,
                              store_error_t *error)
{
    read_t *read = page->read;
    row_t row = {.kind = read->row_kind,
                 .key = buf_new (sqlite3_column_blob (statement, 0),
                                 (size_t) sqlite3_column_bytes (statement, 0))};
    const buf_t *before = key_before (read);
    page->done = !row_key_begins_with (row.key, read->prefix);
    bool is_new = !page->done && (before == NULL || compare_keys (row.key, before) > 0);
    if (is_new && (read->rows_count == read->limit || page->bytes >= ROWS_READ_BYTES_MAX)) {
        read->more = page->done = true;
        is_new = false;
    }
    store_code_t code = STORE_OK;
    if (is_new)
        code = read_body (statement, row.kind, &row.body, &row.expires_at, error);
    if (!is_new || code != STORE_OK) {
        row_drop (&row);
        return page->none_missing ? code : view_go_on (view, code, error);
    }
    page->bytes += buf_length (row.key) + buf_length (row.body);
    read->rows = memory_grow (read->rows, &page->capacity, read->rows_count, sizeof (row_t));
    read->rows[read->rows_count++] = row;
    return STORE_OK;
}

store_code_t kind_rows_page (view_t *view, sqlite3_stmt *statement, kind_page_t *page,
                             store_error_t *error)
{
    const read_t *read = page->read;
    const buf_t *before = key_before (read);
    bool from_prefix = before == NULL || compare_keys (before, read->prefix) < 0;
    size_t count = read->rows_count;
    store_code_t code = STORE_OK;
    bind_key (statement, read->row_kind, from_prefix ? read->prefix : before);
    do {
        bool row;
        code = view_step (view, statement, &row, error);
        page->done = !row;
        if (row)
            code = take_row (view, statement, page, error);
        /* The first one may be that before: only what comes behind it is a step. */
    } while (code == STORE_OK && !page->done &&
             (read->rows_count == count || !view_is_over (view)));
    sqlite3_reset (statement);
    return code;
}

/* The row that the statement stands on is found, and the place of the sweep. */
static store_code_t take_due (sqlite3_stmt *statement, store_sweep_t *sweep, size_t *capacity,
                              store_error_t *error)
{
    due_t *found = &sweep->found;
    size_t key_bytes = (size_t) sqlite3_column_bytes (statement, KEY);
    if (key_bytes > ROW_KEY_BYTES_MAX)
        return store_fail (error, STORE_ERROR_DAMAGED, "a row's key is longer than any");
    sweep->row_kind = (row_kind_t) sqlite3_column_int (statement, KIND);
    sweep->row_expires_at = sqlite3_column_int64 (statement, EXPIRES_AT);
    sweep->row_key.length = 0;
    row_key_bytes (&sweep->row_key, sqlite3_column_blob (statement, KEY), key_bytes);
    if (row_kind_name (sweep->row_kind) == NULL)
        return STORE_OK; /* of a newer version: it will know */
    row_t row = {.kind = sweep->row_kind};
    store_code_t code = read_body (statement, row.kind, &row.body, &row.expires_at, error);
    buf_drop (row.body);
    if (code != STORE_OK)
        return code;
    row.body = NULL;
    row.key = buf_new (sweep->row_key.bytes, key_bytes);
    found->rows = memory_grow (found->rows, capacity, found->rows_count, sizeof (row_t));
    found->rows[found->rows_count++] = row;
    return STORE_OK;
}

store_code_t kind_rows_due (view_t *view, sqlite3_stmt *statement, store_sweep_t *sweep, bool *more,
                            store_error_t *error)
{
    size_t capacity = 0;
    row_key_t place = sweep->row_key; /* what is bound stays as it is */
    store_code_t code = STORE_OK;
    sqlite3_bind_int (statement, 1, (int) sweep->row_kind);
    sqlite3_bind_blob64 (statement, 2, place.bytes, place.length, SQLITE_STATIC);
    sqlite3_bind_int64 (statement, 3, sweep->wall_ms);
    sqlite3_bind_int64 (statement, 4, sweep->row_expires_at);
    do {
        code = view_step (view, statement, more, error);
        if (code == STORE_OK && *more)
            code = view_go_on (view, take_due (statement, sweep, &capacity, error), error);
    } while (code == STORE_OK && *more && sweep->found.rows_count < sweep->limit &&
             !view_is_over (view));
    sqlite3_reset (statement);
    return code;
}
