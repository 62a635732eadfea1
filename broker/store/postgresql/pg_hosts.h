/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which of several hosts is connected to. libpq tries them in the order of the URI, each for 2 s at
 * least: behind a first host that is gone and swallows everything, each connection of an owner took
 * longer than a short lease. So the one that answered last comes first, and each gets a part of the
 * lease only; where that was too short for one, each gets all of its time, but for those that
 * refused for good. Whoever judges a refusal (pg_refusal.h) asks them once more. Any thread.
 *
 * Names are looked up within libpq, on the thread that connects and without a time limit. */
#ifndef TASKMQ_STORE_PG_HOSTS_H
#define TASKMQ_STORE_PG_HOSTS_H

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/error.h"

enum {
    PG_HOSTS_PLACE = 3,      /* the keywords that say where a host is: host, hostaddr, port */
    PG_HOSTS_WHY_SIZE = 344, /* a text of all hosts, with its end; it fits into an error */
    PG_HOSTS_LIST_SIZE = 112 /* … of where they are */
};

typedef struct pg_hosts {
    const char *lists[PG_HOSTS_PLACE]; /* as libpq has them; lent; NULL: its own */
    size_t count;                      /* 0: they are left to libpq */
    int64_t first_ms;                  /* for each in the first round */
    int64_t most_ms;                   /* … and in the second one */
    atomic_size_t good;
    /* Of a connection that was not made, with verbose errors: that host refused for good. NULL:
     * nobody can tell. */
    bool (*is_final) (PGconn *db);
} pg_hosts_t;

/* connect_timeout: in s, as the keyword has it. lease_ms: 0 where there is none. is_final stays
 * NULL. */
void pg_hosts_init (pg_hosts_t *self, const char *names, const char *addresses, const char *ports,
                    const char *connect_timeout, int64_t lease_ms);
/* STORE_ERROR_OPTIONS: no connection can come of these lists and keywords (as PQconnectdbParams has
 * them, ended by NULL), whatever a server does: one of them has a value that libpq does not take.
 * Nothing is connected, and no name is looked up. */
store_code_t pg_hosts_check (const pg_hosts_t *self, const char *const *keywords,
                             const char *const *values, store_error_t *error);
/* "HOST:PORT, HOST:PORT": each with the port that libpq tries there, and how many are left out. */
void pg_hosts_list (const pg_hosts_t *self, char list[PG_HOSTS_LIST_SIZE]);
/* As PQconnectdbParams with these keywords. Where no connection was made, `why` has the reason of
 * each host, and the result is that of the one which got furthest. The server's notices are
 * dropped. */
PGconn *pg_hosts_connect (pg_hosts_t *self, const char *const *keywords, const char *const *values,
                          char why[PG_HOSTS_WHY_SIZE]);
/* The host that answered last is of no use: the next one is tried first. */
void pg_hosts_pass (pg_hosts_t *self);
/* "HOST:PORT" of the one that answered last, cut if it is long; empty where they are left to libpq.
 */
void pg_hosts_answered (const pg_hosts_t *self, char out[PG_HOSTS_LIST_SIZE]);
/* How many hosts can be asked one by one, at least 1; and the beginning of a connection to the n-th
 * of them, for pg_hosts_wait; to all of them where they are left to libpq. NULL: no memory. */
size_t pg_hosts_count (const pg_hosts_t *self);
PGconn *pg_hosts_begin (const pg_hosts_t *self, size_t n, const char *const *keywords,
                        const char *const *values);
/* A connection that was begun, until it is there or cannot be. What it takes too long for is no
 * error of libpq's: its text stays empty. */
void pg_hosts_wait (PGconn *db, int64_t ms);

#endif
