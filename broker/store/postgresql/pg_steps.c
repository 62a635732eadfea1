/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_steps.h"

#include <assert.h>
#include <stddef.h>

/* The first version. Written behind, nine of ten tasks are inserted in their last state and never
 * updated; so what counts is that vacuum runs early, and not that pages have room. */
static const char CREATE_FRAME[] =
    "CREATE TABLE meta (single bool PRIMARY KEY CHECK (single), version int NOT NULL);"

    "CREATE TABLE shard ("
    " shard int2 PRIMARY KEY, generation int8 NOT NULL, epoch int8 NOT NULL, beat int8 NOT NULL,"
    " owner text COLLATE \"C\", system_id int8 NOT NULL, timeline int4 NOT NULL,"
    " pid_commit int4 NOT NULL, pid_write int4 NOT NULL);"
    "CREATE TABLE fence ("
    " shard int2 NOT NULL, part \"char\" NOT NULL, epoch int8 NOT NULL, PRIMARY KEY (shard, part));"

    "CREATE TABLE journal ("
    " shard int2 NOT NULL, epoch int8 NOT NULL, batch int8 NOT NULL, body bytea NOT NULL,"
    " PRIMARY KEY (shard, epoch, batch));"
    "CREATE TABLE written ("
    " shard int2 PRIMARY KEY, epoch int8 NOT NULL, batch int8 NOT NULL,"
    " last_number int8 NOT NULL, last_pos int8 NOT NULL, newest_ms int8 NOT NULL,"
    " tasks int8 NOT NULL, tombstones int8 NOT NULL, event_bytes int8 NOT NULL);"

    "CREATE TABLE namespace ("
    " id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard int2 NOT NULL,"
    " name text COLLATE \"C\" NOT NULL UNIQUE);";

static const char CREATE_TASK[] =
    "CREATE TABLE task ("
    " ns int4 NOT NULL, number int8 NOT NULL, id uuid NOT NULL, owner text COLLATE \"C\" NOT NULL,"
    " queue text COLLATE \"C\" NOT NULL, session text COLLATE \"C\", status int2 NOT NULL,"
    " created_at int8 NOT NULL, expires_at int8 NOT NULL, leased bool NOT NULL,"
    " last_event int8 NOT NULL, dedup_key text COLLATE \"C\", parent uuid,"
    " labels bytea," /* key and value of each, each with a NUL behind it */
    " payload_bytes int4 NOT NULL, result_bytes int4 NOT NULL,"
    " rest bytea NOT NULL," /* message Record of journal.proto, without what has columns */
    " payload bytea, result bytea, PRIMARY KEY (ns, number)) WITH (fillfactor = 90);"
    "CREATE UNIQUE INDEX task_id ON task (ns, id);"
    /* The order is one that the primary key cannot have, not even backwards: who asks for it walks
     * one of these, whatever the server has counted (pg_readers_sql.c). */
    "CREATE INDEX task_queue ON task (ns, queue, status, number DESC NULLS LAST);"
    "CREATE INDEX task_session ON task (ns, session, number DESC NULLS LAST)"
    " WHERE session IS NOT NULL;"
    "CREATE INDEX task_parent ON task (ns, parent, number DESC NULLS LAST)"
    " WHERE parent IS NOT NULL;"
    "CREATE INDEX task_expiry ON task (expires_at, number)"
    " WHERE expires_at > 0 AND status >= 4 AND NOT leased;"
    /* What no time to live ends, and retention looks at. */
    "CREATE INDEX task_lasting ON task (ns, number)"
    " WHERE expires_at = 0 AND status >= 4 AND NOT leased;"
    "CREATE UNIQUE INDEX task_dedup ON task (ns, owner, dedup_key) WHERE dedup_key IS NOT NULL;"
    /* What a start reads: few tasks come here before they have ended. */
    "CREATE INDEX task_live ON task (number) WHERE status < 4 OR leased;";

static const char CREATE_OTHERS[] =
    "CREATE TABLE label ("
    " ns int4 NOT NULL, number int8 NOT NULL, place int8 NOT NULL,"
    " key text COLLATE \"C\" NOT NULL, value bytea NOT NULL, PRIMARY KEY (ns, number, place));"
    "CREATE INDEX label_found ON label (ns, key, value, number DESC NULLS LAST);"

    /* Who reads attempts knows the number, and not always the namespace. */
    "CREATE TABLE attempt ("
    " ns int4 NOT NULL, number int8 NOT NULL, attempt int8 NOT NULL, worker text NOT NULL,"
    " started_at int8 NOT NULL, ended_at int8 NOT NULL, how int2 NOT NULL,"
    " error_code int4 NOT NULL, error_message bytea NOT NULL, secret bytea NOT NULL,"
    " request_id bytea NOT NULL, PRIMARY KEY (number, attempt, ns));"

    "CREATE TABLE tombstone (" /* age orders the removals, so that the oldest can be forgotten */
    " age int8 GENERATED ALWAYS AS IDENTITY, ns int4 NOT NULL, id uuid NOT NULL,"
    " number int8 NOT NULL, code int4 NOT NULL, why int2 NOT NULL, at int8 NOT NULL,"
    " owner text NOT NULL, queue text NOT NULL, PRIMARY KEY (ns, id));"
    "CREATE UNIQUE INDEX tombstone_age ON tombstone (age);"

    "CREATE TABLE event ("
    " ns int4 NOT NULL, first_seq int8 NOT NULL, pos int8 NOT NULL, count int4 NOT NULL,"
    " at int8 NOT NULL, list bytea NOT NULL, PRIMARY KEY (ns, first_seq));"
    "CREATE UNIQUE INDEX event_pos ON event (pos);"

    "CREATE TABLE row (" /* kinds, keys and bodies: core/data/row.h */
    " shard int2 NOT NULL, kind int2 NOT NULL, key bytea NOT NULL, body bytea NOT NULL,"
    " expires_at int8 NOT NULL, PRIMARY KEY (shard, kind, key));"
    "CREATE INDEX row_expires ON row (shard, expires_at, kind, key) WHERE expires_at > 0;";

static const char CREATE_SETTINGS[] =
    "DO $$ DECLARE t text; BEGIN"
    " FOREACH t IN ARRAY ARRAY['journal', 'task', 'label', 'attempt', 'tombstone', 'event', 'row']"
    " LOOP EXECUTE format ('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.02,"
    " autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_scale_factor = 0.2,"
    " autovacuum_vacuum_cost_delay = 0, toast.autovacuum_vacuum_scale_factor = 0.02,"
    " toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0)', t);"
    " END LOOP; END $$;"
    /* pglz would cost more than all else that the server does for a commit. */
    "DO $$ BEGIN"
    " ALTER TABLE journal ALTER body SET COMPRESSION lz4;"
    " ALTER TABLE event ALTER list SET COMPRESSION lz4;"
    " ALTER TABLE task ALTER payload SET COMPRESSION lz4, ALTER result SET COMPRESSION lz4,"
    " ALTER rest SET COMPRESSION lz4;"
    "EXCEPTION WHEN feature_not_supported THEN"
    " ALTER TABLE journal ALTER body SET STORAGE EXTERNAL;"
    " ALTER TABLE event ALTER list SET STORAGE EXTERNAL;"
    " ALTER TABLE task ALTER payload SET STORAGE EXTERNAL, ALTER result SET STORAGE EXTERNAL;"
    "END $$;"

    /* A generation is any number above 0. */
    "INSERT INTO shard VALUES (0, ('x' || substr (replace (gen_random_uuid ()::text, '-', ''), 17))"
    "::bit(64)::int8 & 9223372036854775807 | 1, 0, 0, NULL, 0, 0, 0, 0);"
    "INSERT INTO fence VALUES (0, 'c', 0), (0, 'w', 0);"
    "INSERT INTO written VALUES (0, 0, 0, 0, 0, 0, 0, 0, 0);"
    "INSERT INTO meta VALUES (true, 1);";

/* The second: an owner says by beats that it lives, and how long a lease is. Its sessions are known
 * by their names. */
static const char ADD_LEASE[] = "ALTER TABLE shard ADD COLUMN lease_ms int4 NOT NULL DEFAULT 0,"
                                " DROP COLUMN pid_commit, DROP COLUMN pid_write;"
                                "UPDATE meta SET version = 2;";

/* The third: large bodies. They are found by their hash once they are whole, and what is not is
 * found by an order that no other index has. Compressing them would mostly be in vain. */
static const char ADD_BLOBS[] =
    "CREATE TABLE blob ("
    " id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard int2 NOT NULL, hash bytea NOT NULL,"
    " bytes int8 NOT NULL, touched int8 NOT NULL, whole bool NOT NULL);"
    "CREATE UNIQUE INDEX blob_hash ON blob (shard, hash) WHERE whole;"
    "CREATE INDEX blob_torn ON blob (shard, id DESC NULLS LAST) WHERE NOT whole;"
    "CREATE TABLE blob_chunk ("
    " blob int8 NOT NULL, n int4 NOT NULL, bytes bytea NOT NULL, sum bytea NOT NULL,"
    " PRIMARY KEY (blob, n));"
    "ALTER TABLE blob_chunk ALTER bytes SET STORAGE EXTERNAL;"
    "DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY ARRAY['blob', 'blob_chunk']"
    " LOOP EXECUTE format ('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.02,"
    " autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0)', t); END LOOP;"
    " ALTER TABLE blob_chunk SET (toast.autovacuum_vacuum_scale_factor = 0.02,"
    " toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0);"
    "END $$;"
    "INSERT INTO fence SELECT shard, 'b', epoch FROM fence WHERE part = 'w';"
    "UPDATE meta SET version = 3;";

enum { VERSION = 3, STEP_TEXTS_MAX = 5 };
static const char *const STEPS[VERSION][STEP_TEXTS_MAX] = {
    {CREATE_FRAME, CREATE_TASK, CREATE_OTHERS, CREATE_SETTINGS, NULL},
    {ADD_LEASE, NULL},
    {ADD_BLOBS, NULL},
};

int32_t pg_steps_version (void)
{
    return VERSION;
}

const char *const *pg_steps_from (int32_t version)
{
    assert (version >= 0 && version < VERSION);
    return STEPS[version];
}
