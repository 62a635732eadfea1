/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Fixtures of the store's tests (unit/store_support.h) on a real PostgreSQL: one server for the
 * program, a schema for each fixture. Whoever links this has them, for the URI "postgresql". */
#ifndef TASKMQ_TESTS_STORE_FIXTURE_H
#define TASKMQ_TESTS_STORE_FIXTURE_H

#include "support/postgres.h"
#include "unit/store_support.h"

const postgres_t *store_fixture_server (void);
/* What its store is given, to be changed before it is opened. */
struct database_options *store_fixture_options (const fixture_t *fixture);
/* The name of the fixture's schema. */
const char *store_fixture_schema (const fixture_t *fixture);
/* SQL in that schema, as the superuser: its first value as a number, or 0 where there is none. */
long long store_fixture_sql (const fixture_t *fixture, const char *sql);
/* From now on the server has to wait for a standby which never comes: what is committed is durable
 * and seen, and its answer does not come; or not any more. */
void store_fixture_hold_answers (const fixture_t *fixture, bool hold);

#endif
