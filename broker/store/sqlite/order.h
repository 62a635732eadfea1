/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The order of times. Tasks are numbered as they are accepted, so their times rise with their
 * numbers, and a time is found by bisection. A task that is imported brings an older time: where
 * such tasks stand is kept in one row, and there each task's time is looked at. */
#ifndef TASKMQ_STORE_ORDER_H
#define TASKMQ_STORE_ORDER_H

#include "store/sqlite/sql.h"

typedef struct order {
    int64_t first; /* all tasks that are older than one before them are from here … */
    int64_t last;  /* … to here; 0: there are none */
    int64_t high;  /* the newest time of all */
} order_t;

/* ?1 kind, ?2 key: bound by order_bind. */
#define ORDER_READ "SELECT body, sum, expires_at FROM row WHERE kind = ?1 AND key = ?2"

enum { ORDER_BYTES = 3 * 8 };
extern const char ORDER_KEY[6];

/* Another task; its number is higher than all before it. True: first or last changed. */
bool order_add (order_t *self, int64_t number, int64_t created_at);
void order_pack (const order_t *self, uint8_t out[ORDER_BYTES]);
void order_bind (sqlite3_stmt *statement);
/* From the row that ORDER_READ found. False: it is damaged. */
bool order_unpack (order_t *out, sqlite3_stmt *row);

/* The row, with the newest time as it is now; *known: there is one. Where there is none, of an
 * older version or damaged, all tasks are gone through. */
store_code_t order_find (order_t *out, bool *known, sqlite3 *db, store_error_t *error);

#endif
