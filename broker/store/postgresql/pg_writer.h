/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Puts what is dirty into the tables, inside a transaction of the caller's. New tasks come by COPY:
 * that costs the server least. Tasks that are there already come as arrays, as everything else. */
#ifndef TASKMQ_STORE_PG_WRITER_H
#define TASKMQ_STORE_PG_WRITER_H

#include "store/dirty.h"
#include "store/order.h"
#include "store/postgresql/pg_link.h"

typedef struct pg_writer pg_writer_t;

/* Table written. */
typedef struct pg_meta {
    uint64_t epoch;
    uint64_t batch; /* of that epoch */
    int64_t last_number;
    uint64_t last_pos;
    int64_t newest_ms;
    uint64_t tasks;
    uint64_t tombstones;
    uint64_t event_bytes; /* of the packed events */
} pg_meta_t;

pg_writer_t *pg_writer_new (pg_link_t *link);
void pg_writer_free (pg_writer_t **self); /* accepts a NULL object */
/* Forgets the numbers of namespaces: after a rollback, and when some were removed. */
void pg_writer_forget_spaces (pg_writer_t *self);

/* Counts what it writes in *meta and *order; *removals grows by those written. */
store_code_t pg_writer_write (pg_writer_t *self, const dirty_t *dirty, pg_meta_t *meta,
                              order_t *order, uint64_t *removals, store_error_t *error);
/* Table written, and the row of the order of times: what was counted, before the commit. */
store_code_t pg_writer_put_meta (pg_writer_t *self, const pg_meta_t *meta, store_error_t *error);
store_code_t pg_writer_put_order (pg_writer_t *self, const order_t *order, store_error_t *error);
/* One row of a kind. */
store_code_t pg_writer_put_row (pg_writer_t *self, const row_t *row, store_error_t *error);

#endif
