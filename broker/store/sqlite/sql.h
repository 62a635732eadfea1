/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* SQLite as this room uses it: opening with our settings, one mapping of its errors, statements
 * prepared from a table of texts. Only the sqlite backend includes this. */
#ifndef TASKMQ_STORE_SQL_H
#define TASKMQ_STORE_SQL_H

#include <sqlite3.h>

#include "store/store_backend.h"

/* Maps the connection's last failure and says in one line what could not be done with
 * which file. */
store_code_t sql_fail (sqlite3 *db, const char *doing, store_error_t *error);

/* Opens directory/name. Writers create a missing file; readers cannot write at all. */
store_code_t sql_open (sqlite3 **out, const char *directory, const char *name, bool writer,
                       store_error_t *error);
/* To read a file that nobody writes and beside which no log stands: none is made. */
store_code_t sql_open_still (sqlite3 **out, const char *directory, const char *name,
                             store_error_t *error);
/* Accepts NULL. All statements must have been finalised. */
void sql_close (sqlite3 **db);

store_code_t sql_run (sqlite3 *db, const char *text, store_error_t *error);
/* The first column of the first row; 0 if there is none. */
store_code_t sql_number (sqlite3 *db, const char *text, int64_t *value, store_error_t *error);
/* Runs a PRAGMA and compares the text that it answers: what was not taken is an error. */
store_code_t sql_pragma (sqlite3 *db, const char *text, const char *wanted, store_error_t *error);
/* mode: SQLITE_CHECKPOINT_…; an incomplete one is STORE_ERROR_BUSY, except with PASSIVE. */
store_code_t sql_checkpoint (sqlite3 *db, int mode, store_error_t *error);

store_code_t sql_prepare (sqlite3 *db, sqlite3_stmt **out, const char *const *texts, size_t count,
                          store_error_t *error);
void sql_finalize (sqlite3_stmt **statements, size_t count);
/* Runs a statement that gives no row and resets it. */
store_code_t sql_do (sqlite3_stmt *statement, const char *doing, store_error_t *error);
/* Ends a transaction that failed; the first error is the one that counts. */
void sql_rollback (sqlite3 *db);

/* An empty text is stored as NULL, which costs nothing in the row. */
void sql_bind_text (sqlite3_stmt *statement, int index, const char *text);
/* Bytes that are as long as somebody made them: more than SQLite takes is an error that says so.
 * The bytes must live until the step. */
store_code_t sql_bind_blob (sqlite3_stmt *statement, int index, const void *bytes, size_t length,
                            const char *doing, store_error_t *error);
void sql_bind_body (sqlite3_stmt *statement, int index, const buf_t *body);
/* Never NULL; valid until the next step. */
const char *sql_column_text (sqlite3_stmt *statement, int column);
/* Copies exactly size bytes, or zeroes when the column holds something else. */
void sql_column_bytes (sqlite3_stmt *statement, int column, void *to, size_t size);

#endif
