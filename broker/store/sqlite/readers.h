/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The reads of read_t on taskmq.db, in pages. */
#ifndef TASKMQ_STORE_READERS_H
#define TASKMQ_STORE_READERS_H

#include "store/sqlite/readers_export.h"

typedef struct readers {
    view_t view;
    export_walk_t export;
} readers_t;

/* A transaction lasts about page_us_max; with 0 each makes one step. */
store_code_t readers_open (readers_t *self, const char *directory, gate_t *gate,
                           uint32_t page_us_max, store_error_t *error);
void readers_close (readers_t *self); /* accepts an all-zero object */
store_code_t readers_run (readers_t *self, read_t *read, store_error_t *error);
/* Of a READ_EXPORT that was answered from memory: fetches the bodies that its items lack. Items
 * that are no longer their task's newest state leave then: a newer one follows. */
store_code_t readers_complete (readers_t *self, read_t *read, bool lacks, store_error_t *error);

#endif
