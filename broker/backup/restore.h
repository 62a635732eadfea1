/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Makes a data directory of a backup, or fills an empty database with it (restore_into.h); then the
 * directory has what a broker keeps beside that: its key, its access file, large bodies.
 *
 * All of it happens below DIR/.restoring until everything is known to be whole; only then do the
 * files move to their places, the tables last. What is refused leaves the directory as it was, and
 * what a crash leaves is known by DIR/.restoring: no broker starts on it, and a restore begins
 * again. No name is taken from the archive but those that a backup may hold. */
#ifndef TASKMQ_BACKUP_RESTORE_H
#define TASKMQ_BACKUP_RESTORE_H

#include "backup/manifest.h"
#include "backup/restore_blobs.h"
#include "store/store.h"

#define RESTORE_SCRATCH ".restoring"

/* What the data becomes: the backup, and what an archive has behind it, up to a moment. */
typedef struct restore_from {
    const char *file;                    /* of the backup */
    const char *archive;                 /* directory; NULL: none */
    int64_t until_ms;                    /* wall; INT64_MAX: all that the archive has */
    const struct database_options *into; /* the database; NULL: all of it goes into the directory */
} restore_from_t;

typedef struct restore_report {
    bool again; /* a restore before this one was interrupted … */
    bool ended; /* … behind its end: the database had it, and the rest of this report is empty */
    manifest_t manifest;
    uint64_t generation;          /* the new one */
    store_more_t more;            /* what was taken of the archive; all zero without one */
    uint64_t blobs_missing;       /* that its tasks need, and that neither has, … */
    restore_blobs_report_t blobs; /* … beside those that cannot be read */
} restore_report_t;

/* directory: must be empty or missing; then it is made. STORE_ERROR_FOREIGN: the file is no backup
 * of ours, or the directory is not empty; …_CORRUPT: the backup is damaged; …_NEWER: made by a
 * newer version. As store_adopt_more for the archive, as database_restore for a database. */
store_code_t restore_run (const restore_from_t *from, const char *directory, restore_report_t *out,
                          store_error_t *error);

#endif
