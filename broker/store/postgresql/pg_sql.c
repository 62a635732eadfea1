/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_sql.h"

#include "store/postgresql/pg_rows.h"
#include "store/postgresql/pg_whole.h"

/* Bodies are given once: an image without them leaves the stored ones alone. */
#define TASKS_UPDATE                                                                               \
    " ON CONFLICT (ns, number) DO UPDATE SET queue = excluded.queue, session = excluded.session,"  \
    " status = excluded.status, expires_at = excluded.expires_at, leased = excluded.leased,"       \
    " labels = excluded.labels, last_event = excluded.last_event, rest = excluded.rest,"           \
    " payload_bytes = excluded.payload_bytes, result_bytes = excluded.result_bytes,"               \
    " payload = coalesce (excluded.payload, t.payload),"                                           \
    " result = CASE excluded.result_bytes WHEN 0 THEN NULL"                                        \
    " ELSE coalesce (excluded.result, t.result) END"

const char *const PG_SQL_TEXTS[PG_SQL_STATEMENTS] = {
    [PG_SQL_FENCE] = "SELECT 1 FROM fence WHERE shard = $1::int2 AND part = 'w'"
                     " AND epoch = $2::int8 FOR UPDATE",
    [PG_SQL_WRITTEN_READ] = "SELECT epoch, batch, last_number, last_pos, newest_ms, tasks,"
                            " tombstones, event_bytes FROM written WHERE shard = $1::int2",
    [PG_SQL_WRITTEN] = "UPDATE written SET epoch = $2::int8, batch = $3::int8,"
                       " last_number = $4::int8, last_pos = $5::int8, newest_ms = $6::int8,"
                       " tasks = $7::int8, tombstones = $8::int8, event_bytes = $9::int8"
                       " WHERE shard = $1::int2",
    [PG_SQL_NEWEST] = PG_WHOLE_SQL,
    [PG_SQL_JOURNAL_READ] = "SELECT epoch, batch, body FROM journal WHERE shard = $1::int2"
                            " AND (epoch, batch) > ($2::int8, $3::int8)"
                            " ORDER BY epoch, batch LIMIT 1",
    /* The lower bound: without it each one would walk all that were deleted before, as long as an
     * old transaction elsewhere keeps them. */
    [PG_SQL_JOURNAL_DELETE] = "DELETE FROM journal WHERE shard = $1::int2"
                              " AND (epoch, batch) > ($2::int8, $3::int8)"
                              " AND (epoch, batch) <= ($4::int8, $5::int8)",
    [PG_SQL_SPACE_FIND] = "SELECT id FROM namespace WHERE name = $1::text",
    [PG_SQL_SPACE_ADD] = "INSERT INTO namespace (shard, name) VALUES ($2::int2, $1::text)"
                         " RETURNING id",

    [PG_SQL_TASKS_DELETE] = "DELETE FROM task t USING unnest ($1::int4[], $2::int8[])"
                            " AS gone (ns, number) WHERE t.ns = gone.ns AND t.number = gone.number",
    [PG_SQL_ATTEMPTS_DELETE] = "DELETE FROM attempt a USING unnest ($1::int4[], $2::int8[])"
                               " AS gone (ns, number)"
                               " WHERE a.ns = gone.ns AND a.number = gone.number",
    [PG_SQL_LABELS_DELETE] = "DELETE FROM label l USING unnest ($1::int4[], $2::int8[])"
                             " AS gone (ns, number)"
                             " WHERE l.ns = gone.ns AND l.number = gone.number",
    [PG_SQL_TOMBSTONES] = "INSERT INTO tombstone (ns, number, id, code, why, at, owner, queue)"
                          " SELECT * FROM unnest ($1::int4[], $2::int8[], $3::uuid[], $4::int4[],"
                          " $5::int2[], $6::int8[], $7::text[], $8::text[])"
                          " ON CONFLICT DO NOTHING",
    [PG_SQL_TASKS] = "WITH put AS (INSERT INTO task AS t (" PG_ROW_NAMES ")"
                     " SELECT * FROM unnest ($1::int4[], $2::int8[], $3::uuid[], $4::text[],"
                     " $5::text[], $6::text[], $7::int2[], $8::int8[], $9::int8[], $10::bool[],"
                     " $11::int8[], $12::text[], $13::uuid[], $14::bytea[], $15::int4[],"
                     " $16::int4[], $17::bytea[], $18::bytea[], $19::bytea[])" TASKS_UPDATE
                     " RETURNING t.number, t.created_at, t.xmax = 0 AS fresh)"
                     " SELECT number, created_at FROM put WHERE fresh ORDER BY number",
    [PG_SQL_RELABELLED] = "DELETE FROM label l USING unnest ($1::int4[], $2::int8[])"
                          " AS old (ns, number) WHERE l.ns = old.ns AND l.number = old.number"
                          " AND l.place < 16",
    /* They hardly ever change: those that are there stay as they are. */
    [PG_SQL_LABELS] = "INSERT INTO label (ns, number, place, key, value)"
                      " SELECT * FROM unnest ($1::int4[], $2::int8[], $3::int8[], $4::text[],"
                      " $5::bytea[]) ON CONFLICT DO NOTHING",
    /* A task that was removed has none. */
    [PG_SQL_MARKS] =
        "INSERT INTO label (ns, number, place, key, value)"
        " SELECT t.ns, t.number, m.place, m.key, m.value"
        " FROM unnest ($1::int4[], $2::uuid[], $3::int8[], $4::text[], $5::bytea[])"
        " AS m (ns, id, place, key, value)"
        " CROSS JOIN LATERAL " PG_TASK_BY_ID ("m.ns", "m.id") " ON CONFLICT DO NOTHING",
    /* Where its task did not change with it, the namespace is looked up. The newest of a key
     * counts, and a task that is gone has none. */
    [PG_SQL_ATTEMPTS] =
        "INSERT INTO attempt AS a (ns, number, attempt, worker, started_at, ended_at, how,"
        " error_code, error_message, secret, request_id)"
        " SELECT DISTINCT ON (n.ns, m.number, m.attempt) n.ns, m.number, m.attempt, m.worker,"
        " m.started_at, m.ended_at, m.how, m.error_code, m.error_message, m.secret, m.request_id"
        " FROM unnest ($1::int4[], $2::int8[], $3::int8[], $4::text[], $5::int8[], $6::int8[],"
        " $7::int2[], $8::int4[], $9::bytea[], $10::bytea[], $11::bytea[]) WITH ORDINALITY"
        " AS m (ns, number, attempt, worker, started_at, ended_at, how, error_code, error_message,"
        " secret, request_id, n)"
        " CROSS JOIN LATERAL (SELECT coalesce (m.ns, (SELECT t.ns FROM namespace s JOIN task t"
        " ON t.ns = s.id AND t.number = m.number LIMIT 1)) AS ns) n WHERE n.ns IS NOT NULL"
        " ORDER BY n.ns, m.number, m.attempt, m.n DESC"
        " ON CONFLICT (number, attempt, ns) DO UPDATE SET worker = excluded.worker,"
        " started_at = excluded.started_at, ended_at = excluded.ended_at, how = excluded.how,"
        " error_code = excluded.error_code, error_message = excluded.error_message,"
        " secret = excluded.secret, request_id = excluded.request_id",
    [PG_SQL_ROWS_DELETE] = "DELETE FROM row r USING unnest ($2::int2[], $3::bytea[])"
                           " AS gone (kind, key) WHERE r.shard = $1::int2 AND r.kind = gone.kind"
                           " AND r.key = gone.key",
    [PG_SQL_ROWS] = "INSERT INTO row (shard, kind, key, body, expires_at)"
                    " SELECT $1::int2, * FROM unnest ($2::int2[], $3::bytea[], $4::bytea[],"
                    " $5::int8[]) ON CONFLICT (shard, kind, key) DO UPDATE"
                    " SET body = excluded.body, expires_at = excluded.expires_at",
    [PG_SQL_ROW_READ] = "SELECT body FROM row WHERE shard = $1::int2 AND kind = $2::int2"
                        " AND key = $3::bytea",

    /* Asked once, at the start: one look at the end of an index for each namespace. */
    [PG_SQL_NEWEST_ID] =
        "SELECT id FROM (SELECT (SELECT id FROM task t WHERE t.ns = n.id ORDER BY id DESC LIMIT 1)"
        " AS id FROM namespace n UNION ALL SELECT (SELECT id FROM tombstone t WHERE t.ns = n.id"
        " ORDER BY id DESC LIMIT 1) FROM namespace n) found WHERE id IS NOT NULL"
        " ORDER BY id DESC LIMIT 1",
    [PG_SQL_NEWEST_TASK] =
        "SELECT t.number, t.created_at FROM namespace n CROSS JOIN LATERAL (SELECT number,"
        " created_at FROM task WHERE ns = n.id ORDER BY number DESC LIMIT 1) t"
        " ORDER BY t.number DESC LIMIT 1",

    [PG_SQL_EVENTS_OLDEST] =
        "SELECT e.ns, e.first_seq, e.pos, e.count, e.at, octet_length (e.list),"
        " EXISTS (SELECT 1 FROM event l WHERE l.ns = e.ns AND l.first_seq > e.first_seq)"
        " FROM event e WHERE e.pos > $1::int8 ORDER BY e.pos LIMIT $2::int4",
    [PG_SQL_EVENTS_DELETE] = "DELETE FROM event e USING unnest ($1::int4[], $2::int8[])"
                             " AS gone (ns, first_seq)"
                             " WHERE e.ns = gone.ns AND e.first_seq = gone.first_seq",
    /* Tombstones are numbered as they came, so the oldest have the smallest numbers. */
    [PG_SQL_TOMBSTONES_OLDEST] = "SELECT age, at FROM tombstone WHERE age > $1::int8"
                                 " ORDER BY age LIMIT $2::int4",
    [PG_SQL_TOMBSTONES_DELETE] = "DELETE FROM tombstone WHERE age > $1::int8 AND age <= $2::int8",
    [PG_SQL_SPACE_NEEDED] = "SELECT EXISTS (SELECT 1 FROM task WHERE ns = $1::int4)"
                            " OR EXISTS (SELECT 1 FROM tombstone WHERE ns = $1::int4)",
    [PG_SQL_SPACE_NAME] = "SELECT name FROM namespace WHERE id = $1::int4",
    [PG_SQL_SPACE_DELETE] = "DELETE FROM namespace WHERE id = $1::int4",
};

const char PG_SQL_COPY_TASKS[] = "COPY task (" PG_ROW_NAMES ") FROM STDIN (FORMAT binary)";
const char PG_SQL_COPY_EVENTS[] =
    "COPY event (ns, first_seq, pos, count, at, list) FROM STDIN (FORMAT binary)";
