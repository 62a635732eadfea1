/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/files.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "store/journal/journal.h"
#include "store/sqlite/sqlite_schema.h"

enum { PATH_SIZE = 4096 };

static const char *const NAMES[FILES_MAX] = {SCHEMA_TABLES_FILE, SCHEMA_TABLES_FILE "-wal",
                                             JOURNAL_FILE};

static bool status_of (const char *directory, const char *name, struct stat *status)
{
    char path[PATH_SIZE];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    return stat (path, status) == 0;
}

void files_note (files_t *self, const char *directory)
{
    self->count = 0;
    for (size_t i = 0; i < FILES_MAX; i++) {
        struct stat status;
        if (!status_of (directory, NAMES[i], &status))
            continue;
        self->list[self->count].name = NAMES[i];
        self->list[self->count].device = status.st_dev;
        self->list[self->count++].inode = status.st_ino;
    }
}

store_code_t files_check (const files_t *self, const char *directory, store_error_t *error)
{
    for (size_t i = 0; i < self->count; i++) {
        struct stat status;
        const char *what = NULL;
        if (!status_of (directory, self->list[i].name, &status))
            what = errno == ENOENT || errno == ENOTDIR ? "removed" : NULL;
        else if (status.st_dev != self->list[i].device || status.st_ino != self->list[i].inode)
            what = "replaced";
        if (what != NULL)
            return store_fail (error, STORE_ERROR_IO,
                               "%s/%s was %s under the running broker: nothing more can be kept",
                               directory, self->list[i].name, what);
    }
    return STORE_OK;
}
