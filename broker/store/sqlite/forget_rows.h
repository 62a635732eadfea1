/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How taskmq.db finds and removes what is forgotten (store/forget.h), in the transaction of
 * the writer. */
#ifndef TASKMQ_STORE_FORGET_ROWS_H
#define TASKMQ_STORE_FORGET_ROWS_H

#include "store/forget.h"
#include "store/sqlite/sql.h"

enum { FORGET_ROWS_STATEMENTS = 9 };

typedef struct forget_rows {
    sqlite3 *db;
    sqlite3_stmt *statements[FORGET_ROWS_STATEMENTS];
} forget_rows_t;

/* Of a forget_rows_t. */
extern const forget_calls_t forget_rows_calls;

store_code_t forget_rows_open (forget_rows_t *self, sqlite3 *db, store_error_t *error);
void forget_rows_close (
    forget_rows_t *self); /* before the connection; accepts an all-zero object */

#endif
