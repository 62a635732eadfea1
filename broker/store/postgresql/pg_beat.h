/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The owner's sign of life (A119): a thread that counts up `beat` in table shard, on a connection
 * of its own, so that neither a large commit nor a vacuum is in its way. From the last acknowledged
 * beat follows until when nobody else can own the data.
 *
 * On each new connection it also looks whether what was acknowledged is still there: a broker
 * without work would not notice a promotion that lost something before its next commit. What was
 * found whole goes on: the database's timeline is noted, so that the next owner knows that too.
 *
 * Another owner, or a history that was cut, ends the process (store_options_t.failed). */
#ifndef TASKMQ_STORE_PG_BEAT_H
#define TASKMQ_STORE_PG_BEAT_H

#include "store/postgresql/pg_store.h"

typedef struct pg_beat pg_beat_t;

pg_beat_t *pg_beat_new (pg_store_t *store);
/* Makes the first beat of this epoch, and starts the thread. */
store_code_t pg_beat_start (pg_beat_t *self, uint64_t epoch, store_error_t *error);
/* CLOCK_MONOTONIC in ms, as store_valid_until. Time for which the machine slept counts, too. Any
 * thread. */
int64_t pg_beat_valid_until (pg_beat_t *self);
/* The database was out of reach: the next beat is made at once, since it looks whether what was
 * acknowledged is still there. Any thread. */
void pg_beat_hurry (pg_beat_t *self);
void pg_beat_stop (pg_beat_t *self);  /* one that does not run may be stopped */
void pg_beat_free (pg_beat_t **self); /* accepts a NULL object */

#endif
