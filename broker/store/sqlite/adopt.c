/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A copy becomes a store: the one in front of the broker that begins on it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/blob_row.h"
#include "store/archive/archive_history.h"
#include "store/journal/form.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/tables.h"
#include "store/sqlite/upgrade.h"

/* What is written in one transaction of a copy that nobody uses. */
enum { TASKS_AT_ONCE = 10000, BYTES_AT_ONCE = 32 * 1024 * 1024 };

static void tell (store_backup_t *found, const tables_meta_t *meta)
{
    found->generation = meta->generation;
    found->epoch = meta->epoch;
    found->batch = meta->written_batch;
    found->newest_ms = meta->newest_ms;
    found->tasks = meta->tasks;
}

static store_code_t begin_history (tables_t *tables, store_error_t *error)
{
    store_code_t code = tables_begin (tables, error);
    if (code == STORE_OK)
        code = tables_begin_history (tables, error);
    if (code == STORE_OK)
        code = tables_commit (tables, error);
    if (code != STORE_OK) {
        tables_rollback (tables);
        return code;
    }
    return tables_checkpoint_all (tables, error);
}

store_code_t store_look (const char *directory, store_error_t *error)
{
    sqlite3 *db;
    int64_t version;
    store_code_t code = schema_open_unchanged (&db, directory, true, &version, error);
    if (code != STORE_OK)
        return code;
    code = sql_pragma (db, "PRAGMA quick_check (1)", "ok", error);
    sql_close (&db);
    return code;
}

static void tell_blob (sqlite3_stmt *statement,
                       void (*blob) (void *context, const uint8_t *hash, uint64_t bytes),
                       void *context)
{
    uint64_t bytes;
    uint64_t tasks;
    row_t row =
        row_make (ROW_KIND_BLOB, sqlite3_column_blob (statement, 0),
                  (size_t) sqlite3_column_bytes (statement, 0), sqlite3_column_blob (statement, 1),
                  (size_t) sqlite3_column_bytes (statement, 1));
    if (blob_row_read (&row, &bytes, &tasks) && tasks > 0)
        blob (context, buf_bytes (row.key), bytes);
    row_drop (&row);
}

store_code_t store_look_blobs (const char *directory,
                               void (*blob) (void *context, const uint8_t *hash, uint64_t bytes),
                               void *context, store_error_t *error)
{
    static const char *const text = "SELECT key, body FROM row WHERE kind = ?1";
    sqlite3 *db;
    sqlite3_stmt *statement = NULL;
    int64_t version;
    int step = SQLITE_DONE;
    char log[PATH_MAX];
    struct stat status;
    snprintf (log, sizeof (log), "%s/" SCHEMA_TABLES_FILE "-wal", directory);
    const bool had_log = stat (log, &status) == 0;
    store_code_t code = schema_open_unchanged (&db, directory, true, &version, error);
    if (code != STORE_OK)
        return code;
    code = sql_prepare (db, &statement, &text, 1, error);
    if (code == STORE_OK) {
        sqlite3_bind_int (statement, 1, ROW_KIND_BLOB);
        while ((step = sqlite3_step (statement)) == SQLITE_ROW)
            tell_blob (statement, blob, context);
    }
    if (code == STORE_OK && step != SQLITE_DONE)
        code = sql_fail (db, "read the names of blobs", error);
    sql_finalize (&statement, 1);
    sql_close (&db);
    if (!had_log && stat (log, &status) == 0 && status.st_size == 0)
        unlink (log); /* SQLite makes an empty one */
    return code;
}

/* Batches of an archive, on their way into the tables. */
typedef struct taking {
    tables_t *tables;
    archive_history_t *history;
    store_more_t *more;
    dirty_t dirty;
    uint64_t epoch; /* of what is in dirty */
} taking_t;

static void tell_blobs (const store_more_t *more, const batch_t *batch)
{
    uint64_t bytes;
    uint64_t tasks;
    for (size_t i = 0; more->blob != NULL && i < batch->rows_count; i++)
        if (blob_row_read (&batch->rows[i], &bytes, &tasks))
            more->blob (more->context, buf_bytes (batch->rows[i].key), batch->rows[i].gone);
}

/* In one transaction, as at a start (A10). */
static store_code_t write_taken (taking_t *self, store_error_t *error)
{
    if (self->dirty.count == 0)
        return STORE_OK;
    dirty_sort (&self->dirty);
    store_code_t code = tables_begin (self->tables, error);
    for (uint64_t epoch = tables_meta (self->tables)->epoch;
         code == STORE_OK && epoch < self->epoch; epoch++)
        tables_start_epoch (self->tables);
    if (code == STORE_OK)
        code = tables_write (self->tables, &self->dirty, error);
    if (code == STORE_OK)
        code = tables_commit (self->tables, error);
    if (code != STORE_OK)
        tables_rollback (self->tables);
    dirty_free (&self->dirty);
    return code == STORE_OK ? tables_checkpoint_if_large (self->tables, error) : code;
}

static store_code_t take_batches (taking_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    while (code == STORE_OK) {
        uint64_t epoch = 0;
        batch_t *batch;
        code = archive_history_next (self->history, &batch, &epoch, error);
        if (code != STORE_OK || batch == NULL)
            break;
        if (epoch != self->epoch || dirty_tasks (&self->dirty) >= TASKS_AT_ONCE ||
            self->dirty.bytes >= BYTES_AT_ONCE)
            code = write_taken (self, error);
        self->epoch = epoch;
        self->more->batches++;
        tell_blobs (self->more, batch);
        dirty_add (&self->dirty, batch, 0);
    }
    return code == STORE_OK ? write_taken (self, error) : code;
}

static store_code_t take_archive (tables_t *tables, store_more_t *more, store_error_t *error)
{
    const tables_meta_t *meta = tables_meta (tables);
    const archive_place_t from = {meta->generation, meta->epoch, meta->written_batch,
                                  meta->newest_ms};
    taking_t taking = {.tables = tables, .more = more, .epoch = meta->epoch};
    store_code_t code =
        archive_history_open (&taking.history, more->archive, &from, more->until_ms, error);
    if (code == STORE_OK)
        code = take_batches (&taking, error);
    dirty_free (&taking.dirty);
    archive_history_close (&taking.history);
    more->epoch = meta->epoch;
    more->batch = meta->written_batch;
    more->newest_ms = meta->newest_ms;
    more->tasks = meta->tasks;
    return code;
}

store_code_t store_adopt_more (const char *directory, store_backup_t *found, store_more_t *more,
                               uint64_t *generation, store_error_t *error)
{
    char path[PATH_MAX];
    gate_t gate;
    tables_t *tables = NULL;
    store_options_t options = STORE_OPTIONS_INIT;
    options.directory = directory;
    snprintf (path, sizeof (path), "%s/" SCHEMA_TABLES_FILE, directory);
    if (access (path, F_OK) != 0)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: is missing", path);
    gate_init (&gate);
    int64_t from;
    store_code_t code = upgrade_run (&options, false, &from, error);
    if (code == STORE_OK)
        code = tables_open (&tables, &options, &gate, error);
    if (code == STORE_OK)
        code = tables_quick_check (tables, error);
    if (code == STORE_OK)
        tell (found, tables_meta (tables));
    if (code == STORE_OK && more != NULL)
        code = take_archive (tables, more, error);
    if (code == STORE_OK) {
        code = begin_history (tables, error);
        *generation = tables_meta (tables)->generation;
    }
    tables_free (&tables);
    gate_destroy (&gate);
    return code;
}

store_code_t store_adopt (const char *directory, store_backup_t *found, uint64_t *generation,
                          store_error_t *error)
{
    return store_adopt_more (directory, found, NULL, generation, error);
}

/* A journal is of one history. That of a database that was closed has nothing that the tables lack,
 * and a crash in between finds that it is not needed. */
store_code_t store_begin_history (const char *directory, uint64_t *generation, store_error_t *error)
{
    char path[PATH_MAX];
    store_backup_t found;
    snprintf (path, sizeof (path), "%s/" JOURNAL_FILE, directory);
    if (unlink (path) != 0 && errno != ENOENT)
        return store_fail (error, STORE_ERROR_ACCESS, "cannot remove %s: %s", path,
                           strerror (errno));
    return store_adopt (directory, &found, generation, error);
}
