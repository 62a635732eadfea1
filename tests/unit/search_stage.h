/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of the search stand on: a store, its index with the follower, and its finder. */
#ifndef TASKMQ_TESTS_SEARCH_STAGE_H
#define TASKMQ_TESTS_SEARCH_STAGE_H

#include "search/finder.h"
#include "store_support.h"

typedef struct stage {
    fixture_t *f;
    char directory[64];
    indexer_t *indexer;
    finder_t *finder;
    shared_limit_t free_bytes_min;
} search_stage_t;

int search_stage_setup (void **state);
int search_stage_teardown (void **state);
void search_stage_start (search_stage_t *self);
void search_stage_stop (search_stage_t *self);
/* Where a file of the index is. */
void search_stage_path (char out[128], const search_stage_t *self, const char *name);
void search_stage_remove (const search_stage_t *self);

/* Commits a task with this payload. */
record_t search_stage_put (search_stage_t *self, int64_t number, const char *ns,
                           const char *payload);
/* A page; to be cleared by search_stage_done. */
read_t search_stage_page (const char *ns, const char *text, int64_t below, size_t limit,
                          bool ranked);
int64_t search_stage_mono_ms (void);
/* Waits until the index has come to all that is there. */
void search_stage_settle (search_stage_t *self);
void search_stage_ask (search_stage_t *self, read_t *read);
/* Both. */
void search_stage_run (search_stage_t *self, read_t *read);
void search_stage_done (read_t *read);
/* How many of the first hundred tasks a query finds. */
size_t search_stage_found (search_stage_t *self, const char *ns, const char *text);

#define ON_BOTH(test) ON_ALL_WITH (test, search_stage_setup, search_stage_teardown)

#endif
