/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_watch.h"

#include <stdio.h>
#include <time.h>

#include "store/postgresql/pg_own.h"
#include "timestamp.h"

enum {
    LOOK_MS = 10000,
    PINNED_MS = 60000,
    WAIT_MS = 2000,         /* for an answer, … */
    VACUUM_WAIT_MS = 60000, /* … and for a vacuum */
    VACUUM_BYTES = 64 * 1024 * 1024
};

enum { SIZES, OLDEST, STANDBYS, VACUUM, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [SIZES] = "SELECT coalesce (sum (pg_total_relation_size (oid))::int8, 0),"
              " pg_total_relation_size ('journal') FROM pg_class"
              " WHERE relnamespace = current_schema ()::regnamespace AND relkind = 'r'",
    [OLDEST] = "SELECT pid, coalesce (usename, '')::text, application_name,"
               " (extract (epoch FROM now () - xact_start))::int8 FROM pg_stat_activity"
               " WHERE pid <> pg_backend_pid () AND backend_type = 'client backend'"
               " AND backend_xmin IS NOT NULL"
               " AND xact_start < now () - $1::int8 * interval '1 millisecond'"
               " ORDER BY xact_start LIMIT 1",
    /* The owner has no such session: it had one until it owned the data. */
    [STANDBYS] = ("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database ()"
                  " AND starts_with (application_name, 'taskmq ' || $1::text || ' ')"),
    /* Without a truncation, which would lock commits out. Autovacuum comes once a minute, and the
     * journal is deleted as fast as it is written. None waits for another one, perhaps ours, that
     * the server still does for a connection that was closed. */
    [VACUUM] = "VACUUM (TRUNCATE false, SKIP_LOCKED) journal",
};

void pg_watch_init (pg_watch_t *self, pg_store_t *store)
{
    *self = (pg_watch_t){.kept = pg_keeper_add (store->keeper, "watch", TEXTS, STATEMENTS, WAIT_MS),
                         .pinned_ms = store->database.pinned_ms};
    if (self->pinned_ms == 0)
        self->pinned_ms = PINNED_MS;
}

static store_code_t look_sizes (pg_link_t *link, pg_store_t *store, store_error_t *error)
{
    PGresult *row;
    store_code_t code = pg_link_run (link, SIZES, NULL, &row, error);
    if (code != STORE_OK)
        return code;
    atomic_store (&store->database_bytes, (uint64_t) pg_int8 (row, 0, 0));
    atomic_store (&store->journal_bytes, (uint64_t) pg_int8 (row, 0, 1));
    PQclear (row);
    return STORE_OK;
}

/* Each one is told once. */
static store_code_t look_oldest (pg_watch_t *self, pg_store_t *store, store_error_t *error)
{
    PGresult *row;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int8 (&params, self->pinned_ms);
    store_code_t code = pg_link_run (&self->kept->link, OLDEST, &params, &row, error);
    if (code != STORE_OK)
        return code;
    int32_t pid = PQntuples (row) == 0 ? 0 : pg_int4 (row, 0, 0);
    atomic_store (&store->pinned_ms, pid == 0 ? 0 : pg_int8 (row, 0, 3) * 1000);
    if (pid != 0 && pid != self->told_pid) {
        char text[256];
        snprintf (
            text, sizeof (text),
            "a transaction of pid %d (%.60s, %.60s) is %lld s old: until it ends the database "
            "keeps all that was deleted since, and grows",
            pid, pg_text (row, 0, 1), pg_text (row, 0, 2), (long long) pg_int8 (row, 0, 3));
        pg_store_say (store, DATABASE_PINNED, text);
    }
    self->told_pid = pid;
    PQclear (row);
    return STORE_OK;
}

static store_code_t look_standbys (pg_link_t *link, pg_store_t *store, store_error_t *error)
{
    PGresult *row;
    pg_params_t params;
    char name[PG_LINK_NAME_MAX + 1];
    pg_own_link_name (&store->target, name);
    pg_params_clear (&params);
    pg_param_text (&params, name);
    store_code_t code = pg_link_run (link, STANDBYS, &params, &row, error);
    if (code == STORE_OK)
        atomic_store (&store->standbys, (uint64_t) pg_int8 (row, 0, 0));
    PQclear (row);
    return code;
}

/* Whoever waits for the keeper, because the database is back or for an end, does not wait for a
 * vacuum: its answer is taken when it is there. */
static void vacuum (pg_watch_t *self, pg_store_t *store)
{
    store_error_t ignored;
    pg_link_t *link = &self->kept->link;
    if (atomic_load (&store->deleted_bytes) < VACUUM_BYTES)
        return;
    if (pg_link_ask (link, VACUUM, NULL, &ignored) != STORE_OK)
        return;
    atomic_store (&store->deleted_bytes, 0);
    self->asked = link->opened;
    self->until_ms = clock_ms (CLOCK_MONOTONIC) + VACUUM_WAIT_MS;
}

/* Whether the link is taken by a vacuum. One that was asked for by a connection before is not
 * waited for, and one that takes too long goes with its connection. */
static bool is_vacuuming (pg_watch_t *self)
{
    store_error_t ignored;
    pg_link_t *link = &self->kept->link;
    bool asked = self->asked != 0 && pg_link_is_open (link) && self->asked == link->opened;
    bool answered = asked && pg_link_is_answered (link);
    bool late = asked && !answered && clock_ms (CLOCK_MONOTONIC) >= self->until_ms;
    if (asked && !answered && !late)
        return true;
    if (answered)
        pg_link_answer (link, NULL, &ignored);
    if (late)
        pg_link_close (link); /* the keeper opens it again, then it is looked */
    self->asked = 0;
    return late;
}

static void look (pg_watch_t *self, pg_store_t *store)
{
    store_error_t ignored;
    int64_t now_ms = clock_ms (CLOCK_MONOTONIC);
    if (now_ms < self->next_ms)
        return;
    self->next_ms = now_ms + (self->pinned_ms < LOOK_MS ? self->pinned_ms : LOOK_MS);
    if (look_sizes (&self->kept->link, store, &ignored) == STORE_OK &&
        look_standbys (&self->kept->link, store, &ignored) == STORE_OK)
        look_oldest (self, store, &ignored);
}

void pg_watch_look (pg_watch_t *self, pg_store_t *store)
{
    pthread_mutex_lock (&self->kept->lock);
    if (!is_vacuuming (self)) {
        look (self, store);
        vacuum (self, store);
    }
    pthread_mutex_unlock (&self->kept->lock);
}
