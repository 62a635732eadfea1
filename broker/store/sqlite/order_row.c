/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/order_row.h"

#include "core/data/row.h"
#include "store/sqlite/rows.h"

enum { FIND, NEWEST, ALL, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [FIND] = ORDER_READ,
    [NEWEST] = "SELECT number, created_at FROM task ORDER BY number DESC LIMIT 1",
    [ALL] = "SELECT number, created_at FROM task ORDER BY number",
};

void order_bind (sqlite3_stmt *statement)
{
    sqlite3_bind_int (statement, 1, ROW_KIND_ORDER);
    sqlite3_bind_blob (statement, 2, ORDER_KEY, sizeof (ORDER_KEY), SQLITE_STATIC);
}

bool order_unpack_row (order_t *out, sqlite3_stmt *row)
{
    const uint8_t *body = sqlite3_column_blob (row, 0);
    size_t bytes = (size_t) sqlite3_column_bytes (row, 0);
    uint64_t sum = row_sum_of_kind_row (ROW_KIND_ORDER, ORDER_KEY, sizeof (ORDER_KEY), body, bytes,
                                        sqlite3_column_int64 (row, 2));
    return sum == (uint64_t) sqlite3_column_int64 (row, 1) && order_unpack (out, body, bytes);
}

static store_code_t go_through (order_t *out, sqlite3_stmt *statement, store_error_t *error)
{
    int rc;
    while ((rc = sqlite3_step (statement)) == SQLITE_ROW)
        order_add (out, sqlite3_column_int64 (statement, 0), sqlite3_column_int64 (statement, 1));
    if (rc == SQLITE_DONE)
        return STORE_OK;
    return sql_fail (sqlite3_db_handle (statement), "cannot be read", error);
}

static store_code_t find (order_t *out, bool *known, sqlite3_stmt *statements[STATEMENTS],
                          store_error_t *error)
{
    order_bind (statements[FIND]);
    int rc = sqlite3_step (statements[FIND]);
    *known = rc == SQLITE_ROW && order_unpack_row (out, statements[FIND]);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sql_fail (sqlite3_db_handle (statements[FIND]), "cannot be read", error);
    if (!*known)
        return go_through (out, statements[ALL], error);
    order_t written = *out;
    store_code_t code = go_through (out, statements[NEWEST], error);
    out->first = written.first;
    out->last = written.last;
    return code;
}

store_code_t order_find (order_t *out, bool *known, sqlite3 *db, store_error_t *error)
{
    sqlite3_stmt *statements[STATEMENTS] = {NULL};
    *out = (order_t){0};
    *known = false;
    store_code_t code = sql_prepare (db, statements, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        code = find (out, known, statements, error);
    sql_finalize (statements, STATEMENTS);
    return code;
}
