/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/copy.h"
#include "timestamp.h"

#include <time.h>

store_code_t copy_begin (copy_t *out, sqlite3 *source, const char *path, store_error_t *error)
{
    *out = (copy_t){0};
    if (sqlite3_open_v2 (path, &out->db,
                         SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READWRITE |
                             SQLITE_OPEN_CREATE,
                         NULL) != SQLITE_OK) {
        copy_end (out);
        return store_fail (error, STORE_ERROR_ACCESS, "%s: cannot be made", path);
    }
    /* A copy that is not finished is thrown away, and one that is, is synced as a whole. */
    store_code_t code =
        sql_run (out->db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", error);
    if (code == STORE_OK) {
        out->backup = sqlite3_backup_init (out->db, "main", source, "main");
        if (out->backup == NULL)
            code = sql_fail (out->db, "cannot be copied", error);
    }
    if (code != STORE_OK)
        copy_end (out);
    return code;
}

bool copy_is_nearly_done (const copy_t *self)
{
    return self->backup == NULL || sqlite3_backup_remaining (self->backup) <= COPY_STEP_PAGES;
}

store_code_t copy_step (copy_t *self, store_error_t *error)
{
    int64_t start_us = clock_us (CLOCK_MONOTONIC);
    int rc = sqlite3_backup_step (self->backup, COPY_STEP_PAGES);
    int64_t us = clock_us (CLOCK_MONOTONIC) - start_us;
    self->steps++;
    if (us > self->step_us_max)
        self->step_us_max = us;
    self->done = rc == SQLITE_DONE;
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        return STORE_OK;
    return store_fail (error, (rc & 0xff) == SQLITE_FULL ? STORE_ERROR_FULL : STORE_ERROR_IO,
                       "the copy cannot be written: %s", sqlite3_errstr (rc));
}

void copy_end (copy_t *self)
{
    if (self->backup != NULL)
        sqlite3_backup_finish (self->backup);
    self->backup = NULL;
    if (self->db != NULL)
        sqlite3_close (self->db);
    self->db = NULL;
}
