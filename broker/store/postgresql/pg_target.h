/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where the links of a store lead: what the URI says and leaves open, judged before anything is
 * connected, and how sessions are set. */
#ifndef TASKMQ_STORE_PG_TARGET_H
#define TASKMQ_STORE_PG_TARGET_H

#include <stdatomic.h>

#include "store/error.h"
#include "store/postgresql/database_options.h"
#include "store/postgresql/pg_hosts.h"
#include "store/postgresql/pg_refusal.h"

enum { PG_TAG_SIZE = 17, PG_PLACE_SIZE = 512 };

/* Where all links of a store lead, and how their sessions are set. */
typedef struct pg_target {
    char **keywords; /* for PQconnectdbParams, ended by NULL */
    char **values;
    pg_hosts_t hosts;
    char *settings;        /* SQL for each new session */
    char *schema;          /* a plain name: letters, digits, _ */
    char *where;           /* host and database, for texts */
    char tag[PG_TAG_SIZE]; /* of whom the sessions are, in their names; before the first link */
    /* As the newest link found it. */
    atomic_int_fast64_t system_id; /* of the server; 0: not known yet */
    atomic_int timeline;
    /* Where all that was acknowledged was found; 0: nothing was acknowledged yet. */
    atomic_uint_fast64_t whole_server;
    atomic_bool unreplicated; /* synchronous_standby_names is empty */
    bool is_local;            /* no commit waits for another server, whatever that says */
    atomic_bool unsummed;     /* data_checksums is off */
} pg_target_t;

/* Refuses what is no URI, has a password in it, has a value that libpq does not take or a number
 * that is none, names a root certificate and does not verify, names a passfile beside another one,
 * or names a schema that is no plain name: STORE_ERROR_OPTIONS. A passfile that libpq would pass
 * over: STORE_ERROR_ACCESS. Nothing is connected, and no name is looked up. */
store_code_t pg_target_init (pg_target_t *self, const database_options_t *options,
                             store_error_t *error);
/* As pg_refusal_look, behind a connection that was not made. */
store_code_t pg_target_judge (const pg_target_t *self, pg_refusals_t which, store_error_t *error);
/* "database NAME at HOST:PORT, HOST:PORT (HOST:PORT answered), schema NAME", for texts. */
void pg_target_place (const pg_target_t *self, char out[PG_PLACE_SIZE]);
void pg_target_destroy (pg_target_t *self); /* accepts an all-zero object */

#endif
