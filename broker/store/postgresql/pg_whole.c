/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_whole.h"

#include <string.h>

#include "store/postgresql/pg_schema.h"

enum { NO_SERVER = 2 /* lives of servers are odd */ };

store_code_t pg_whole_look (pg_link_t *link, size_t statement, uint64_t epoch,
                            const pg_whole_t *known, pg_there_t *there, store_error_t *error)
{
    static const uint8_t none[TMQ_BLOB_HASH_BYTES];
    const bool some = memcmp (known->body, none, sizeof (none)) != 0;
    PGresult *row;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, (int64_t) epoch);
    pg_param_bytes (&params, known->body, some ? sizeof (known->body) : 0);
    pg_param_int8 (&params, known->touched);
    store_code_t code = pg_link_run (link, statement, &params, &row, error);
    if (code == STORE_OK)
        *there = (pg_there_t){.last = (uint64_t) pg_int8 (row, 0, 0),
                              .written = (uint64_t) pg_int8 (row, 0, 1),
                              .body = pg_bool (row, 0, 2),
                              .epoch = (uint64_t) pg_int8 (row, 0, 3)};
    PQclear (row);
    return code;
}

pg_whole_t pg_whole_known (pg_store_t *store)
{
    pthread_mutex_lock (&store->whole_lock);
    pg_whole_t known = {.last = store->known_last,
                        .written = store->known_written,
                        .bodies = store->known_bodies,
                        .touched = store->known_touched};
    memcpy (known.body, store->known_body, sizeof (known.body));
    pthread_mutex_unlock (&store->whole_lock);
    return known;
}

/* Under the lock. hash: NULL for none. */
static void set_body (pg_store_t *store, const uint8_t *hash, int64_t touched)
{
    memset (store->known_body, 0, sizeof (store->known_body));
    if (hash != NULL)
        memcpy (store->known_body, hash, sizeof (store->known_body));
    store->known_touched = touched;
    store->known_bodies++;
}

static store_code_t add (pg_store_t *store, pg_link_t *link, const pg_whole_t *more,
                         const uint8_t *hash, store_error_t *error)
{
    pthread_mutex_lock (&store->whole_lock);
    const bool over = pg_link_is_over (link);
    if (!over && more->last != 0)
        store->known_last = more->last;
    if (!over && more->written != 0)
        store->known_written = more->written;
    if (!over && hash != NULL)
        set_body (store, hash, more->touched);
    pthread_mutex_unlock (&store->whole_lock);
    if (!over)
        return STORE_OK;
    pg_link_close (link);
    return store_fail (error, STORE_ERROR_AWAY, "%s: %s", store->target.where, PG_LINK_OVER);
}

store_code_t pg_whole_add (pg_store_t *store, pg_link_t *link, uint64_t last, uint64_t written,
                           store_error_t *error)
{
    return add (store, link, &(pg_whole_t){.last = last, .written = written}, NULL, error);
}

store_code_t pg_whole_add_body (pg_store_t *store, pg_link_t *link, const uint8_t *hash,
                                int64_t touched, store_error_t *error)
{
    return add (store, link, &(pg_whole_t){.touched = touched}, hash, error);
}

void pg_whole_drop_body (pg_store_t *store, const uint8_t *hash)
{
    pthread_mutex_lock (&store->whole_lock);
    if (memcmp (store->known_body, hash, sizeof (store->known_body)) == 0)
        set_body (store, NULL, 0);
    pthread_mutex_unlock (&store->whole_lock);
}

/* Under the lock. */
static bool is_known (const pg_store_t *store, const pg_whole_t *known)
{
    return store->known_last == known->last && store->known_written == known->written &&
           store->known_bodies == known->bodies;
}

bool pg_whole_found (pg_store_t *store, pg_link_t *link, const pg_whole_t *known)
{
    pthread_mutex_lock (&store->whole_lock);
    const uint64_t whole = atomic_load (&store->target.whole_server);
    const bool all = whole != NO_SERVER && (whole == link->server || is_known (store, known));
    if (all) {
        atomic_store (&store->target.whole_server, link->server);
        link->whole = link->server; /* it is over when another one is, also one that was before */
    }
    pthread_mutex_unlock (&store->whole_lock);
    if (all && whole != 0 && whole != link->server) /* the first one is told of at the start */
        pg_store_say_replicated (store);
    return all;
}

bool pg_whole_end (pg_store_t *store, const pg_whole_t *known)
{
    pthread_mutex_lock (&store->whole_lock);
    const bool all = is_known (store, known);
    if (all)
        atomic_store (&store->target.whole_server, NO_SERVER);
    pthread_mutex_unlock (&store->whole_lock);
    return all;
}
