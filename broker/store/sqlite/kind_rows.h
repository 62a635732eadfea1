/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Table row: the rows of all kinds (core/data/row.h), found by key and read in order. */
#ifndef TASKMQ_STORE_KIND_ROWS_H
#define TASKMQ_STORE_KIND_ROWS_H

#include "store/sqlite/view.h"

/* Texts for the statements of a view. */
#define KIND_ROWS_FIND "SELECT key, sum, body, expires_at FROM row WHERE kind = ?1 AND key = ?2"
#define KIND_ROWS_FROM                                                                             \
    "SELECT key, sum, body, expires_at FROM row WHERE kind = ?1 AND key >= ?2 ORDER BY key"
#define KIND_ROWS_DUE                                                                              \
    "SELECT key, sum, body, expires_at, kind FROM row"                                             \
    " WHERE expires_at > 0 AND expires_at <= ?3 AND (expires_at, kind, key) > (?4, ?1, ?2)"        \
    " ORDER BY expires_at, kind, key"

/* Answers a LOOKUP_ROW by KIND_ROWS_FIND, inside a transaction. */
store_code_t kind_rows_find (view_t *view, sqlite3_stmt *statement, lookup_t *key,
                             store_error_t *error);

/* A READ_ROWS on its way. */
typedef struct kind_page {
    read_t *read;
    size_t capacity;   /* of its rows */
    size_t bytes;      /* of their keys and bodies */
    bool none_missing; /* a damaged row is an error; else it is told, and left out */
    bool done;
} kind_page_t;

/* Goes on behind the rows that the read has, by KIND_ROWS_FROM inside a transaction, until it is
 * answered or the page is over. */
store_code_t kind_rows_page (view_t *view, sqlite3_stmt *statement, kind_page_t *page,
                             store_error_t *error);

/* Finds rows that are due, by KIND_ROWS_DUE inside a transaction, until there are enough, no more,
 * or the page is over. *more: there may be others. What is damaged is told and passed over. */
store_code_t kind_rows_due (view_t *view, sqlite3_stmt *statement, store_sweep_t *sweep, bool *more,
                            store_error_t *error);

#endif
