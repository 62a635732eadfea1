/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The writer of the tables (A108): rows behind the journal, what is forgotten, and what a start
 * finds in the journal. Used by one thread, at first the owning one, then the store thread.
 *
 * Every transaction locks the fence of write-backs first, so a process that lost the data cannot
 * put old images over newer rows. One whose answer was lost is made again, unless table
 * `written` says that it landed: whoever calls gets an answer, however long the database is out
 * of reach; but while nobody is to wait for that (pg_store_t.impatient), STORE_ERROR_AWAY. */
#ifndef TASKMQ_STORE_PG_TABLES_H
#define TASKMQ_STORE_PG_TABLES_H

#include "store/forget.h"
#include "store/postgresql/pg_store.h"
#include "store/postgresql/pg_writer.h"

typedef struct pg_tables pg_tables_t;

pg_tables_t *pg_tables_new (pg_store_t *store);
void pg_tables_free (pg_tables_t **self); /* accepts a NULL object */
/* As of the newest transaction that was committed. */
const pg_meta_t *pg_tables_meta (const pg_tables_t *self);
/* Removals written since the start. */
uint64_t pg_tables_removals (const pg_tables_t *self);

/* Begins an epoch: brings what the journal has into the tables, in one transaction. *batches: how
 * many there were. STORE_ERROR_CORRUPT: a commit is missing or damaged. */
store_code_t pg_tables_recover (pg_tables_t *self, uint64_t epoch, uint64_t *batches,
                                store_error_t *error);
/* The newest time in an id of a task or a tombstone; 0 for none. */
store_code_t pg_tables_newest_id (pg_tables_t *self, int64_t *ms, store_error_t *error);

/* One write-back, in a transaction of its own: the latest image of each dirty task and the
 * latest rows (both are sorted), the batches' events, attempts and removals; and the end of
 * their journal. */
store_code_t pg_tables_write (pg_tables_t *self, const dirty_t *dirty, store_error_t *error);
/* Forgets one slice of what is old, in a transaction of its own. Before its commit `forgets` is
 * told of it, if namespaces are among it; *out is lent until the next call. */
store_code_t pg_tables_forget (pg_tables_t *self, const forget_limits_t *limits,
                               void (*forgets) (void *context, const forgotten_t *forgotten),
                               void *context, const forgotten_t **out, bool *more,
                               store_error_t *error);

#endif
