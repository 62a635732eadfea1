/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Blobs that the batches of an archive name, brought into a directory that is being restored. */
#ifndef TASKMQ_BACKUP_RESTORE_BLOBS_H
#define TASKMQ_BACKUP_RESTORE_BLOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/archive/archive_blobs.h"

typedef struct restore_blobs restore_blobs_t;

restore_blobs_t *restore_blobs_new (void);
void restore_blobs_free (restore_blobs_t **self); /* accepts a NULL object */
/* A blob is named, or no longer; of one the last word counts. A store_more_t's `blob`; context: the
 * object. */
void restore_blobs_note (void *context, const uint8_t *hash, bool gone);
typedef struct restore_blobs_report {
    bool any;                       /* one came */
    uint64_t unreadable;            /* are in the archive, and its disk does not give them: … */
    int error;                      /* … why, … */
    char example[ARCHIVE_HEX_SIZE]; /* … and one of them */
} restore_blobs_report_t;

/* Those that are named and are not in DIRECTORY/blobs come there from the archive, but those that
 * it does not have, or that are damaged. False with errno: the directory cannot be written. */
bool restore_blobs_fetch (restore_blobs_t *self, const char *archive, const char *directory,
                          restore_blobs_report_t *out);

#endif
