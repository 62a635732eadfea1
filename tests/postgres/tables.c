/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgresql/pg_steps.h"
#include "support/cmocka_all.h"

enum { SQL_BYTES = 128 * 1024 };

char *tables_shape (const postgres_t *server, const char *schema)
{
    char sql[1600];
    snprintf (
        sql, sizeof sql,
        "SELECT string_agg (line, E'\\n' ORDER BY line COLLATE \"C\") FROM (SELECT concat_ws (' ', "
        "c.relname, a.attname, format_type (a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, "
        "a.attcompression, a.attidentity, pg_get_expr (d.adbin, d.adrelid)) AS line FROM pg_class "
        "c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT "
        "JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.relnamespace = "
        "to_regnamespace ('%s') AND c.relkind = 'r' UNION ALL SELECT replace (indexdef, '%s.', '') "
        "FROM pg_indexes WHERE schemaname = '%s' UNION ALL SELECT concat_ws (' ', c.relname, "
        "c.reloptions) FROM pg_class c WHERE c.relnamespace = to_regnamespace ('%s') AND c.relkind "
        "= 'r') l",
        schema, schema, schema, schema);
    return postgres_sql (server, sql);
}

int32_t tables_version (const postgres_t *server, const char *schema)
{
    char sql[128];
    snprintf (sql, sizeof sql, "SELECT to_regclass ('%s.meta') IS NOT NULL", schema);
    char *there = postgres_sql (server, sql);
    bool found = there[0] == 't';
    free (there);
    snprintf (sql, sizeof sql, "SELECT version FROM %s.meta", schema);
    return found ? (int32_t) postgres_number (server, sql) : 0;
}

/* Epochs, beats, owners and numbers of batches are each start's own. */
char *tables_content (const postgres_t *server, const char *schema)
{
    char sql[2048];
    static const char *const rows[] = {"task", "label",   "attempt", "tombstone",  "event",
                                       "row",  "journal", "blob",    "blob_chunk", "namespace"};
    int length = snprintf (sql, sizeof sql,
                           "SET search_path = %s; SELECT string_agg (line, E'\\n' ORDER BY line"
                           " COLLATE \"C\") FROM (SELECT concat_ws (' ', 'written', last_number,"
                           " last_pos, newest_ms, tasks, tombstones, event_bytes) AS line FROM"
                           " written UNION ALL SELECT concat_ws (' ', 'fence', f.part,"
                           " f.epoch = s.epoch) FROM fence f JOIN shard s USING (shard)",
                           schema);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        length += snprintf (sql + length, sizeof sql - (size_t) length,
                            " UNION ALL SELECT '%s ' || t::text FROM \"%s\" t", rows[i], rows[i]);
    snprintf (sql + length, sizeof sql - (size_t) length, ") l");
    return postgres_sql (server, sql);
}

static void load_first (const postgres_t *server, const char *schema)
{
    char sql[512];
    char *text = calloc (1, SQL_BYTES);
    FILE *file = fopen (TESTS_STORED "/postgresql-1.sql", "r");
    assert_non_null (file);
    assert_non_null (text);
    assert_true (fread (text, 1, SQL_BYTES - 1, file) > 0);
    fclose (file);
    free (postgres_sql (server, text));
    free (text);
    snprintf (sql, sizeof sql,
              "UPDATE taskmq.shard SET owner = NULL, timeline = 1,"
              " system_id = (SELECT system_identifier FROM pg_control_system ())");
    free (postgres_sql (server, sql));
    snprintf (sql, sizeof sql, "ALTER SCHEMA taskmq RENAME TO %s", schema);
    if (strcmp (schema, "taskmq") != 0)
        free (postgres_sql (server, sql));
}

void tables_make (const postgres_t *server, const char *schema, int32_t version)
{
    char *sql = malloc (SQL_BYTES);
    assert_non_null (sql);
    if (version > 0)
        load_first (server, schema);
    for (int32_t from = 1; from < version; from++)
        for (const char *const *next = pg_steps_from (from); *next != NULL; next++) {
            int length = snprintf (sql, SQL_BYTES, "SET ROLE taskmq; SET search_path = %s; %s",
                                   schema, *next);
            assert_in_range (length, 1, SQL_BYTES - 1);
            free (postgres_sql (server, sql));
        }
    free (sql);
    assert_int_equal (tables_version (server, schema), version);
}
