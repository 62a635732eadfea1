/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is looked at from time to time, on the keeper's thread: how large the tables are, whether
 * an old transaction keeps what was deleted, and how much of the journal is to be vacuumed.
 * Sessions of other roles are seen only with the rights of pg_read_all_stats. */
#ifndef TASKMQ_STORE_PG_WATCH_H
#define TASKMQ_STORE_PG_WATCH_H

#include "store/postgresql/pg_keeper.h"

typedef struct pg_watch {
    pg_kept_t *kept;
    int64_t pinned_ms; /* a transaction of this age is told of */
    int64_t next_ms;   /* mono: of the next look */
    int32_t told_pid;  /* 0: none is that old */
    uint64_t asked;    /* the opening of the link that was asked for a vacuum; 0: none */
    int64_t until_ms;  /* mono: it is given up */
} pg_watch_t;

void pg_watch_init (pg_watch_t *self, pg_store_t *store);
/* Looks, if it is time to. A look that fails is no loss: the link is made anew, and the next one
 * comes. */
void pg_watch_look (pg_watch_t *self, pg_store_t *store);

#endif
