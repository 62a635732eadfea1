/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A read-only connection to taskmq.db with its gate: what point reads, long reads and the sweep
 * have in common. Used by one thread at a time. */
#ifndef TASKMQ_STORE_VIEW_H
#define TASKMQ_STORE_VIEW_H

#include "store/sqlite/damage.h"
#include "store/sqlite/gate.h"
#include "store/sqlite/rows.h"

typedef struct view {
    sqlite3 *db;
    gate_t *gate;
    sqlite3_stmt **statements; /* from the texts of the user */
    size_t statements_count;
    sqlite3_stmt *row_statements[ROW_STATEMENTS];
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    name_numbers_t names;
    arena_t *arena;       /* for the row being read */
    uint32_t page_us_max; /* how long a transaction lasts */
    int64_t page_end_us;
    unsigned planted_bug; /* test-only: see core/base/planted.h */
    damage_t *damage;     /* where damaged rows are told; NULL: nowhere */
    unsigned forgets;     /* the gate's, when names were remembered */
} view_t;

/* Prepares texts for view->statements. */
store_code_t view_open (view_t *self, const char *directory, gate_t *gate, const char *const *texts,
                        size_t count, store_error_t *error);
void view_close (view_t *self); /* accepts an all-zero object */

/* A read transaction, at most 20 ms long: see view_is_over. Each begin needs an end, also after a
 * failure in between; a begin that fails needs none. */
store_code_t view_begin (view_t *self, store_error_t *error);
void view_end (view_t *self);
/* The transaction has lasted long enough, or the store thread waits at the gate. */
bool view_is_over (view_t *self);

/* Resets the statement of that index, to be bound and stepped. */
sqlite3_stmt *view_statement (view_t *self, size_t index);
/* Steps: *row tells whether there is one. */
store_code_t view_step (view_t *self, sqlite3_stmt *statement, bool *row, store_error_t *error);
/* The rest of a read can go on: tells of a row, or of a page, that is damaged (in error) and
 * returns STORE_OK; any other code is returned as it is. */
store_code_t view_go_on (view_t *self, store_code_t code, store_error_t *error);
/* As row_read. */
store_code_t view_record (view_t *self, sqlite3_stmt *row, bool bodies, record_t **out,
                          store_error_t *error);

#endif
