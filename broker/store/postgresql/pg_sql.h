/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The statements of the writer of the tables. Several rows come as arrays, one for each column. */
#ifndef TASKMQ_STORE_PG_SQL_H
#define TASKMQ_STORE_PG_SQL_H

enum pg_sql {
    PG_SQL_FENCE,
    PG_SQL_WRITTEN_READ,
    PG_SQL_WRITTEN,
    PG_SQL_NEWEST,
    PG_SQL_JOURNAL_READ,
    PG_SQL_JOURNAL_DELETE,
    PG_SQL_SPACE_FIND,
    PG_SQL_SPACE_ADD,
    PG_SQL_TASKS_DELETE,
    PG_SQL_ATTEMPTS_DELETE,
    PG_SQL_LABELS_DELETE,
    PG_SQL_TOMBSTONES,
    PG_SQL_TASKS,
    PG_SQL_RELABELLED,
    PG_SQL_LABELS,
    PG_SQL_MARKS,
    PG_SQL_ATTEMPTS,
    PG_SQL_ROWS_DELETE,
    PG_SQL_ROWS,
    PG_SQL_ROW_READ,
    PG_SQL_NEWEST_ID,
    PG_SQL_NEWEST_TASK,
    PG_SQL_EVENTS_OLDEST,
    PG_SQL_EVENTS_DELETE,
    PG_SQL_TOMBSTONES_OLDEST,
    PG_SQL_TOMBSTONES_DELETE,
    PG_SQL_SPACE_NEEDED,
    PG_SQL_SPACE_NAME,
    PG_SQL_SPACE_DELETE,
    PG_SQL_STATEMENTS
};

extern const char *const PG_SQL_TEXTS[PG_SQL_STATEMENTS];

/* Not prepared: they are COPY. */
extern const char PG_SQL_COPY_TASKS[];
extern const char PG_SQL_COPY_EVENTS[];

#endif
