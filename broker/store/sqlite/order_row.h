/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The row of table row that keeps the order of times (store/order.h). */
#ifndef TASKMQ_STORE_ORDER_ROW_H
#define TASKMQ_STORE_ORDER_ROW_H

#include "store/order.h"
#include "store/sqlite/sql.h"

/* ?1 kind, ?2 key: bound by order_bind. */
#define ORDER_READ "SELECT body, sum, expires_at FROM row WHERE kind = ?1 AND key = ?2"

void order_bind (sqlite3_stmt *statement);
/* From the row that ORDER_READ found. False: it is damaged. */
bool order_unpack_row (order_t *out, sqlite3_stmt *row);

/* The row, with the newest time as it is now; *known: there is one. Where there is none, of an
 * older version or damaged, all tasks are gone through. */
store_code_t order_find (order_t *out, bool *known, sqlite3 *db, store_error_t *error);

#endif
