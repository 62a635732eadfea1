/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The database's files as they were opened. SQLite goes on with a file that somebody deleted or
 * replaced: everything works, and what it writes then is lost at the end of the process. */
#ifndef TASKMQ_STORE_SQLITE_FILES_H
#define TASKMQ_STORE_SQLITE_FILES_H

#include <sys/types.h>

#include "store/error.h"

enum { FILES_MAX = 3 };

/* By path, never through a descriptor: closing one of our own would drop SQLite's locks. */
typedef struct files {
    struct {
        const char *name;
        dev_t device;
        ino_t inode;
    } list[FILES_MAX];
    size_t count;
} files_t;

/* Notes those of the directory's files that are there, once all of them are open. */
void files_note (files_t *self, const char *directory);
/* STORE_ERROR_IO if one of them was removed or replaced since. Any thread. */
store_code_t files_check (const files_t *self, const char *directory, store_error_t *error);

#endif
