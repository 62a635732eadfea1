/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the two files look like: identification, versions and migrations. */
#ifndef TASKMQ_STORE_SQLITE_SCHEMA_H
#define TASKMQ_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/sql.h"

#define SCHEMA_TABLES_FILE "taskmq.db"
#define SCHEMA_JOURNAL_FILE "journal.db" /* of earlier versions */

/* Opens a file for writing: checks whose it is, creates or migrates its schema, checks its
 * integrity where that is quick, sets synchronous = FULL and the write-ahead log, reads both back.
 * *created: the file was new or empty. */
store_code_t schema_open_tables (sqlite3 **out, const store_options_t *options, bool *created,
                                 store_error_t *error);
/* The same for the journal of an earlier version, which is locked for this connection alone. */
store_code_t schema_open_journal (sqlite3 **out, const store_options_t *options, bool *created,
                                  store_error_t *error);

/* One of the two files, to be read alone: nothing is written, not even by closing it, and a log
 * beside it stays. Nobody else may have it open. A missing file is STORE_ERROR_CORRUPT. */
store_code_t schema_open_unchanged (sqlite3 **out, const char *directory, bool tables,
                                    store_error_t *error);

/* application_id of a journal that is written without syncs. */
enum { SCHEMA_JOURNAL_UNSYNCED = 0x746d7175 }; /* "tmqu" */

#endif
