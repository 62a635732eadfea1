/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What this owner knows to be in the database, and on which server all of it was found (A106). A
 * link may learn late what its server had acknowledged: when another server has been found whole
 * meanwhile, that word is worth nothing, because nobody looked for it there. So both go through
 * one lock. Any thread. */
#ifndef TASKMQ_STORE_PG_WHOLE_H
#define TASKMQ_STORE_PG_WHOLE_H

#include "store/postgresql/pg_store.h"

typedef struct pg_whole {
    uint64_t last;    /* batch of this epoch that was acknowledged; 0: none */
    uint64_t written; /* up to which batch the tables have everything, and 1; 0: not known */
} pg_whole_t;

/* To be asked before the question that is judged by it. */
pg_whole_t pg_whole_known (pg_store_t *store);
/* The link's server acknowledged this; a field of 0 says nothing. STORE_ERROR_AWAY: it is over, so
 * what was sent to it is in doubt. The link is closed then. */
store_code_t pg_whole_add (pg_store_t *store, pg_link_t *link, pg_whole_t more,
                           store_error_t *error);
/* The link's server has all that was known: it is the whole one from now on. False: more was
 * acknowledged by another one since, so this one has to be asked again. */
bool pg_whole_found (pg_store_t *store, const pg_link_t *link, pg_whole_t known);

#endif
