/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/journal/journal.h"
#include "store/sqlite/sqlite_schema.h"

enum { CHUNK_BYTES = 1024 * 1024, NAME_ROOM = 64, FILE_PATH_SIZE = PATH_MAX + 2 * NAME_ROOM };

/* All that an earlier version needs to go on from where it was. */
static const char *const COPIED[] = {SCHEMA_TABLES_FILE, SCHEMA_TABLES_FILE "-wal", JOURNAL_FILE,
                                     SCHEMA_JOURNAL_FILE, SCHEMA_JOURNAL_FILE "-wal"};

typedef struct copying {
    const device_t *device;
    const char *directory;
    char parent[PATH_MAX + NAME_ROOM]; /* backups */
    char made[PATH_MAX + NAME_ROOM];   /* … and in it the copy while it grows */
    char whole[PATH_MAX + NAME_ROOM];  /* … and when it is whole */
} copying_t;

static store_code_t fail (const char *path, const char *what, store_error_t *error)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return store_fail (error, full ? STORE_ERROR_FULL : STORE_ERROR_IO,
                       "%s: %s, which an upgrade needs to copy the data first: %s", path, what,
                       strerror (errno));
}

static store_code_t copy_bytes (const copying_t *self, int from, int to, const char *path,
                                store_error_t *error)
{
    int64_t size = self->device->size (self->device, from);
    store_code_t code = size < 0 ? fail (path, "cannot be read", error) : STORE_OK;
    uint8_t *chunk = memory_alloc (CHUNK_BYTES);
    for (int64_t at = 0; code == STORE_OK && at < size; at += CHUNK_BYTES) {
        size_t length = size - at < CHUNK_BYTES ? (size_t) (size - at) : CHUNK_BYTES;
        if (self->device->read (self->device, from, chunk, length, (uint64_t) at) != 0 ||
            self->device->write (self->device, to, chunk, length, (uint64_t) at, false) != 0)
            code = fail (path, "cannot be written", error);
    }
    free (chunk);
    if (code == STORE_OK && self->device->sync (self->device, to) != 0)
        code = fail (path, "cannot be synced", error);
    return code;
}

static store_code_t copy_file (const copying_t *self, const char *name, store_error_t *error)
{
    char path[FILE_PATH_SIZE];
    snprintf (path, sizeof (path), "%s/%s", self->directory, name);
    int from = self->device->open (self->device, path, O_RDONLY);
    if (from < 0 && errno == ENOENT)
        return STORE_OK;
    if (from < 0)
        return fail (path, "cannot be read", error);
    snprintf (path, sizeof (path), "%s/%s", self->made, name);
    int to = self->device->open (self->device, path, O_WRONLY | O_CREAT | O_EXCL);
    store_code_t code =
        to < 0 ? fail (path, "cannot be made", error) : copy_bytes (self, from, to, path, error);
    if (to >= 0)
        self->device->close (self->device, to);
    self->device->close (self->device, from);
    return code;
}

/* Of one that was left by a kill too. What is not ours stays, and is in the way. */
static store_code_t remove_copy (const copying_t *self, const char *directory, store_error_t *error)
{
    for (size_t i = 0; i < sizeof (COPIED) / sizeof (COPIED[0]); i++) {
        char path[FILE_PATH_SIZE];
        snprintf (path, sizeof (path), "%s/%s", directory, COPIED[i]);
        if (self->device->remove (self->device, path) != 0 && errno != ENOENT && errno != ENOTDIR)
            return fail (path, "cannot be removed", error);
    }
    if (rmdir (directory) != 0 && errno != ENOENT)
        return fail (directory, "cannot be removed", error);
    return STORE_OK;
}

static store_code_t make_directory (const char *path, bool may_be_there, store_error_t *error)
{
    if (mkdir (path, 0700) == 0 || (may_be_there && errno == EEXIST))
        return STORE_OK;
    return fail (path, "cannot be made", error);
}

static store_code_t sync_directory (const copying_t *self, const char *path, store_error_t *error)
{
    return self->device->sync_directory (self->device, path) == 0
               ? STORE_OK
               : fail (path, "cannot be synced", error);
}

static store_code_t make_copy (const copying_t *self, store_error_t *error)
{
    store_code_t code = make_directory (self->made, false, error);
    for (size_t i = 0; code == STORE_OK && i < sizeof (COPIED) / sizeof (COPIED[0]); i++)
        code = copy_file (self, COPIED[i], error);
    return code == STORE_OK ? sync_directory (self, self->made, error) : code;
}

/* An older copy of the same name goes: what it was made for did not happen, or was taken back. */
static store_code_t copy_all (const copying_t *self, store_error_t *error)
{
    store_error_t ignored;
    store_code_t code = make_directory (self->parent, true, error);
    if (code == STORE_OK)
        code = sync_directory (self, self->directory, error);
    if (code == STORE_OK)
        code = remove_copy (self, self->made, error);
    if (code == STORE_OK)
        code = make_copy (self, error);
    if (code != STORE_OK) {
        remove_copy (self, self->made, &ignored); /* gives its space back */
        return code;
    }
    code = remove_copy (self, self->whole, error);
    if (code == STORE_OK && self->device->rename (self->device, self->made, self->whole) != 0)
        code = fail (self->whole, "cannot be made", error);
    return code == STORE_OK ? sync_directory (self, self->parent, error) : code;
}

static store_code_t copy_before (const store_options_t *options, int step, store_error_t *error)
{
    copying_t *self = memory_zero (1, sizeof (*self));
    self->device = options->journal_device != NULL ? options->journal_device : &device_files;
    self->directory = options->directory;
    snprintf (self->parent, sizeof (self->parent), "%s/" SCHEMA_COPIES, options->directory);
    snprintf (self->whole, sizeof (self->whole), "%s/" SCHEMA_COPY_FORMAT, options->directory,
              step);
    snprintf (self->made, sizeof (self->made), "%s/" SCHEMA_COPY_FORMAT ".new", options->directory,
              step);
    store_code_t code = copy_all (self, error);
    free (self);
    return code;
}

static store_code_t run_step (sqlite3 *db, const upgrade_step_t *step, store_error_t *error)
{
    char version[48];
    snprintf (version, sizeof (version), "PRAGMA user_version = %d", step->to);
    store_code_t code = sql_run (db, "BEGIN IMMEDIATE", error);
    if (code == STORE_OK)
        code = step->run (db, error);
    if (code == STORE_OK)
        code = sql_run (db, version, error);
    if (code == STORE_OK)
        code = sql_run (db, "COMMIT", error);
    if (code != STORE_OK)
        sql_rollback (db);
    return code;
}

static store_code_t run_steps (const char *directory, int64_t version, store_error_t *error)
{
    sqlite3 *db;
    store_code_t code = schema_open_to_upgrade (&db, directory, error);
    if (code != STORE_OK)
        return code;
    for (size_t i = 0; code == STORE_OK && i < UPGRADE_STEPS_COUNT; i++)
        if (UPGRADE_STEPS[i].to > version)
            code = run_step (db, &UPGRADE_STEPS[i], error);
    if (code == STORE_OK)
        code = sql_checkpoint (db, SQLITE_CHECKPOINT_TRUNCATE, error);
    sqlite3_db_config (db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    sql_close (&db);
    return code;
}

store_code_t upgrade_run (const store_options_t *options, bool copies, int64_t *from,
                          store_error_t *error)
{
    int64_t version;
    *from = 0;
    store_code_t code = schema_tables_version (options->directory, &version, error);
    if (code != STORE_OK || version == 0 || version == SCHEMA_TABLES_VERSION)
        return code;
    if (copies)
        code = copy_before (options, (int) version + 1, error);
    if (code == STORE_OK)
        code = run_steps (options->directory, version, error);
    if (code == STORE_OK)
        *from = version;
    return code;
}
