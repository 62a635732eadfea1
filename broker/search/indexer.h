/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The thread that keeps the index of texts: it follows the events behind the write-back, as the
 * exporter does, and takes each task that has changed, with its new turns. A new index is built
 * from all tasks first. It rests for most of the time while others
 * work, unless somebody waits for it. */
#ifndef TASKMQ_SEARCH_INDEXER_H
#define TASKMQ_SEARCH_INDEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/shared_limit.h"
#include "core/data/search.h"
#include "store/bar.h"
#include "store/store.h"

typedef struct indexer indexer_t;

typedef struct indexer_options {
    store_t *store;                 /* must outlive it */
    const char *directory;          /* as long */
    uint64_t generation;            /* of the history */
    uint64_t last_pos;              /* newest event of the database at the start */
    bar_t *bar;                     /* until it is lifted nothing is read; NULL: at once */
    shared_limit_t *free_bytes_min; /* of the file system: below it nothing is written */
    /* A read of the store that failed for good: the process ends. Called on the thread. */
    void (*failed) (const store_error_t *error);
    bool driven; /* without a thread: who made it calls indexer_turn; one thread does all */
    unsigned planted_bug; /* test-only: 0 in the broker; see core/base/planted.h */
} indexer_options_t;

/* NULL: no thread can be made. An index that cannot be opened is no failure: searches are told. */
indexer_t *indexer_new (const indexer_options_t *options);
/* Accepts a NULL object. */
void indexer_free (indexer_t **self);

/* All of these from any thread. */

/* Throws the index away and builds it anew. */
void indexer_rebuild (indexer_t *self);
/* Tasks were removed, or settings of queues changed: what is there is looked through. */
void indexer_look_through (indexer_t *self);
/* Waits until the index has everything that was in the tables when this was called, at most until
 * the time (monotonic). Fills in how it stands. */
void indexer_wait (indexer_t *self, int64_t until_ms, search_t *out);
/* The index may be read; *epoch changes with its file. To be followed by indexer_read_end. False:
 * it cannot be used, with the reason; STORE_ERROR_BUSY: it is being opened. */
bool indexer_read_begin (indexer_t *self, uint64_t *epoch, store_error_t *error);
/* error: what the reader met; STORE_OK for nothing. */
void indexer_read_end (indexer_t *self, const store_error_t *error);

typedef struct indexer_stats {
    uint64_t pos; /* every event up to it was followed */
    bool building;
    bool broken; /* it has to be built anew */
} indexer_stats_t;
void indexer_stats (indexer_t *self, indexer_stats_t *out);

/* Of one that is driven. */

/* Does what its thread would do next, once. True: there is more to do at once. */
bool indexer_turn (indexer_t *self);
/* Instead of waiting for the index, a search lets it do so many turns at most. */
void indexer_allow (indexer_t *self, size_t turns);
bool indexer_is_driven (const indexer_t *self);

#endif
