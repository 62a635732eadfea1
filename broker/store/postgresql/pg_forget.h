/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the tables find and remove what is forgotten (store/forget.h), in a transaction of the
 * writer's. Blocks of events are removed together, at the end. */
#ifndef TASKMQ_STORE_PG_FORGET_H
#define TASKMQ_STORE_PG_FORGET_H

#include "store/forget.h"
#include "store/postgresql/pg_link.h"

typedef struct pg_forget {
    pg_link_t *link;     /* with the statements of pg_sql.h */
    pg_array_t spaces;   /* of the blocks to be removed … */
    pg_array_t firsts;   /* … with their first sequences */
    int64_t removed_age; /* tombstones up to it are gone: the next look begins behind them */
    int64_t removes_age; /* … once this transaction is committed */
    int64_t removed_pos; /* the same of blocks */
    int64_t removes_pos;
} pg_forget_t;

/* Of a pg_forget_t. */
extern const forget_calls_t pg_forget_calls;

void pg_forget_init (pg_forget_t *self, pg_link_t *link);
void pg_forget_destroy (pg_forget_t *self);
void pg_forget_begin (pg_forget_t *self);
/* Removes the blocks; before the commit. */
store_code_t pg_forget_flush (pg_forget_t *self, store_error_t *error);
void pg_forget_committed (pg_forget_t *self);

#endif
