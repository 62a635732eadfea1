/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the two files look like: identification, versions and migrations. */
#ifndef TASKMQ_STORE_SQLITE_SCHEMA_H
#define TASKMQ_STORE_SQLITE_SCHEMA_H

#include "store/sqlite/sql.h"

#define SCHEMA_TABLES_FILE "taskmq.db"
#define SCHEMA_JOURNAL_FILE "journal.db" /* of earlier versions */

/* The versions of the two files: as they are made, and the oldest that a start brings to that.
 * Version 6 is the oldest that anybody outside of the development can have had. */
enum {
    SCHEMA_TABLES_VERSION = 11,
    SCHEMA_TABLES_OLDEST = 6,
    SCHEMA_JOURNAL_VERSION = 3,
    SCHEMA_JOURNAL_OLDEST = 2
};

/* Where an upgrade leaves what was before it; the number is that of its first step. */
#define SCHEMA_COPIES "backups"
#define SCHEMA_COPY_FORMAT SCHEMA_COPIES "/before-schema-%d"

/* Opens the tables for writing: checks whose they are, creates them, checks their integrity where
 * that is quick, sets synchronous = FULL and the write-ahead log, reads both back. *created: the
 * file was new or empty. They have the newest version: upgrade_run comes before. */
store_code_t schema_open_tables (sqlite3 **out, const store_options_t *options, bool *created,
                                 store_error_t *error);
/* The version of the tables in this directory, 0 when there are none; changes nothing. */
store_code_t schema_tables_version (const char *directory, int64_t *version, store_error_t *error);
/* As schema_open_tables, for tables of an earlier version. */
store_code_t schema_open_to_upgrade (sqlite3 **out, const char *directory, store_error_t *error);
/* The journal of an earlier version, to be read: nothing is written, and where it has no log none
 * is made. It is looked through first. *version: 0, nothing was ever written to it. */
store_code_t schema_open_journal (sqlite3 **out, const char *directory, bool has_log,
                                  int64_t *version, store_error_t *error);

/* One of the two files, to be read alone: nothing is written, not even by closing it, and a log
 * beside it stays. Nobody else may have it open. A missing file is STORE_ERROR_CORRUPT. *version
 * is one that can be read, perhaps an earlier one. */
store_code_t schema_open_unchanged (sqlite3 **out, const char *directory, bool tables,
                                    int64_t *version, store_error_t *error);

/* application_id of a journal that is written without syncs. */
enum { SCHEMA_JOURNAL_UNSYNCED = 0x746d7175 }; /* "tmqu" */

#endif
