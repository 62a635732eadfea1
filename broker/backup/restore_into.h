/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A restore into a database. What was unpacked and made ready in the scratch directory goes there
 * in one transaction. Before its commit the files of the data directory are in their places and the
 * scratch directory says which history it is: so whoever comes behind a crash, or behind a commit
 * whose answer was lost, finds out whether the database has it. */
#ifndef TASKMQ_BACKUP_RESTORE_INTO_H
#define TASKMQ_BACKUP_RESTORE_INTO_H

#include <stdbool.h>
#include <stdint.h>

#include "store/postgresql/database_options.h"
#include "store/store.h"

#define RESTORE_GENERATION "generation" /* a file of the scratch directory */

typedef struct restore_into {
    const database_options_t *database;
    const char *directory; /* of the data */
    const char *scratch;
    int scratch_fd;
    uint64_t generation;
    /* The files of the directory go to their places. */
    store_code_t (*place) (void *context, store_error_t *error);
    void *context;
    bool unknown; /* answer: the commit may have landed */
} restore_into_t;

/* Before anything is done: *there: a restore before this one, of which the scratch directory tells,
 * has filled the database. Else that is empty, or this is an error. */
store_code_t restore_into_look (const restore_into_t *self, bool *there, store_error_t *error);
store_code_t restore_into_run (restore_into_t *self, store_error_t *error);

#endif
