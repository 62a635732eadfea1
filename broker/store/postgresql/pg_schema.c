/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_schema.h"

#include <stdio.h>

#include "store/postgresql/pg_steps.h"

enum { HAS_SCHEMA, HAS_META, READ_VERSION, LOCK, OWN, STATEMENTS };

enum { LOOK_WAIT_MS = 30000 /* of a start that only looks, or makes small tables */ };

static const char *const TEXTS[STATEMENTS] = {
    /* Whether it is there, empty, and ours to make things in. */
    [HAS_SCHEMA] = "SELECT n.oid IS NOT NULL, EXISTS (SELECT 1 FROM pg_class c WHERE"
                   " c.relnamespace = n.oid), coalesce (has_schema_privilege (n.oid, 'CREATE'),"
                   " has_database_privilege (current_database (), 'CREATE')),"
                   " has_schema_privilege (n.oid, 'USAGE'), (SELECT pg_get_userbyid (nspowner)"
                   " FROM pg_namespace WHERE oid = n.oid)"
                   " FROM (SELECT to_regnamespace ($1::text)::oid AS oid) n",
    [HAS_META] = "SELECT has_table_privilege (attrelid, 'UPDATE'),"
                 " (SELECT pg_get_userbyid (relowner) FROM pg_class WHERE oid = attrelid)"
                 " FROM pg_attribute WHERE attrelid = to_regclass ($1::text || '.meta')"
                 " AND attname = 'version' AND EXISTS (SELECT 1 FROM pg_attribute WHERE"
                 " attrelid = to_regclass ($1::text || '.fence') AND attname = 'part')",
    [READ_VERSION] = "SELECT version FROM meta",
    [OWN] = ("UPDATE shard SET beat = beat + 1 WHERE shard = 0 AND epoch = $1::int8"
             " AND owner = $2::text"),
    [LOCK] = "SELECT pg_advisory_xact_lock (hashtext ('taskmq schema ' || $1::text))",
};

/* What is found there. */
typedef struct found {
    bool schema;
    bool objects; /* it is not empty */
    bool may;     /* make what is missing */
    bool ours;
    int32_t version; /* 0: nothing is there */
} found_t;

static store_code_t read_version (pg_link_t *link, int32_t *version, store_error_t *error)
{
    PGresult *result;
    store_code_t code = pg_link_run (link, READ_VERSION, NULL, &result, error);
    if (code == STORE_OK && PQntuples (result) == 1)
        *version = pg_int4 (result, 0, 0);
    else if (code == STORE_OK)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.meta is empty",
                           link->target->where, link->target->schema);
    if (code == STORE_OK && *version < 1)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table %s.meta has version %d",
                           link->target->where, link->target->schema, *version);
    PQclear (result);
    return code;
}

/* The role has to be the one that made them: a broker changes all of them. */
static store_code_t judge_right (const pg_link_t *link, const PGresult *row, int column, bool empty,
                                 store_error_t *error)
{
    if (pg_is_null (row, 0, column) || pg_bool (row, 0, column))
        return STORE_OK;
    if (empty)
        return store_fail (error, STORE_ERROR_ACCESS,
                           "%s: schema %s belongs to another role (%s): have USAGE and CREATE on "
                           "it granted, or name another schema (database/schema)",
                           link->target->where, link->target->schema, pg_text (row, 0, column + 1));
    return store_fail (error, STORE_ERROR_ACCESS,
                       "%s: the tables of schema %s belong to another role (%s): name that one in "
                       "database/uri, or another schema (database/schema)",
                       link->target->where, link->target->schema, pg_text (row, 0, column + 1));
}

static store_code_t look (pg_link_t *link, found_t *found, store_error_t *error)
{
    pg_params_t params;
    PGresult *result;
    *found = (found_t){0};
    pg_params_clear (&params);
    pg_param_text (&params, link->target->schema);
    store_code_t code = pg_link_run (link, HAS_SCHEMA, &params, &result, error);
    if (code != STORE_OK)
        return code;
    found->schema = pg_bool (result, 0, 0);
    found->objects = pg_bool (result, 0, 1);
    found->may = pg_bool (result, 0, 2);
    code = judge_right (link, result, 3, !found->objects, error);
    PQclear (result);
    if (code == STORE_OK)
        code = pg_link_run (link, HAS_META, &params, &result, error);
    if (code != STORE_OK)
        return code;
    found->ours = PQntuples (result) == 1;
    if (found->ours)
        code = judge_right (link, result, 0, false, error);
    PQclear (result);
    return code == STORE_OK && found->ours ? read_version (link, &found->version, error) : code;
}

store_code_t pg_schema_newer (const pg_target_t *target, int32_t version, store_error_t *error)
{
    return store_fail (error, STORE_ERROR_NEWER,
                       "%s: schema %s was written by a newer version (%d, known up to %d): "
                       "install that one here, too",
                       target->where, target->schema, version, pg_steps_version ());
}

/* NULL: it has tables. */
static const char *lacks_what (const found_t *found)
{
    return found->version != 0 ? NULL : found->schema ? "empty" : "missing";
}

/* Decides whose this is before anything is written. */
static store_code_t judge (const pg_link_t *link, const pg_tables_of_t *owned, const found_t *found,
                           store_error_t *error)
{
    const pg_target_t *target = link->target;
    if (!found->ours && found->objects)
        return store_fail (error, STORE_ERROR_FOREIGN,
                           "%s: schema %s has tables of another application; give database/schema "
                           "another name",
                           target->where, target->schema);
    if (found->version > pg_steps_version ())
        return pg_schema_newer (target, found->version, error);
    if (found->version == 0 && owned != NULL && owned->system_id != 0)
        return pg_instance_lacks (owned, link, lacks_what (found), error);
    if (found->version < pg_steps_version () && !found->may)
        return store_fail (error, STORE_ERROR_ACCESS,
                           "%s: the role may not make schema %s: grant it CREATE on the database, "
                           "or make the schema for it",
                           target->where, target->schema);
    return STORE_OK;
}

static store_code_t lock (pg_link_t *link, store_error_t *error)
{
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_text (&params, link->target->schema);
    return pg_link_run (link, LOCK, &params, NULL, error);
}

/* Who brings the tables to a version. */
typedef struct upgrade {
    int32_t version;
    uint64_t epoch;              /* of the owner; … */
    const char *owner;           /* … NULL: there is none yet, and the tables are made */
    const pg_tables_of_t *owned; /* pg_schema_prepare */
} upgrade_t;

/* What changes tables holds the row of their owner: nobody takes over meanwhile. It is a beat, too,
 * so that who waits for that row finds that its owner lives. */
static store_code_t prove (pg_link_t *link, const upgrade_t *self, store_error_t *error)
{
    uint64_t rows = 0;
    pg_params_t params;
    if (self->owner == NULL)
        return STORE_OK;
    pg_params_clear (&params);
    pg_param_int8 (&params, (int64_t) self->epoch);
    pg_param_text (&params, self->owner);
    store_code_t code = pg_link_change (link, OWN, &params, &rows, error);
    if (code == STORE_OK && rows == 0)
        code =
            store_fail (error, STORE_ERROR_FENCED, "%s: another broker took over from epoch %llu",
                        link->target->where, (unsigned long long) self->epoch);
    return code;
}

static store_code_t run_steps (pg_link_t *link, int32_t from, int32_t to, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (int32_t version = from; code == STORE_OK && version < to; version++)
        for (const char *const *next = pg_steps_from (version); code == STORE_OK && *next != NULL;
             next++)
            code = pg_link_do (link, *next, error);
    return code;
}

/* One step, inside its transaction. *version: what was there before it. Where nothing is, all are
 * one: who makes tables leaves none of an earlier version, which its owner alone could bring to
 * this one. */
static store_code_t step (pg_link_t *link, const upgrade_t *self, int32_t *version,
                          store_error_t *error)
{
    char text[160];
    found_t found = {.version = 0};
    store_code_t code = pg_link_do (link, "SET LOCAL lock_timeout = '5s'", error);
    if (code == STORE_OK)
        code = lock (link, error);
    if (code == STORE_OK)
        code = look (link, &found, error);
    if (code == STORE_OK)
        code = judge (link, self->owned, &found, error);
    *version = found.version;
    if (code == STORE_OK && found.version < self->version)
        code = prove (link, self, error);
    if (code != STORE_OK || found.version >= self->version)
        return code;
    snprintf (text, sizeof (text), "CREATE SCHEMA IF NOT EXISTS \"%s\"", link->target->schema);
    if (!found.schema)
        code = pg_link_do (link, text, error);
    int32_t to = found.version == 0 ? pg_steps_version () : found.version + 1;
    return code == STORE_OK ? run_steps (link, found.version, to, error) : code;
}

/* Locks that stay taken are waited for as a database that is out of reach: a start may be told to
 * stop meanwhile. An owner's step may rewrite large tables, and is waited for as long as it takes:
 * begun anew it would take as long. What ends such a start ends its process (start_stop.h). */
static store_code_t bring_to (pg_target_t *target, const upgrade_t *self, int32_t *from,
                              store_error_t *error)
{
    pg_link_t maker;
    int32_t version = -1; /* not known yet */
    pg_link_init (&maker, target, "schema", TEXTS, STATEMENTS);
    if (self->owner == NULL)
        maker.wait_ms_max = LOOK_WAIT_MS;
    store_code_t code = pg_link_open (&maker, error);
    *from = -1;
    while (code == STORE_OK && version < self->version) {
        code = pg_link_begin (&maker, error);
        if (code == STORE_OK)
            code = step (&maker, self, &version, error);
        if (code == STORE_OK)
            code = pg_link_commit (&maker, error);
        if (code == STORE_OK && *from < 0)
            *from = version;
    }
    pg_link_close (&maker);
    return code == STORE_ERROR_BUSY ? STORE_ERROR_AWAY : code;
}

store_code_t pg_schema_judge (pg_link_t *link, const pg_tables_of_t *owned, const char **lacks,
                              store_error_t *error)
{
    found_t found = {.version = 0};
    store_code_t code = pg_link_use (link, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        code = look (link, &found, error);
    *lacks = lacks_what (&found);
    return code == STORE_OK ? judge (link, owned, &found, error) : code;
}

store_code_t pg_schema_prepare (pg_target_t *target, const pg_tables_of_t *owned,
                                store_error_t *error)
{
    int32_t from;
    return bring_to (target, &(upgrade_t){.version = 1, .owned = owned}, &from, error);
}

store_code_t pg_schema_upgrade (pg_target_t *target, uint64_t epoch, const char *owner,
                                int32_t *from, store_error_t *error)
{
    return bring_to (target,
                     &(upgrade_t){.version = pg_steps_version (), .epoch = epoch, .owner = owner},
                     from, error);
}

/* For a restore. */

store_code_t pg_schema_look (pg_link_t *link, bool *empty, store_error_t *error)
{
    found_t found = {.version = 0};
    store_code_t code = pg_link_use (link, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        code = pg_link_do (link, "SET LOCAL lock_timeout = '5s'", error);
    if (code == STORE_OK)
        code = lock (link, error);
    if (code == STORE_ERROR_BUSY)
        return store_fail (error, STORE_ERROR_OWNED,
                           "%s: somebody else is making schema %s, a broker or a restore",
                           link->target->where, link->target->schema);
    if (code == STORE_OK)
        code = look (link, &found, error);
    *empty = !found.objects;
    return code;
}

store_code_t pg_schema_make (pg_link_t *link, store_error_t *error)
{
    int32_t from;
    return step (link, &(upgrade_t){.version = 1}, &from, error);
}
