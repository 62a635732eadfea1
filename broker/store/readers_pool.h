/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Threads that run reads in pages (A18), each on a reader of its own. Jobs go in by one queue,
 * first come first served, and come back by another with an eventfd as its wake-up. */
#ifndef TASKMQ_STORE_READERS_POOL_H
#define TASKMQ_STORE_READERS_POOL_H

#include "store/store.h"

typedef struct readers_pool readers_pool_t;

/* The store must outlive the pool. */
store_code_t readers_pool_new (readers_pool_t **out, store_t *store, size_t threads,
                               store_error_t *error);
/* Waits for the jobs being run, and lets go of those that wait and those that are done: they are
 * the asker's to free afterwards. Accepts a NULL object. */
void readers_pool_free (readers_pool_t **self);

/* Borrows a job until it comes back through readers_pool_done, or the pool ends. Any thread. */
void readers_pool_submit (readers_pool_t *self, read_t *read);
/* Readable (level-triggered) while a finished job waits; for poll only, never read by
 * the caller. */
int readers_pool_fd (const readers_pool_t *self);
/* A finished job, its answers or its error filled in. NULL: none yet. */
read_t *readers_pool_done (readers_pool_t *self);

#endif
