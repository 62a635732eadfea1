/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A journal on a disk in memory, with what its tables and its peers know of it. One thread. */
#ifndef TASKMQ_TESTS_LOG_WORLD_H
#define TASKMQ_TESTS_LOG_WORLD_H

#include "power_disk.h"
#include "store/journal/form.h"
#include "store/journal/journal.h"
#include "store_support.h"

enum { BATCHES_MAX = 400, COMMIT_MAX = 4, GENERATION = 77 };

typedef struct known {
    uint64_t no;
    int64_t stamp;
    size_t bytes;
} known_t;

/* A journal, its disk, and what the tables and the peers know. */
typedef struct world {
    power_disk_t disk;
    journal_options_t options;
    journal_tables_t tables;
    journal_t *journal;
    known_t acked[BATCHES_MAX]; /* of this epoch */
    size_t acked_count;
    known_t flying[COMMIT_MAX]; /* of the commit whose answer never came */
    size_t flying_count;
    known_t replayed[BATCHES_MAX];
    size_t replayed_count;
    int64_t stamp;
    uint64_t random;
    store_error_t error;
} world_t;

/* The seed says how its dice fall. */
void world_init (world_t *w, uint64_t seed);
void world_destroy (world_t *w);

/* Opens the journal and reads what the tables lack into `replayed`; *cut: as journal_replay. */
store_code_t world_read (world_t *w, bool *cut);
/* The rows are in the tables, which begin a new epoch; then the journal does. */
store_code_t world_begin (world_t *w);
/* Both. */
store_code_t world_start (world_t *w);
/* One commit of so many batches with payloads of so many bytes; acknowledged if it is STORE_OK. */
store_code_t world_commit (world_t *w, size_t count, size_t bytes);
/* Something that a broker does. */
store_code_t world_step (world_t *w);
/* The power goes; then it comes back. */
void world_lose (world_t *w, power_loss_t loss);

/* What came back is what was acknowledged and not in the tables, in order; then all or nothing of
 * the commit that had no answer. Without syncs the newest may be missing. */
void assert_replayed (const world_t *w, const char *what);
/* Reads, and asserts that. */
void assert_reads (world_t *w, const char *what);

#endif
