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
    uint64_t bodies;  /* a number of the next */
    /* Hash of the large body that was told last to be there, and when it was touched for that;
     * zeros: none. It is so only if all before are there. One that is removed was touched long ago,
     * and so were they: then none is known. */
    uint8_t body[TMQ_BLOB_HASH_BYTES];
    int64_t touched;
} pg_whole_t;

/* What a server has of it. */
typedef struct pg_there {
    uint64_t epoch; /* the newest */
    uint64_t last;
    uint64_t written;
    bool body;
} pg_there_t;

/* A statement of a link that looks. Of shard $1 the newest batch of epoch $2 that is durable, in
 * the journal or in the tables; what the tables have, as pg_whole_t says it; whether the body $3
 * is there as it was touched at $4, or none was asked for; and the newest epoch. */
#define PG_WHOLE_SQL                                                                               \
    "SELECT greatest ((SELECT batch FROM journal WHERE shard = $1::int2"                           \
    " AND epoch = $2::int8 ORDER BY batch DESC LIMIT 1),"                                          \
    " (SELECT batch FROM written WHERE shard = $1::int2 AND epoch = $2::int8), 0),"                \
    " coalesce ((SELECT batch + 1 FROM written WHERE shard = $1::int2 AND epoch = $2::int8), 0),"  \
    " $3::bytea = '' OR EXISTS (SELECT 1 FROM blob WHERE shard = $1::int2"                         \
    " AND hash = $3::bytea AND whole AND touched >= $4::int8),"                                    \
    " (SELECT epoch FROM shard WHERE shard = $1::int2)"
/* statement: the place of that text in the link's list. Errors as of pg_link_run. */
store_code_t pg_whole_look (pg_link_t *link, size_t statement, uint64_t epoch,
                            const pg_whole_t *known, pg_there_t *there, store_error_t *error);

/* To be asked before the question that is judged by it. */
pg_whole_t pg_whole_known (pg_store_t *store);
/* The link's server acknowledged this; 0 says nothing. STORE_ERROR_AWAY: it is over, so what was
 * sent to it is in doubt. The link is closed then. */
store_code_t pg_whole_add (pg_store_t *store, pg_link_t *link, uint64_t last, uint64_t written,
                           store_error_t *error);
store_code_t pg_whole_add_body (pg_store_t *store, pg_link_t *link, const uint8_t *hash,
                                int64_t touched, store_error_t *error);
/* This body is about to be removed. */
void pg_whole_drop_body (pg_store_t *store, const uint8_t *hash);
/* The link's server has all that was known: it is the whole one from now on. False: more was
 * acknowledged by another one since, so this one has to be asked again; or none counts any more. */
bool pg_whole_found (pg_store_t *store, pg_link_t *link, const pg_whole_t *known);
/* A server lacks something, and the process is about to end for it: no server counts any more, so
 * nothing is acknowledged behind this. False: more was, since it was asked what is known. */
bool pg_whole_end (pg_store_t *store, const pg_whole_t *known);

#endif
