/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The thread that answers searches (READ_SEARCH), one after the other, from the index and the
 * store: the index says which tasks have the words, the store which of them match the filter and
 * may be seen. */
#ifndef TASKMQ_SEARCH_FINDER_H
#define TASKMQ_SEARCH_FINDER_H

#include "search/indexer.h"

typedef struct finder finder_t;

enum {
    FINDER_WAIT_MS = 1000, /* a search waits so long for the index at most */
    FINDER_MS_MAX = 2000   /* the index takes so long for a page where a word goes on (begin*) */
};

/* All must outlive it. NULL: no thread can be made. */
finder_t *finder_new (store_t *store, indexer_t *indexer, const char *directory);
void finder_free (finder_t **self); /* accepts a NULL object */

/* Another limit than FINDER_MS_MAX; 0: as soon as it is looked at. A search beyond it is too_wide,
 * unless its page is found: then excerpts are missing. */
void finder_limit (finder_t *self, uint32_t ms);
/* It comes back by finder_done. One thread submits. */
void finder_submit (finder_t *self, read_t *read);
read_t *finder_done (finder_t *self); /* or NULL */
int finder_fd (const finder_t *self); /* readable while one is done; for poll only */
/* Instead of both, where the indexer is driven: then the finder has no thread either. */
void finder_answer (finder_t *self, read_t *read);

#endif
