/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Whether servers that took no connection will never take one: libpq keeps the code to itself, so
 * another connection is tried to each host, and asked for it.
 *
 * A host refuses for good: no such database, role or password, no line of pg_hba.conf, no right to
 * connect, a certificate of either side that does not verify or is not there, a server without TLS,
 * a setting that it does not know, or let us change. It is merely away for now: it starts, stops,
 * follows another one, or has no session left. Or it says nothing: nobody listens, no route, no
 * answer in time.
 *
 * It is final when a host refuses for good and none is merely away, in whatever order they stand.
 * One that is merely away is there, and may take us in a moment; the look behind that tells more.
 * One that says nothing does not count: it may be gone for ever, and who refuses has to be changed
 * anyway, since it may be the one that takes writes next. */
#ifndef TASKMQ_STORE_PG_REFUSAL_H
#define TASKMQ_STORE_PG_REFUSAL_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "store/error.h"
#include "store/postgresql/pg_hosts.h"

/* What counts as a refusal for good: all of the above, or a wrong or missing password alone. With
 * PG_REFUSALS_PASSWORD every other answer counts as merely away. */
typedef enum pg_refusals { PG_REFUSALS_ALL, PG_REFUSALS_PASSWORD } pg_refusals_t;

/* STORE_ERROR_ACCESS with the reasons: somebody has to change something. Else STORE_ERROR_AWAY, and
 * error is left as it is. All hosts together take 3 s, or half a second each where they are many.
 * The keywords are as PQconnectdbParams has them; `where` is host and database, for the text. */
store_code_t pg_refusal_look (const pg_hosts_t *hosts, const char *const *keywords,
                              const char *const *values, pg_refusals_t which, const char *where,
                              store_error_t *error);
/* The same of one connection that was not made, whose errors are verbose. */
bool pg_refusal_is_final (PGconn *db);

#endif
