/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The history that an archive holds: its segments put together, behind a place that somebody has.
 *
 * Batches come in their order, across starts of the broker, each once; each is compared with its
 * sum and with the one in front of it. What is missing or damaged is an error that says up to which
 * moment everything is there. It only reads. */
#ifndef TASKMQ_STORE_ARCHIVE_HISTORY_H
#define TASKMQ_STORE_ARCHIVE_HISTORY_H

#include "core/data/batch.h"
#include "store/archive/archive_files.h"
#include "store/error.h"

typedef struct archive_history archive_history_t;

/* Where somebody stands: the newest batch that he has. */
typedef struct archive_place {
    uint64_t generation;
    uint64_t epoch;
    uint64_t batch;
    int64_t wall_ms; /* of that batch */
} archive_place_t;

/* until_ms: batches of a later time are not wanted; INT64_MAX: all are. STORE_ERROR_ACCESS: the
 * directory cannot be read; …_FOREIGN: the place is later than until_ms, or nothing of its history
 * is there. */
store_code_t archive_history_open (archive_history_t **out, const char *directory,
                                   const archive_place_t *from, int64_t until_ms,
                                   store_error_t *error);
void archive_history_close (archive_history_t **self); /* accepts a NULL object */

/* The next batch, which belongs to the caller, with its epoch; NULL: there are no more. CORRUPT:
 * the next one is missing or damaged, and something behind it, or the time asked for, is later.
 * NEWER: a later version wrote it. */
store_code_t archive_history_next (archive_history_t *self, batch_t **batch, uint64_t *epoch,
                                   store_error_t *error);
/* Where it stands now. */
const archive_place_t *archive_history_at (const archive_history_t *self);

/* What is wrong with an archive as a whole, history by history: each finding is one sentence, each
 * history that is whole between two of them too. */
typedef struct archive_judge {
    void (*say) (void *context, const char *text);
    void *context;
    /* answers */
    uint64_t segments;
    uint64_t batches;
    uint64_t bytes;
    uint64_t findings;
} archive_judge_t;
store_code_t archive_judge (archive_judge_t *self, const char *directory, store_error_t *error);

#endif
