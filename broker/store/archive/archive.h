/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The archive: what is committed is kept on another disk, too.
 *
 * Two threads. The spooler takes the batches over from the commits, and puts them into files in the
 * data directory (`archiving`), *pieces*. The carrier copies whole pieces into segments of the
 * archive's directory and syncs those, once a second. So a directory that hangs, fails or is full
 * holds nothing up: the pieces wait, up to ARCHIVE_BACKLOG_BYTES_MAX. Then they are given up, which
 * leaves a gap: a backup that is made behind it is whole with what follows.
 *
 * A piece is not synced: a loss of power may take what no segment has yet. What the journal still
 * has is handed over again at the next start; a batch that is there twice is
 * known by its number. */
#ifndef TASKMQ_STORE_ARCHIVE_H
#define TASKMQ_STORE_ARCHIVE_H

#include "store/archive/archive_form.h"
#include "store/archive/archive_options.h"
#include "store/error.h"

enum {
    ARCHIVE_QUEUE_BYTES_MAX = 64 * 1024 * 1024 /* in memory, while the data's disk is slow */
};

typedef struct archive archive_t;

typedef struct archive_stats {
    bool stalled;
    uint64_t backlog_bytes; /* that no segment has */
    uint64_t lag_ms;        /* age of the oldest of them */
    uint64_t gaps;          /* since the start */
} archive_stats_t;

/* Makes `archiving`; touches nothing else. */
store_code_t archive_new (archive_t **out, const archive_options_t *options, store_error_t *error);

/* Recovery, in this order, before the threads. The content of a commit is what the journal has of
 * it: batches, each behind its length. */

/* What the journal has of this epoch, oldest first; the archive may have it already. */
store_code_t archive_recover (archive_t *self, uint64_t generation, uint64_t epoch,
                              const uint8_t *content, size_t bytes, store_error_t *error);
/* From now on batches are of this epoch. Durable when it returns, so that an epoch without batches
 * is known to have been one. Starts the threads. */
store_code_t archive_begin (archive_t *self, const archive_header_t *header, store_error_t *error);

/* A commit that is durable. Copies it; never waits for a disk. The committing thread. */
void archive_take (archive_t *self, const uint8_t *content, size_t bytes);

/* Carries what it can, closes the segment and ends. Accepts NULL. */
void archive_free (archive_t **self);

/* Any thread. */
void archive_stats (archive_t *self, archive_stats_t *out);

#endif
