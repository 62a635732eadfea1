/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Links of threads that never wait for a connection: a thread of its own makes them anew. */
#ifndef TASKMQ_STORE_PG_KEEPER_H
#define TASKMQ_STORE_PG_KEEPER_H

#include "store/postgresql/pg_store.h"

typedef struct pg_keeper pg_keeper_t;

/* A link that is kept. Whoever uses it holds the lock; a closed one is out of reach for now. */
typedef struct pg_kept {
    pthread_mutex_t lock;
    pg_link_t link;
    struct pg_kept *next;
} pg_kept_t;

/* No thread runs yet. */
pg_keeper_t *pg_keeper_new (pg_store_t *store);
/* Adds a link, which it frees at its end. Before pg_keeper_start. */
pg_kept_t *pg_keeper_add (pg_keeper_t *self, const char *name, const char *const *texts,
                          size_t texts_count, int64_t wait_ms_max);
/* Opens all of them, and starts the thread, which calls look a few times a second while the
 * database is in reach. */
store_code_t pg_keeper_start (pg_keeper_t *self, void (*look) (void *context), void *context,
                              store_error_t *error);
/* Looks at once whether a link is closed. Any thread. */
void pg_keeper_hurry (pg_keeper_t *self);
void pg_keeper_free (pg_keeper_t **self); /* accepts a NULL object */

#endif
