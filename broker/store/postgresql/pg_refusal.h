/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Whether a server that took no connection will never take one: libpq keeps its code to itself, so
 * another connection is tried, and asked for it.
 *
 * Final are: no such database, role or password, no line of pg_hba.conf, no right to connect, a
 * certificate that does not verify, a server without TLS. Not final: nobody listens, no route, a
 * server that starts, stops, follows another one, or has no session left. */
#ifndef TASKMQ_STORE_PG_REFUSAL_H
#define TASKMQ_STORE_PG_REFUSAL_H

#include "store/error.h"

/* STORE_ERROR_ACCESS with the reason: somebody has to change something. Else STORE_ERROR_AWAY, and
 * error is left as it is. Waits some seconds. The keywords are as PQconnectdbParams has them;
 * `where` is host and database, for the text. */
store_code_t pg_refusal_look (char *const *keywords, char *const *values, const char *where,
                              store_error_t *error);

#endif
