/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "texts.h"

void texts_note (texts_t *self, const batch_t *batch)
{
    for (size_t i = 0; i < batch->rows_count; i++)
        if (batch->rows[i].kind == ROW_KIND_QUEUE)
            self->look_batch = batch->no;
}

void texts_written (texts_t *self, uint64_t written)
{
    if (self->look_batch > 0 && written >= self->look_batch) {
        self->look_batch = 0;
        indexer_look_through (self->indexer);
    }
    if (self->reindex_batch > 0 && written >= self->reindex_batch) {
        self->reindex_batch = 0;
        indexer_rebuild (self->indexer);
    }
}

void texts_reindex (texts_t *self, uint64_t durable)
{
    if (durable == 0) { /* nothing is newer than the tables */
        indexer_rebuild (self->indexer);
        return;
    }
    self->reindex_batch = durable;
    store_flush (self->store);
    texts_written (self, store_written (self->store));
}
