/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A copy of taskmq.db made by its own writer, some pages at a time. What the writer changes between
 * two steps goes into the copy too, so the copy is never begun again; another connection's changes
 * would do that each time. All of it on the writer's thread. */
#ifndef TASKMQ_STORE_COPY_H
#define TASKMQ_STORE_COPY_H

#include "store/sqlite/sql.h"

/* 1 MiB: a step takes a millisecond or some, between two write-backs. */
enum { COPY_STEP_PAGES = 64 };

typedef struct copy {
    sqlite3 *db; /* the copy; NULL: none is being made */
    sqlite3_backup *backup;
    uint64_t steps;
    int64_t step_us_max;
    bool done;
} copy_t;

/* path: of the new file, which must not be there. */
store_code_t copy_begin (copy_t *out, sqlite3 *source, const char *path, store_error_t *error);
/* The next step may end it; also before it has begun. */
bool copy_is_nearly_done (const copy_t *self);
/* Copies some pages; sets `done`. An error concerns the copy, not the source. */
store_code_t copy_step (copy_t *self, store_error_t *error);
/* Closes both; the file stays, and is not synced. Accepts an all-zero object. */
void copy_end (copy_t *self);

#endif
