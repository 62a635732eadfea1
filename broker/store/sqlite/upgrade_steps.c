/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The steps between versions of the tables. A step is never changed: what it left wrong is mended
 * by another one. It uses nothing that a later version may change in its meaning, but sums and the
 * reading of rows, as far as they are the same since SCHEMA_TABLES_OLDEST.
 *
 * A row that is damaged stays as it is: it is told when it is read. */
#include "arena.h"
#include "store/sqlite/reshape.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/upgrade.h"

typedef struct rewrite {
    sqlite3_stmt *next;   /* the first row behind ?1 */
    sqlite3_stmt *change; /* of the row ?1: ?2 bytes, ?3 sum */
    row_reader_t reader;
    bytes_t bytes;
} rewrite_t;

/* Puts the new bytes of the current row into self->bytes, with their sum; false: it stays. */
typedef bool rewrite_row_t (rewrite_t *self, uint64_t *sum);

static store_code_t rewrite_one (rewrite_t *self, int64_t key, uint64_t sum, store_error_t *error)
{
    sqlite3_bind_int64 (self->change, 1, key);
    sqlite3_bind_int64 (self->change, 3, (sqlite3_int64) sum);
    store_code_t code = sql_bind_blob (self->change, 2, self->bytes.data, self->bytes.length,
                                       "a row cannot be changed", error);
    return code == STORE_OK ? sql_do (self->change, "a row cannot be changed", error) : code;
}

/* Goes through a table by its key, which no row changes. */
static store_code_t rewrite_all (rewrite_t *self, rewrite_row_t *each, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (int64_t key = INT64_MIN; code == STORE_OK;) {
        uint64_t sum = 0;
        sqlite3_bind_int64 (self->next, 1, key);
        int rc = sqlite3_step (self->next);
        if (rc == SQLITE_DONE)
            break;
        if (rc != SQLITE_ROW)
            return sql_fail (sqlite3_db_handle (self->next), "cannot be read", error);
        key = sqlite3_column_int64 (self->next, 0);
        bytes_clear (&self->bytes);
        bool changes = each (self, &sum);
        sqlite3_reset (self->next);
        if (changes)
            code = rewrite_one (self, key, sum, error);
    }
    sqlite3_reset (self->next);
    return code;
}

/* To 7: progress is numbers with decimals. */

static const char *const TASKS_6[] = {
    "SELECT number, ns, id, owner, queue, session, status, created_at, expires_at, leased,"
    " last_event, dedup_key, labels, payload_bytes, result_bytes, rest, sum, NULL FROM task"
    " WHERE number > ?1 ORDER BY number LIMIT 1",
    "UPDATE task SET rest = ?2, sum = ?3 WHERE number = ?1"};
static const char *const EVENTS_6[] = {"SELECT " ROW_EVENTS_COLUMNS
                                       " FROM event WHERE key > ?1 ORDER BY key LIMIT 1",
                                       "UPDATE event SET list = ?2, sum = ?3 WHERE key = ?1"};

static bool task_to_7 (rewrite_t *self, uint64_t *sum)
{
    store_error_t ignored;
    uint64_t before;
    const uint8_t *rest = sqlite3_column_blob (self->next, ROW_REST);
    size_t length = (size_t) sqlite3_column_bytes (self->next, ROW_REST);
    return row_sum_with (&self->reader, self->next, rest, length, &before, &ignored) == STORE_OK &&
           before == (uint64_t) sqlite3_column_int64 (self->next, ROW_SUM) &&
           reshape_record_6 (&self->bytes, rest, length) &&
           row_sum_with (&self->reader, self->next, self->bytes.data, self->bytes.length, sum,
                         &ignored) == STORE_OK;
}

static bool events_to_7 (rewrite_t *self, uint64_t *sum)
{
    store_error_t ignored;
    sqlite3_stmt *row = self->next;
    if (row_check_events (row, &ignored) != STORE_OK ||
        !reshape_events_6 (&self->bytes, sqlite3_column_blob (row, ROW_EVENTS_LIST),
                           (size_t) sqlite3_column_bytes (row, ROW_EVENTS_LIST)))
        return false;
    *sum = row_sum_of_events (
        sqlite3_column_int64 (row, ROW_EVENTS_KEY), sqlite3_column_int64 (row, ROW_EVENTS_POS),
        sqlite3_column_int64 (row, ROW_EVENTS_COUNT), sqlite3_column_int64 (row, ROW_EVENTS_AT),
        self->bytes.data, self->bytes.length);
    return true;
}

static store_code_t rewrite_table (sqlite3 *db, const char *const texts[2], rewrite_row_t *each,
                                   store_error_t *error)
{
    sqlite3_stmt *statements[2] = {NULL, NULL};
    sqlite3_stmt *reading[ROW_STATEMENTS] = {NULL};
    rewrite_t self = {.reader = {.statements = reading}, .bytes = BYTES_INIT};
    store_code_t code = sql_prepare (db, statements, texts, 2, error);
    if (code == STORE_OK)
        code = sql_prepare (db, reading, ROW_TEXTS, ROW_STATEMENTS, error);
    self.next = statements[0];
    self.change = statements[1];
    if (code == STORE_OK)
        code = rewrite_all (&self, each, error);
    sql_finalize (reading, ROW_STATEMENTS);
    sql_finalize (statements, 2);
    bytes_free (&self.bytes);
    return code;
}

static store_code_t step_to_7 (sqlite3 *db, store_error_t *error)
{
    store_code_t code = rewrite_table (db, TASKS_6, task_to_7, error);
    return code == STORE_OK ? rewrite_table (db, EVENTS_6, events_to_7, error) : code;
}

/* To 8: the task of which one is a part has a column, for its index. Version 7 had it in all but
 * its first days. What no time to live ends has an index, too. */

static store_code_t step_to_8 (sqlite3 *db, store_error_t *error)
{
    int64_t there = 0;
    store_code_t code =
        sql_number (db, "SELECT count (*) FROM pragma_table_info ('task') WHERE name = 'parent'",
                    &there, error);
    if (code == STORE_OK && there == 0)
        code = sql_run (db, "ALTER TABLE task ADD COLUMN parent BLOB", error);
    if (code == STORE_OK)
        code = sql_run (db,
                        "CREATE INDEX IF NOT EXISTS task_parent ON task (ns, parent)"
                        " WHERE parent IS NOT NULL;"
                        "CREATE INDEX task_lasting ON task (ns)"
                        " WHERE expires_at = 0 AND status >= 4 AND leased = 0",
                        error);
    return code;
}

/* To 9: tasks name blobs. The tables stay; but a version that does not know these rows would leave
 * their counts behind and the files to themselves, so it has to refuse them. */

static store_code_t step_to_9 (sqlite3 *db, store_error_t *error)
{
    (void) db;
    (void) error;
    return STORE_OK;
}

/* To 10: tasks have artifacts. The same as with 9: a version that does not know them would lose the
 * references of their blobs. */

static store_code_t step_to_10 (sqlite3 *db, store_error_t *error)
{
    (void) db;
    (void) error;
    return STORE_OK;
}

/* To 11: blobs count to the owners of the tasks that name them. What was named before counts to
 * nobody. A version that does not know these rows would leave them behind. */

static store_code_t step_to_11 (sqlite3 *db, store_error_t *error)
{
    (void) db;
    (void) error;
    return STORE_OK;
}

const upgrade_step_t UPGRADE_STEPS[] = {
    {7, step_to_7}, {8, step_to_8}, {9, step_to_9}, {10, step_to_10}, {11, step_to_11}};
const size_t UPGRADE_STEPS_COUNT = sizeof (UPGRADE_STEPS) / sizeof (UPGRADE_STEPS[0]);

_Static_assert(sizeof (UPGRADE_STEPS) / sizeof (UPGRADE_STEPS[0]) ==
                   SCHEMA_TABLES_VERSION - SCHEMA_TABLES_OLDEST,
               "there is a step to each version behind the oldest");
