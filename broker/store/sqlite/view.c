/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/view.h"

#include <stdlib.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/sqlite/sqlite_schema.h"
#include "timestamp.h"

enum { PAGE_US_MAX = 20 * 1000 }; /* A18 */

static const char BEGIN[] = "BEGIN";
static const char COMMIT[] = "COMMIT";

store_code_t view_open (view_t *self, const char *directory, gate_t *gate, const char *const *texts,
                        size_t count, store_error_t *error)
{
    *self =
        (view_t){.gate = gate, .arena = arena_new (ROW_UNPACKED_MAX), .page_us_max = PAGE_US_MAX};
    if (self->arena == NULL)
        abort ();
    const char *begin = BEGIN;
    const char *commit = COMMIT;
    gate_enter (gate); /* preparing reads the schema */
    store_code_t code = sql_open (&self->db, directory, SCHEMA_TABLES_FILE, false, error);
    if (code == STORE_OK) {
        self->statements = memory_zero (count, sizeof (sqlite3_stmt *));
        self->statements_count = count;
        code = sql_prepare (self->db, self->statements, texts, count, error);
    }
    if (code == STORE_OK)
        code = sql_prepare (self->db, self->row_statements, ROW_TEXTS, ROW_STATEMENTS, error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, &self->begin, &begin, 1, error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, &self->commit, &commit, 1, error);
    if (code == STORE_OK)
        code = names_open (&self->names, self->db, false, error);
    gate_leave (gate);
    if (code != STORE_OK)
        view_close (self);
    return code;
}

void view_close (view_t *self)
{
    names_close (&self->names);
    sql_finalize (self->statements, self->statements_count);
    sql_finalize (self->row_statements, ROW_STATEMENTS);
    sql_finalize (&self->begin, 1);
    sql_finalize (&self->commit, 1);
    free (self->statements);
    arena_free (self->arena);
    sql_close (&self->db);
    *self = (view_t){0};
}

store_code_t view_begin (view_t *self, store_error_t *error)
{
    gate_enter (self->gate);
    if (self->forgets != self->gate->forgets) {
        self->forgets = self->gate->forgets;
        names_forget (&self->names);
    }
    store_code_t code = sql_do (self->begin, "cannot be read", error);
    if (code != STORE_OK)
        gate_leave (self->gate);
    self->page_end_us = clock_us (CLOCK_MONOTONIC) + self->page_us_max;
    return code;
}

void view_end (view_t *self)
{
    for (size_t i = 0; i < self->statements_count; i++)
        sqlite3_reset (self->statements[i]);
    /* A read transaction holds nothing back; if ending it fails, the next begin says why. */
    if (sqlite3_step (self->commit) != SQLITE_DONE)
        sql_rollback (self->db);
    sqlite3_reset (self->commit);
    gate_leave (self->gate);
}

bool view_is_over (view_t *self)
{
    return gate_is_closed (self->gate) || clock_us (CLOCK_MONOTONIC) >= self->page_end_us;
}

sqlite3_stmt *view_statement (view_t *self, size_t index)
{
    sqlite3_reset (self->statements[index]);
    return self->statements[index];
}

store_code_t view_step (view_t *self, sqlite3_stmt *statement, bool *row, store_error_t *error)
{
    int rc = sqlite3_step (statement);
    *row = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return STORE_OK;
    return sql_fail (self->db, "cannot be read", error);
}

store_code_t view_go_on (view_t *self, store_code_t code, store_error_t *error)
{
    if (code != STORE_ERROR_DAMAGED && code != STORE_ERROR_CORRUPT)
        return code;
    error->code = STORE_ERROR_DAMAGED;
    damage_tell (self->damage, error);
    return STORE_OK;
}

store_code_t view_record (view_t *self, sqlite3_stmt *row, bool bodies, record_t **out,
                          store_error_t *error)
{
    row_reader_t reader = {&self->names, self->row_statements, self->arena};
    return row_read (&reader, row, bodies, out, error);
}
