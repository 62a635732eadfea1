/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which of several hosts is connected to. libpq tries them in the order of the URI, each for 2 s at
 * least: behind a first host that is gone and swallows everything, each connection of an owner took
 * longer than a short lease. So the one that answered last comes first, and each gets a part of the
 * lease only; where none answered in that time, each gets all of it. Any thread. */
#ifndef TASKMQ_STORE_PG_HOSTS_H
#define TASKMQ_STORE_PG_HOSTS_H

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pg_hosts {
    const char *names; /* lists, as libpq has them; lent; NULL: its own */
    const char *addresses;
    const char *ports;
    size_t count;     /* 0: they are left to libpq */
    int64_t first_ms; /* for each in the first round */
    int64_t most_ms;  /* … and in the second one */
    atomic_size_t good;
} pg_hosts_t;

/* connect_timeout: in s, as the keyword has it. lease_ms: 0 where there is none. */
void pg_hosts_init (pg_hosts_t *self, const char *names, const char *addresses, const char *ports,
                    const char *connect_timeout, int64_t lease_ms);
/* As PQconnectdbParams with these keywords, which are ended by NULL. */
PGconn *pg_hosts_connect (pg_hosts_t *self, const char *const *keywords, const char *const *values);
/* A connection that was begun (PQconnectStartParams), until it is there or cannot be. What it takes
 * too long for is no error of libpq's: its text stays empty. */
void pg_hosts_wait (PGconn *db, int64_t ms);

#endif
