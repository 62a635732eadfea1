/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_hosts.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "timestamp.h"

enum {
    HOSTS_MAX = 16,     /* beyond them the order is libpq's */
    HOST_SIZE = 256,    /* of one, with its end */
    KEYWORDS_MAX = 72,  /* those of a target (pg_link.c), and three more */
    FIRST_MS_MIN = 200, /* for one host, however short the lease is */
    LEASE_PART = 4      /* what of a lease all hosts together may take in the first round */
};

static size_t count_of (const char *list)
{
    size_t count = list == NULL ? 0 : 1;
    for (; list != NULL && *list != '\0'; list++)
        count += *list == ',';
    return count;
}

/* A list of one is good for all. False: it is too long, or not there. */
static bool take_nth (const char *list, size_t n, char out[HOST_SIZE])
{
    if (list == NULL)
        return false;
    for (size_t i = 0; i < n && count_of (list) > 1; i++)
        list += strcspn (list, ",") + 1;
    size_t length = strcspn (list, ",");
    snprintf (out, HOST_SIZE, "%.*s", (int) length, list);
    return length < HOST_SIZE;
}

/* What libpq would refuse is left to it. */
static bool are_ours (const pg_hosts_t *self)
{
    const char *lists[] = {self->names, self->addresses, self->ports};
    char one[HOST_SIZE];
    size_t count = count_of (self->addresses != NULL ? self->addresses : self->names);
    if (count < 2 || count > HOSTS_MAX)
        return false;
    for (size_t i = 0; i < sizeof (lists) / sizeof (lists[0]); i++) {
        size_t has = count_of (lists[i]);
        if (has != 0 && has != count && (i < 2 || has != 1))
            return false;
        for (size_t n = 0; n < has; n++)
            if (!take_nth (lists[i], n, one))
                return false;
    }
    return true;
}

void pg_hosts_init (pg_hosts_t *self, const char *names, const char *addresses, const char *ports,
                    const char *connect_timeout, int64_t lease_ms)
{
    self->names = names;
    self->addresses = addresses;
    self->ports = ports;
    atomic_init (&self->good, 0);
    self->most_ms = strtoll (connect_timeout, NULL, 10) * 1000;
    self->count = 0;
    if (self->most_ms <= 0 || !are_ours (self)) /* 0: somebody wants it to wait for ever */
        return;
    self->count = count_of (addresses != NULL ? addresses : names);
    self->first_ms = lease_ms / LEASE_PART / (int64_t) self->count;
    if (self->first_ms < FIRST_MS_MIN)
        self->first_ms = FIRST_MS_MIN;
    if (self->first_ms > self->most_ms || lease_ms == 0)
        self->first_ms = self->most_ms;
}

void pg_hosts_wait (PGconn *db, int64_t ms)
{
    int64_t until_ms = clock_ms (CLOCK_MONOTONIC) + ms;
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;
    while (PQstatus (db) != CONNECTION_BAD) {
        int64_t left = until_ms - clock_ms (CLOCK_MONOTONIC);
        struct pollfd ready = {.fd = PQsocket (db),
                               .events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int found = left < 0 ? 0 : poll (&ready, 1, (int) left);
        if (found == 0)
            return;
        if (found < 0 && errno != EINTR)
            return;
        if (found > 0)
            next = PQconnectPoll (db);
        if (next == PGRES_POLLING_OK || next == PGRES_POLLING_FAILED)
            return;
    }
}

static PGconn *connect_one (const pg_hosts_t *self, size_t n, int64_t ms,
                            const char *const *keywords, const char *const *values)
{
    const char *own[KEYWORDS_MAX];
    const char *their[KEYWORDS_MAX];
    char parts[3][HOST_SIZE];
    static const char *const names[] = {"host", "hostaddr", "port"};
    const char *lists[] = {self->names, self->addresses, self->ports};
    size_t count = 0;
    for (size_t i = 0; i < 3; i++)
        if (take_nth (lists[i], n, parts[i])) {
            own[count] = names[i];
            their[count++] = parts[i];
        }
    for (size_t i = 0; keywords[i] != NULL && count + 1 < KEYWORDS_MAX; i++) {
        bool is_list = strcmp (keywords[i], names[0]) == 0 || strcmp (keywords[i], names[1]) == 0 ||
                       strcmp (keywords[i], names[2]) == 0;
        own[count] = keywords[i];
        their[count] = values[i];
        count += !is_list;
    }
    own[count] = their[count] = NULL;
    PGconn *db = PQconnectStartParams (own, their, 0);
    if (db != NULL)
        pg_hosts_wait (db, ms);
    return db;
}

/* Nothing another host could say would help. */
static bool is_decided (PGconn *db)
{
    return db == NULL || PQstatus (db) == CONNECTION_OK || PQconnectionNeedsPassword (db) != 0;
}

/* Of two that took no connection the one that says more: it was there, and asked for a password. */
static PGconn *better (PGconn *one, PGconn *other)
{
    bool first = one != NULL && PQconnectionUsedPassword (one) != 0;
    PQfinish (first ? other : one);
    return first ? one : other;
}

PGconn *pg_hosts_connect (pg_hosts_t *self, const char *const *keywords, const char *const *values)
{
    const int64_t rounds[] = {self->first_ms, self->most_ms};
    if (self->count == 0)
        return PQconnectdbParams (keywords, values, 0);
    PGconn *kept = NULL;
    for (size_t round = 0; round < 2; round++) {
        size_t good = atomic_load (&self->good);
        for (size_t i = 0; i < self->count; i++) {
            size_t n = (good + i) % self->count;
            PGconn *db = connect_one (self, n, rounds[round], keywords, values);
            if (db != NULL && PQstatus (db) == CONNECTION_OK)
                atomic_store (&self->good, n);
            if (is_decided (db)) {
                PQfinish (kept);
                return db;
            }
            kept = better (kept, db);
        }
    }
    return kept;
}
