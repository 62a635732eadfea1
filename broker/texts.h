/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What changes which texts are found, until the tables have it: only then the index is told. */
#ifndef TASKMQ_BROKER_TEXTS_H
#define TASKMQ_BROKER_TEXTS_H

#include "core/data/batch.h"
#include "search/indexer.h"
#include "store/store.h"

/* Zero but for the two that are borrowed. The server's thread. */
typedef struct texts {
    indexer_t *indexer;
    store_t *store;
    uint64_t look_batch;    /* once it is written, texts are looked through, … */
    uint64_t reindex_batch; /* … or a new index of them is made; 0: none */
} texts_t;

/* A batch on its way to be committed: a queue's settings may say that its texts are not found. */
void texts_note (texts_t *self, const batch_t *batch);
/* A new index was asked for: of what is durable now, up to this batch of this run; 0: none yet. */
void texts_reindex (texts_t *self, uint64_t durable);
/* The tables have all batches up to this one. */
void texts_written (texts_t *self, uint64_t written);

#endif
