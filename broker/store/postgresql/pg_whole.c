/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_whole.h"

pg_whole_t pg_whole_known (pg_store_t *store)
{
    pthread_mutex_lock (&store->whole_lock);
    const pg_whole_t known = {store->known_last, store->known_written};
    pthread_mutex_unlock (&store->whole_lock);
    return known;
}

store_code_t pg_whole_add (pg_store_t *store, pg_link_t *link, pg_whole_t more,
                           store_error_t *error)
{
    pthread_mutex_lock (&store->whole_lock);
    const bool over = pg_link_is_over (link);
    if (!over && more.last != 0)
        store->known_last = more.last;
    if (!over && more.written != 0)
        store->known_written = more.written;
    pthread_mutex_unlock (&store->whole_lock);
    if (!over)
        return STORE_OK;
    pg_link_close (link);
    return store_fail (error, STORE_ERROR_AWAY, "%s: %s", store->target.where, PG_LINK_OVER);
}

bool pg_whole_found (pg_store_t *store, const pg_link_t *link, pg_whole_t known)
{
    pthread_mutex_lock (&store->whole_lock);
    const bool same = atomic_load (&store->target.whole_server) == link->server;
    const bool all =
        same || (store->known_last == known.last && store->known_written == known.written);
    if (all)
        atomic_store (&store->target.whole_server, link->server);
    pthread_mutex_unlock (&store->whole_lock);
    return all;
}
