/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_readers_sql.h"

#include "store/postgresql/pg_rows.h"

const char PG_READ_SESSION[] =
    "SET default_transaction_isolation = 'repeatable read'; SET default_transaction_read_only = on;"
    " SET enable_sort = off; SET enable_incremental_sort = off; SET enable_seqscan = off;"
    " SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
    " SET enable_material = off; SET enable_memoize = off; SET max_parallel_workers_per_gather = 0;"
    " SET lock_timeout = '2s'";

/* The order of the indexes that are made for it. The primary keys do not have it, and nothing may
 * be sorted (PG_READ_SESSION), so no other index is walked and thrown away. */
#define NEWEST_FIRST(TABLE) " ORDER BY " TABLE ".number DESC NULLS LAST"

/* Which of the filter's labels, by their places, the task has. */
#define HAS(NUMBER, KEYS, VALUES)                                                                  \
    "CASE WHEN cardinality (" KEYS "::text[]) > 0 THEN"                                            \
    " (SELECT coalesce (bit_or (1::int8 << (f.place - 1)::int), 0)"                                \
    " FROM unnest (" KEYS "::text[], " VALUES                                                      \
    "::bytea[]) WITH ORDINALITY AS f (key, value, place)"                                          \
    " WHERE (SELECT true FROM label l WHERE l.ns = $1::int4 AND l.key = f.key"                     \
    " AND l.value = f.value AND l.number BETWEEN " NUMBER                                          \
    " AND " NUMBER NEWEST_FIRST ("l") " LIMIT 1)) ELSE 0 END"

/* $1 namespace, $2 lowest number, $3 limit for each range, $4 numbers below which, $5 and $6 labels
 * to be looked for, $7 and $8 keys. */
#define WALK(RANGES, ENTRIES)                                                                      \
    "SELECT r.place, e.number, e.queue, e.session, e.status, e.owner, e.created_at,"               \
    " " HAS ("e.number", "$5", "$6") " FROM unnest (" RANGES ", place)"                            \
                                     " CROSS JOIN LATERAL (SELECT t.number, t.queue, t.session,"   \
                                     " t.status, t.owner, t.created_at FROM " ENTRIES              \
                                     " LIMIT $3::int8) e"
#define BY_QUEUE(HIGHS, QUEUES, STATUSES)                                                          \
    HIGHS "::int8[], " QUEUES "::text[], " STATUSES "::int2[])"                                    \
          " WITH ORDINALITY AS r (high, queue, status"
#define BY_SESSION(HIGHS, SESSIONS)                                                                \
    HIGHS "::int8[], " SESSIONS "::text[]) WITH ORDINALITY AS r (high, session"
#define BY_LABEL(HIGHS, KEYS, VALUES)                                                              \
    HIGHS "::int8[], " KEYS "::text[], " VALUES "::bytea[])"                                       \
          " WITH ORDINALITY AS r (high, key, value"
#define BELOW(TABLE) TABLE ".number < r.high AND " TABLE ".number >= $2::int8" NEWEST_FIRST (TABLE)
#define OF_QUEUE                                                                                   \
    "task t WHERE t.ns = $1::int4 AND t.queue = r.queue AND t.status = r.status AND " BELOW ("t")
#define OF_SESSION "task t WHERE t.ns = $1::int4 AND t.session = r.session AND " BELOW ("t")
#define OF_PARENT "task t WHERE t.ns = $1::int4 AND t.parent = r.parent AND " BELOW ("t")
#define LABELLED " WHERE l.ns = $1::int4 AND l.key = r.key AND l.value = r.value AND " BELOW ("l")

/* One task: ordered, so that it is this index again. */
#define WITH_NUMBER(SPACE, NUMBER)                                                                 \
    "FROM task t WHERE t.ns = " SPACE " AND t.number BETWEEN " NUMBER " AND " NUMBER               \
    " ORDER BY t.number LIMIT 1"
#define WITH_ID(SPACE, ID)                                                                         \
    "FROM task t WHERE t.ns = " SPACE " AND t.id BETWEEN " ID " AND " ID " ORDER BY t.id LIMIT 1"
#define NAMED(NAME) "(SELECT n.id FROM namespace n WHERE n.name = " NAME ")"
#define ENDS_WITH "right (replace (t.id::text, '-', ''), length ($3::text)) = $3::text"

/* At most $3 entries of all ranges together. */
#define FEW(RANGES, ENTRIES)                                                                       \
    "SELECT count (*) FROM (SELECT 1 FROM unnest (" RANGES ", place)"                              \
    " CROSS JOIN LATERAL (SELECT 1 FROM " ENTRIES " LIMIT $3::int8) e LIMIT $3::int8) n"

#define EVENT_SPAN "e.first_seq, e.count, e.at, e.pos"
#define EVENT_OF "FROM event e WHERE e.ns = $1::int4 AND "
#define EVENT_NAMED EVENT_SPAN ", e.list, e.ns, (SELECT name FROM namespace n WHERE n.id = e.ns)"

const char *const PG_READ_TEXTS[PG_READ_STATEMENTS] = {
    [PG_WALK_BY_QUEUE] = WALK (BY_QUEUE ("$4", "$7", "$8"), OF_QUEUE),
    [PG_WALK_BY_SESSION] = WALK (BY_SESSION ("$4", "$7"), OF_SESSION),
    /* The label's own index has the order; the task is one step from there. */
    [PG_WALK_BY_LABEL] = WALK (
        BY_LABEL ("$4", "$7", "$8"),
        "label l CROSS JOIN LATERAL (SELECT t.number, t.queue, t.session,"
        " t.status, t.owner, t.created_at " WITH_NUMBER ("$1::int4", "l.number") ") t" LABELLED),
    [PG_WALK_BY_PARENT] =
        WALK ("$4::int8[], $7::uuid[]) WITH ORDINALITY AS r (high, parent", OF_PARENT),
    [PG_WALK_BY_NUMBER] = WALK ("$4::int8[]) WITH ORDINALITY AS r (high",
                                "task t WHERE t.ns = $1::int4 AND t.number < r.high"
                                " AND t.number >= $2::int8 ORDER BY t.number DESC"),
    [PG_FEW_BY_QUEUE] = FEW (BY_QUEUE ("$4", "$5", "$6"), OF_QUEUE),
    [PG_FEW_BY_SESSION] = FEW (BY_SESSION ("$4", "$5"), OF_SESSION),
    [PG_FEW_BY_LABEL] = FEW (BY_LABEL ("$4", "$5", "$6"), "label l" LABELLED),
    [PG_COUNT_BY_QUEUE] = "SELECT r.place, e.n FROM unnest (" BY_QUEUE (
        "$3", "$4", "$5") ", place) CROSS JOIN LATERAL (SELECT count (*) AS n FROM"
                          " (SELECT 1 FROM " OF_QUEUE ") x) e",
    [PG_COUNT_BY_NUMBER] = "SELECT 1::int8, count (*) FROM (SELECT 1 FROM task t"
                           " WHERE t.ns = $1::int4 AND t.number < $3::int8 AND t.number >= $2::int8"
                           " ORDER BY t.number) x",
    [PG_SPACE] = "SELECT id FROM namespace WHERE name = $1::text",
    /* From each queue to the next one, however many tasks it has. */
    [PG_QUEUES] =
        "WITH RECURSIVE q (queue) AS ("
        "(SELECT t.queue FROM task t WHERE t.ns = $1::int4 ORDER BY t.queue LIMIT 1) UNION ALL"
        " SELECT (SELECT t.queue FROM task t WHERE t.ns = $1::int4 AND t.queue > q.queue"
        " ORDER BY t.queue LIMIT 1) FROM q WHERE q.queue IS NOT NULL)"
        " SELECT queue FROM q WHERE queue IS NOT NULL LIMIT $2::int8",
    [PG_BOUNDS] = "SELECT (SELECT t.number FROM task t WHERE t.ns = $1::int4 ORDER BY t.number"
                  " LIMIT 1), (SELECT t.number FROM task t WHERE t.ns = $1::int4"
                  " ORDER BY t.number DESC LIMIT 1)",
    [PG_CREATED] = "SELECT t.number, t.created_at FROM task t WHERE t.ns = $1::int4"
                   " AND t.number >= $2::int8 ORDER BY t.number LIMIT 1",
    [PG_ORDER] = "SELECT body FROM row WHERE shard = $1::int2 AND kind = $2::int2"
                 " AND key = $3::bytea",
    [PG_RECORDS] = "SELECT " PG_ROW_BARE ", " HAS (
        "t.number", "$3", "$4") " FROM unnest ($2::int8[]) AS r (number) CROSS JOIN LATERAL "
                                "(SELECT * " WITH_NUMBER ("$1::int4", "r.number") ") t",
    /* Ids are made in the order of time, so the index alone has the newest. */
    [PG_NEWEST_IDS] =
        "SELECT t.id, t.queue, t.owner FROM (SELECT id FROM task WHERE ns = $1::int4"
        " ORDER BY id DESC LIMIT $2::int8) x CROSS JOIN LATERAL (SELECT t.id, t.queue, "
        "t.owner " WITH_ID (
            "$1::int4",
            "x.id") ") t WHERE "
                    "right (replace (x.id::text, '-', ''), length ($3::text)) = $3::text",
    [PG_IDS] = "SELECT t.id, t.queue, t.owner FROM unnest ($2::int8[]) AS r (number)"
               " CROSS JOIN LATERAL (SELECT t.id, t.queue, t.owner " WITH_NUMBER (
                   "$1::int4", "r.number") ") t WHERE " ENDS_WITH,
    [PG_NEWEST_OF] = "SELECT r.place, t.last_event FROM unnest ($1::text[], $2::uuid[])"
                     " WITH ORDINALITY AS r (name, id, place) CROSS JOIN LATERAL (SELECT"
                     " t.last_event " WITH_ID (NAMED ("r.name"), "r.id") ") t",
    [PG_ATTEMPTS] = "SELECT " PG_ATTEMPT_COLUMNS " FROM attempt a WHERE a.number = $1::int8"
                    " AND a.attempt > $2::int8 ORDER BY a.attempt LIMIT $3::int8",
    [PG_LASTING] =
        "SELECT " PG_ROW_BARE " FROM task t WHERE t.ns = $1::int4 AND t.number < $2::int8"
        " AND t.expires_at = 0 AND t.status >= 4 AND NOT t.leased"
        " ORDER BY t.number DESC LIMIT $3::int8",
    /* As many as have so many bytes, and one that has more. */
    [PG_ROWS] = "SELECT key, body, expires_at FROM (SELECT key, body, expires_at,"
                " sum (octet_length (body)) OVER (ORDER BY key ROWS UNBOUNDED PRECEDING)"
                " - octet_length (body) AS before FROM (SELECT key, body, expires_at FROM row"
                " WHERE shard = $1::int2 AND kind = $2::int2 AND key >= $3::bytea"
                " AND ($4::bool OR key > $3::bytea) ORDER BY key LIMIT $5::int8) x) y"
                " WHERE before < $6::int8",
    [PG_WHOLE_WINDOW] =
        "SELECT t.number, n.name, t.payload_bytes::int8 + t.result_bytes::int8"
        " FROM (SELECT id, name FROM namespace ORDER BY id) n"
        " CROSS JOIN LATERAL (SELECT t.number, t.payload_bytes, t.result_bytes FROM task t"
        " WHERE t.ns = n.id AND t.number > $1::int8 AND t.number <= $2::int8"
        " ORDER BY t.number) t",
    [PG_WHOLE_NEXT] = "SELECT min (t.number) FROM (SELECT id FROM namespace ORDER BY id) n"
                      " CROSS JOIN LATERAL (SELECT t.number FROM task t WHERE t.ns = n.id"
                      " AND t.number > $1::int8 ORDER BY t.number LIMIT 1) t",
    [PG_WHOLE_ROWS] =
        "SELECT " PG_ROW_WHOLE ", r.place FROM unnest ($1::text[], $2::int8[], $3::int8[])"
        " WITH ORDINALITY AS r (name, number, last_event, place) CROSS JOIN LATERAL (SELECT "
        "* " WITH_NUMBER (NAMED ("r.name"),
                          "r.number") ") t"
                                      " WHERE r.last_event < 0 OR t.last_event = r.last_event",
    [PG_EVENTS_UPTO] = "SELECT " EVENT_SPAN " " EVENT_OF
                       "e.first_seq <= $2::int8 ORDER BY e.first_seq DESC LIMIT 1",
    [PG_EVENTS_BLOCK] = "SELECT " EVENT_SPAN ", e.list " EVENT_OF
                        "e.first_seq <= $2::int8 ORDER BY e.first_seq DESC LIMIT 1",
    [PG_EVENTS_FROM] = "SELECT e.first_seq, e.count, e.at, e.pos, e.list FROM (SELECT x.*,"
                       " sum (octet_length (x.list)) OVER (ORDER BY x.first_seq ROWS UNBOUNDED"
                       " PRECEDING) - octet_length (x.list) AS before FROM (SELECT * " EVENT_OF
                       "e.first_seq >= $2::int8 ORDER BY e.first_seq LIMIT $3::int8) x) e"
                       " WHERE e.before < $4::int8",
    [PG_EVENTS_FIRST] = "SELECT e.first_seq " EVENT_OF "true ORDER BY e.first_seq LIMIT 1",
    [PG_POS_UPTO] = "SELECT " EVENT_NAMED " FROM event e WHERE e.pos <= $1::int8"
                    " ORDER BY e.pos DESC LIMIT 1",
    [PG_POS_AFTER] = "SELECT e.first_seq, e.count, e.at, e.pos, e.list, e.ns,"
                     " (SELECT name FROM namespace n WHERE n.id = e.ns) FROM (SELECT x.*,"
                     " sum (octet_length (x.list)) OVER (ORDER BY x.pos ROWS UNBOUNDED PRECEDING)"
                     " - octet_length (x.list) AS before FROM (SELECT * FROM event e"
                     " WHERE e.pos > $1::int8 ORDER BY e.pos LIMIT $2::int8) x) e"
                     " WHERE e.before < $3::int8",
    [PG_EXPORT_NEWEST] =
        "SELECT r.place, t.number, t.payload_bytes::int8 + t.result_bytes::int8"
        " FROM unnest ($2::uuid[], $3::int8[]) WITH ORDINALITY AS r (id, last_event, place)"
        " CROSS JOIN LATERAL (SELECT t.number, t.payload_bytes, t.result_bytes, "
        "t.last_event " WITH_ID ("$1::int4", "r.id") ") t WHERE t.last_event = r.last_event",
};
