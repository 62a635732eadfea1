/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads in pages (read_t) from the tables.
 *
 * A page is one read-only transaction that sees one state (REPEATABLE READ). It ends after
 * read_us_max, since every statement is bounded: it walks an index from where the page stands, and
 * takes so many rows. What is bounded by nothing else, a bad plan or a lock, is bounded by
 * statement_timeout: then the page is done again, with twice the time. But not for ever: a table
 * that stays locked (lock_timeout), and a page that was tried for long, are out of reach.
 *
 * However many readers a store has, they share PG_READERS_LINKS links, a page each in turn. */
#ifndef TASKMQ_STORE_PG_READERS_H
#define TASKMQ_STORE_PG_READERS_H

#include "store/postgresql/pg_store.h"

enum {
    PG_READERS_LINKS = 2,
    PG_READERS_TIMEOUT_MS = 500,       /* of a statement, at first … */
    PG_READERS_TIMEOUT_MS_MAX = 32000, /* … and at most */
    PG_READERS_TRIES_MS = 60000,       /* of one page, then it is out of reach … */
    PG_READERS_TRIES_END_MS = 5000 /* … and when the process ends, behind what is asked already */
};

typedef struct pg_readers pg_readers_t;

/* Lends the store. Nothing is connected. */
pg_readers_t *pg_readers_new (pg_store_t *store);
void pg_readers_free (pg_readers_t **self); /* after all readers; accepts a NULL object */

/* As a backend's functions of these names. */
store_code_t pg_reader_open (store_reader_t **out, store_t *base, store_error_t *error);
void pg_reader_close (store_reader_t *base);
store_code_t pg_reader_run (store_reader_t *base, read_t *read, store_error_t *error);

#endif
