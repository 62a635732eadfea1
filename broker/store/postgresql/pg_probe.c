/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgresql/database.h"
#include "store/postgresql/pg_instance.h"
#include "store/postgresql/pg_link.h"
#include "store/postgresql/pg_schema.h"

enum {
    FILE_PATH_SIZE = 4096,
    PROBE_WAIT_MS = 5000 /* for each answer: a table may be locked */
};

static void describe (const pg_link_t *link, char found[DATABASE_FOUND_SIZE])
{
    char place[PG_PLACE_SIZE];
    int version = PQserverVersion (link->db);
    pg_target_place (link->target, place);
    snprintf (found, DATABASE_FOUND_SIZE, "PostgreSQL %d.%d, %.480s", version / 10000,
              version % 10000, place);
}

store_code_t database_options_check (const database_options_t *options, store_error_t *error)
{
    pg_target_t target;
    store_code_t code = pg_target_init (&target, options, error);
    pg_target_destroy (&target);
    return code;
}

/* What a start would make. */
static void describe_lack (const char *lacks, char found[DATABASE_FOUND_SIZE])
{
    size_t used = strlen (found);
    if (lacks != NULL)
        snprintf (found + used, DATABASE_FOUND_SIZE - used, " (%s)",
                  strcmp (lacks, "missing") == 0 ? "not there: a start makes it"
                                                 : "empty: a start makes its tables");
}

store_code_t database_probe (const database_options_t *options, const char *directory,
                             char found[DATABASE_FOUND_SIZE], store_error_t *error)
{
    pg_target_t target;
    pg_link_t link;
    pg_tables_of_t owned = {.system_id = 0};
    const char *lacks = NULL;
    found[0] = '\0';
    if (!options->gives_up && directory != NULL)
        pg_instance_owned (&owned, directory);
    store_code_t code = pg_target_init (&target, options, error);
    if (code == STORE_OK) {
        pg_link_init (&link, &target, "probe", NULL, 0);
        link.wait_ms_max = PROBE_WAIT_MS;
        code = pg_link_open (&link, error);
        if (code == STORE_OK)
            describe (&link, found);
        if (code == STORE_OK)
            code = pg_schema_judge (&link, &owned, &lacks, error);
        if (code == STORE_OK)
            describe_lack (lacks, found);
        pg_link_close (&link);
        if (code == STORE_ERROR_BUSY)
            code = error->code = STORE_ERROR_AWAY; /* a start waits for it */
        if (code == STORE_ERROR_AWAY)
            code = pg_target_judge (&target, PG_REFUSALS_ALL, error);
    }
    pg_target_destroy (&target);
    return code;
}

/* History. */

enum { BEGIN_HISTORY, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [BEGIN_HISTORY] =
        "UPDATE shard SET generation = ('x' || substr (replace (gen_random_uuid ()::text, '-', ''),"
        " 17))::bit(64)::int8 & 9223372036854775807 | 1"
        " WHERE shard = $1::int2 AND epoch = $2::int8 AND owner = $3::text"};

store_code_t database_begin_history (const database_options_t *options, const char *directory,
                                     uint64_t epoch, store_error_t *error)
{
    pg_target_t target;
    pg_link_t link;
    pg_params_t params;
    pg_instance_t instance;
    uint64_t rows = 0;
    store_code_t code = pg_target_init (&target, options, error);
    if (code == STORE_OK)
        code = pg_instance_read (&instance, directory, error);
    if (code == STORE_OK) {
        pg_params_clear (&params);
        pg_param_int2 (&params, PG_SHARD);
        pg_param_int8 (&params, (int64_t) epoch);
        pg_param_text (&params, instance.owner);
        pg_link_init (&link, &target, "history", TEXTS, STATEMENTS);
        code = pg_link_open (&link, error);
        if (code == STORE_OK)
            code = pg_link_change (&link, BEGIN_HISTORY, &params, &rows, error);
        if (code == STORE_OK && rows != 1)
            code = store_fail (error, STORE_ERROR_FENCED, "%s: another broker owns the data by now",
                               target.where);
        pg_link_close (&link);
    }
    pg_target_destroy (&target);
    return code;
}

/* Files. */

/* Keywords of a connection whose values are files or directories, or words of another kind but for
 * the first. */
enum { PASSFILE };
static const char *const FILES[] = {[PASSFILE] = "passfile", "sslcert", "sslkey",
                                    "sslrootcert",           "sslcrl",  "sslcrldir"};

static void tell_options (const PQconninfoOption *options,
                          void (*file) (void *context, const char *path), void *context)
{
    for (; options != NULL && options->keyword != NULL; options++)
        for (size_t i = 0; i < sizeof (FILES) / sizeof (FILES[0]); i++)
            if (strcmp (options->keyword, FILES[i]) == 0 && options->val != NULL &&
                (options->val[0] == '/' || (i == PASSFILE && options->val[0] != '\0')))
                file (context, options->val);
}

void database_files (const database_options_t *options,
                     void (*file) (void *context, const char *path), void *context)
{
    static const char *const DEFAULTS[] = {".pgpass", ".postgresql/root.crt"};
    char path[FILE_PATH_SIZE];
    const char *home = getenv ("HOME");
    PQconninfoOption *given = PQconninfoParse (options->uri, NULL);
    PQconninfoOption *defaults = PQconndefaults (); /* of the environment */
    tell_options (given, file, context);
    tell_options (defaults, file, context);
    if (options->passfile != NULL)
        file (context, options->passfile);
    for (size_t i = 0; home != NULL && i < sizeof (DEFAULTS) / sizeof (DEFAULTS[0]); i++) {
        snprintf (path, sizeof (path), "%s/%s", home, DEFAULTS[i]);
        file (context, path);
    }
    PQconninfoFree (given);
    PQconninfoFree (defaults);
}
