/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Commits (A105, A106). One statement in one round trip makes a commit durable, if this process
 * still owns the data. When the answer is lost, nobody knows whether it landed: then the journal is
 * read back on a new connection, behind a lock that no older one can hold any more.
 *
 * Used by the thread that commits; pg_commit_waits_ms by any. */
#ifndef TASKMQ_STORE_PG_COMMIT_H
#define TASKMQ_STORE_PG_COMMIT_H

#include "store/journal/journal_codec.h"
#include "store/postgresql/pg_whole.h"

typedef struct pg_commit pg_commit_t;

/* A row if the newest epoch of shard $1 is $2. */
#define PG_COMMIT_OWNED_SQL                                                                        \
    "SELECT 1 FROM fence WHERE shard = $1::int2 AND part = 'c' AND epoch = $2::int8"

pg_commit_t *pg_commit_new (pg_store_t *store);
void pg_commit_free (pg_commit_t **self); /* accepts a NULL object */
/* An epoch begins, with nothing committed in it. */
store_code_t pg_commit_start (pg_commit_t *self, uint64_t generation, uint64_t epoch,
                              store_error_t *error);
/* Durable when it returns STORE_OK; waits as long as it takes. STORE_ERROR_FULL: nothing of it is
 * kept, nor comes later. STORE_ERROR_FENCED: another process owns the data. STORE_ERROR_CUT:
 * something that was acknowledged is gone. STORE_ERROR_IO: also as pg_commit_judge. The batches
 * stay the caller's. */
store_code_t pg_commit_append (pg_commit_t *self, batch_t *const *batches, size_t count,
                               store_error_t *error);
/* Judges what a server has. STORE_ERROR_CUT: a commit or a large body is gone; the link marks the
 * data, as for pg_commit_cut. STORE_ERROR_IO: only a write-back is, whose rows are in memory no
 * more, but yet in the journal: whoever starts makes it again. STORE_ERROR_BUSY: it was about to be
 * changed, and is to be asked again. */
store_code_t pg_commit_judge (pg_link_t *link, pg_store_t *store, uint64_t epoch,
                              const pg_whole_t *known, const pg_there_t *there,
                              store_error_t *error);
/* For how long the commit that is being made has waited; 0: there is none. */
int64_t pg_commit_waits_ms (const pg_commit_t *self);

/* Fill error with what has happened, and return its code. */
store_code_t pg_commit_fenced (const pg_store_t *store, uint64_t epoch, store_error_t *error);
/* This one also marks the data by the link, so that whoever takes over begins a new history. */
store_code_t pg_commit_cut (pg_link_t *link, const pg_store_t *store, uint64_t epoch, uint64_t last,
                            uint64_t newest, store_error_t *error);

/* A row of the journal holds the batches of one commit, each with its length before it. Takes the
 * one at *place apart, which moves behind it. *out is NULL at the end; it belongs to the caller.
 * STORE_ERROR_CORRUPT, …_NEWER: it is not what was written. */
store_code_t pg_commit_unpack (const uint8_t *body, size_t body_bytes, size_t *place,
                               journal_head_t *head, batch_t **out, store_error_t *error);

#endif
