/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgresql/database_options.h"
#include "support/timing.h"

typedef struct database {
    database_options_t options;
    char uri[POSTGRES_URI_SIZE];
    char schema[32];
} database_t;

static postgres_t server;

static void end_server (void)
{
    postgres_destroy (&server);
}

/* It could have standbys, so that commits can be made to wait for one. */
const postgres_t *store_fixture_server (void)
{
    if (server.pid == 0) {
        postgres_init (&server);
        server.settings[0] = "wal_level=replica";
        server.settings[1] = "max_wal_senders=2";
        postgres_start (&server);
        atexit (end_server);
    }
    return &server;
}

static void begin (fixture_t *fixture)
{
    static unsigned count;
    database_t *self = calloc (1, sizeof *self);
    assert_non_null (self);
    postgres_uri (store_fixture_server (), "taskmq", "taskmq", self->uri);
    snprintf (self->schema, sizeof self->schema, "fixture_%u", ++count);
    self->options.uri = self->uri;
    self->options.schema = self->schema;
    fixture->options.database = &self->options;
}

static void end (fixture_t *fixture)
{
    free ((void *) fixture->options.database);
    fixture->options.database = NULL;
}

static const fixture_needs_t NEEDS = {"postgresql", begin, end};

__attribute__ ((constructor)) static void set_up (void)
{
    postgres_need ();
    fixture_needs = &NEEDS;
}

database_options_t *store_fixture_options (const fixture_t *fixture)
{
    return (database_options_t *) fixture->options.database; /* as begin made it */
}

const char *store_fixture_schema (const fixture_t *fixture)
{
    return fixture->options.database->schema;
}

long long store_fixture_sql (const fixture_t *fixture, const char *sql)
{
    char text[2048];
    snprintf (text, sizeof text, "SET search_path = %s; SET synchronous_commit = local; %s",
              store_fixture_schema (fixture), sql);
    char *found = postgres_sql (store_fixture_server (), text);
    long long number = strtoll (found, NULL, 10);
    free (found);
    return number;
}

void store_fixture_hold_answers (const fixture_t *f, bool hold)
{
    free (postgres_sql (store_fixture_server (),
                        hold ? "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
                             : "ALTER SYSTEM RESET synchronous_standby_names"));
    free (postgres_sql (store_fixture_server (), "SELECT pg_reload_conf ()"));
    WAIT_FOR (store_fixture_sql (f, "SELECT (current_setting ('synchronous_standby_names') <> '')"
                                    "::int") == hold,
              TIMING_PATIENCE_MS);
    /* The setting counts when the checkpointer has read it: before its second one at the latest. */
    for (int i = 0; i < 2; i++)
        free (postgres_sql (store_fixture_server (), "CHECKPOINT"));
}
