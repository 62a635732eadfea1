/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A copy becomes a store: the one in front of the broker that begins on it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/journal/form.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/tables.h"
#include "store/sqlite/upgrade.h"

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

store_code_t store_adopt (const char *directory, store_backup_t *found, uint64_t *generation,
                          store_error_t *error)
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
    if (code == STORE_OK) {
        tell (found, tables_meta (tables));
        code = begin_history (tables, error);
        *generation = tables_meta (tables)->generation;
    }
    tables_free (&tables);
    gate_destroy (&gate);
    return code;
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
