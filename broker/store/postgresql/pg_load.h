/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Point reads, the sweep's proposals, and the live tasks of a start, each over a link that
 * is kept. */
#ifndef TASKMQ_STORE_PG_LOAD_H
#define TASKMQ_STORE_PG_LOAD_H

#include "store/postgresql/pg_keeper.h"

/* A link for the functions below. */
pg_kept_t *pg_load_new (pg_store_t *store, const char *name);

/* As store_load, without what is not written yet; many keys in one round trip. */
store_code_t pg_load_keys (pg_store_t *store, pg_kept_t *kept, lookup_t *keys, size_t count,
                           store_error_t *error);
/* As store_due, without the tasks whose row is not their latest state. */
store_code_t pg_load_due (pg_store_t *store, pg_kept_t *kept, store_sweep_t *sweep,
                          store_error_t *error);
/* As store_live, with what is durable and not in the tables yet in overlay (NULL: nothing). Waits
 * while the database is out of reach. */
store_code_t pg_load_live (pg_store_t *store, pg_kept_t *kept, const overlay_t *overlay,
                           const store_live_visitor_t *visitor, store_error_t *error);

#endif
