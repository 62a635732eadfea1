/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka_all.h"

enum { LINE_BYTES = 96 };

/* Undone by the end of the session, which does not commit. The members of a message of protocol
 * buffers, of which none has a higher number than `last`: they are written in their order. */
static const char BEGIN[] =
    "BEGIN; SET LOCAL search_path = taskmq; SET LOCAL jit = off;"
    "CREATE FUNCTION pg_temp.members (message bytea, last int)"
    " RETURNS TABLE (member int, number int8, body bytea) LANGUAGE plpgsql AS $$"
    " DECLARE place int := 0; size int := length (message); key int8; byte int; shift int;"
    " BEGIN WHILE place < size LOOP"
    "  key := 0; number := 0; body := NULL; shift := 0;"
    "  LOOP byte := get_byte (message, place); place := place + 1;"
    "   key := key | ((byte & 127)::int8 << shift); shift := shift + 7; EXIT WHEN byte < 128;"
    "  END LOOP;"
    "  member := key >> 3;"
    "  IF member > last THEN RETURN; END IF;"
    "  IF key & 7 IN (0, 2) THEN shift := 0;"
    "   LOOP byte := get_byte (message, place); place := place + 1;"
    "    number := number | ((byte & 127)::int8 << shift); shift := shift + 7; EXIT WHEN byte < "
    "128;"
    "   END LOOP;"
    "  END IF;"
    "  IF key & 7 = 2 THEN"
    "   body := substr (message, place + 1, number::int); place := place + number::int;"
    "  ELSIF key & 7 = 1 THEN place := place + 8;"
    "  ELSIF key & 7 = 5 THEN place := place + 4;"
    "  END IF;"
    "  RETURN NEXT; END LOOP; END $$;";

/* Event and Record (27: the attempt) of the two .proto files. */
static const char DECODE[] =
    ";CREATE TEMP TABLE told ON COMMIT DROP AS SELECT e.ns, e.first_seq, m.* FROM event e,"
    " LATERAL pg_temp.members (e.list, 1) one, LATERAL (SELECT"
    " coalesce (max (number) FILTER (WHERE member = 1), 0) AS seq,"
    " encode (string_agg (body, '') FILTER (WHERE member = 4), 'hex')::uuid AS id,"
    " coalesce (max (number) FILTER (WHERE member = 7), 0) AS status,"
    " coalesce (max (number) FILTER (WHERE member = 8), 0) AS previous"
    " FROM pg_temp.members (one.body, 8)) m;"
    "CREATE TEMP TABLE known ON COMMIT DROP AS SELECT ns, number, id, status, last_event,"
    " coalesce ((SELECT max (m.number) FROM pg_temp.members (rest, 27) m WHERE member = 27), 0)"
    " AS attempts FROM task;"
    "ANALYZE told; ANALYZE known;";

/* How many are wrong, and what they are. An attempt that completes its task has no row (S8). */
static const char RULES[] =
    "SELECT string_agg (number || ' ' || what, '; ') FROM (VALUES "
    "((SELECT count (*) FROM journal), 'batches that are not in the tables'),"
    "((SELECT count (*) FROM task WHERE status < 4 OR leased), 'tasks that have not ended'),"
    "((SELECT count (*) FROM (SELECT FROM known GROUP BY ns, id HAVING count (*) > 1) d),"
    " 'ids with several rows'),"
    "((SELECT count (*) FROM attempt a WHERE NOT EXISTS (SELECT FROM known k WHERE k.ns = a.ns"
    " AND k.number = a.number)),"
    " 'attempts without a task'),"
    "((SELECT count (*) FROM known k LEFT JOIN (SELECT ns, number, count (*) AS rows,"
    " min (attempt) AS first, max (attempt) AS last FROM attempt GROUP BY ns, number) a"
    " USING (ns, number), LATERAL (SELECT k.attempts - (k.status = 4)::int AS rows) w"
    " WHERE coalesce (a.rows, 0) <> w.rows OR (w.rows > 0 AND (a.first <> 1 OR a.last <> w.rows))),"
    " 'tasks whose attempts have a gap'),"
    "((SELECT count (*) FROM label l WHERE NOT EXISTS (SELECT FROM known k WHERE k.ns = l.ns"
    " AND k.number = l.number)),"
    " 'labels without a task'),"
    "((SELECT count (*) FROM task WHERE coalesce (length (payload), 0) <> payload_bytes"
    " OR coalesce (length (result), 0) <> result_bytes), 'bodies that are not as long as they "
    "were'),"
    /* kinds of core/data/row.h whose keys begin with a namespace and a task */
    "((SELECT count (*) FROM row r LEFT JOIN namespace n ON substr (r.key, 1, length (n.name) + 1)"
    " = convert_to (n.name, 'UTF8') || '\\x00' LEFT JOIN known k ON k.ns = n.id AND uuid_send "
    "(k.id)"
    " = substr (r.key, length (n.name) + 2, 16) WHERE r.kind IN (5, 6, 9, 20, 21, 25)"
    " AND k.id IS NULL), 'rows of a task that is not there'),"
    "((SELECT count (*) FROM row r WHERE kind = 23 AND NOT EXISTS (SELECT FROM blob b WHERE b.whole"
    " AND b.hash = r.key)), 'large bodies that tasks name and nobody has'),"
    "((SELECT count (*) FROM blob b WHERE whole AND bytes <> (SELECT coalesce (sum (length"
    " (c.bytes)), 0) FROM blob_chunk c WHERE c.blob = b.id)), 'large bodies that are not whole'),"
    "((SELECT count (*) FROM blob_chunk c WHERE NOT EXISTS (SELECT FROM blob b WHERE b.id ="
    " c.blob)),"
    " 'pieces without a body'),"
    "((SELECT count (*) FROM (SELECT first_seq + count AS wanted, lead (first_seq) OVER (PARTITION"
    " BY ns ORDER BY first_seq) AS next FROM event) e WHERE next <> wanted),"
    " 'gaps between blocks of events'),"
    "((SELECT count (*) FROM (SELECT FROM event GROUP BY ns HAVING min (first_seq) <> 1) e),"
    " 'namespaces whose first event is not the first'),"
    "((SELECT count (*) FROM event e LEFT JOIN (SELECT ns, first_seq, count (*) AS events, min "
    "(seq)"
    " AS first, max (seq) AS last, count (DISTINCT seq) AS seqs FROM told GROUP BY ns, first_seq) t"
    " USING (ns, first_seq) WHERE e.count IS DISTINCT FROM t.events OR t.events <> t.seqs"
    " OR t.first <> first_seq OR t.last <> first_seq + e.count - 1),"
    " 'blocks that have other events than they say'),"
    "((SELECT count (*) FROM told t WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM known k WHERE"
    " k.ns = t.ns AND k.id = t.id)), 'events of a task that is not there'),"
    "((SELECT count (*) FROM known k LEFT JOIN (SELECT ns, id, count (*) AS ends, min (status) AS"
    " status FROM told WHERE status >= 4 AND previous < 4 GROUP BY ns, id) e USING (ns, id)"
    " WHERE e.ends IS DISTINCT FROM 1 OR e.status <> k.status),"
    " 'tasks without just one event of their end'),"
    "((SELECT count (*) FROM known k LEFT JOIN (SELECT ns, id, max (seq) AS seq FROM told GROUP BY"
    " ns, id) e USING (ns, id) WHERE e.seq IS DISTINCT FROM k.last_event),"
    " 'tasks whose newest event is another one')"
    ") r (number, what) WHERE number > 0";

static char *ask (const postgres_t *server, const char *damage, const char *question)
{
    size_t size = sizeof BEGIN + strlen (damage) + sizeof DECODE + strlen (question);
    char *sql = malloc (size);
    assert_non_null (sql);
    snprintf (sql, size, "%s%s%s%s", BEGIN, damage, DECODE, question);
    char *found = postgres_sql (server, sql);
    free (sql);
    return found;
}

char *rules_broken (const postgres_t *server, const char *damage)
{
    return ask (server, damage, RULES);
}

/* What was told. */

static int by_id (const void *a, const void *b)
{
    const fact_t *const *left = a;
    const fact_t *const *right = b;
    return memcmp (&(*left)->id, &(*right)->id, sizeof (tmq_id_t));
}

/* One line for each task that the drain found, as the table would say it. */
static char *lines_of (const history_t *history)
{
    const fact_t **facts = calloc (history->count + 1, sizeof *facts);
    char *lines = malloc (history->count * LINE_BYTES + 1);
    size_t count = 0, length = 0;
    assert_non_null (facts);
    assert_non_null (lines);
    lines[0] = '\0';
    for (size_t i = 0; i < history->count; i++)
        if (history->facts[i].status != TMQ_STATUS_NONE)
            facts[count++] = &history->facts[i];
    qsort (facts, count, sizeof *facts, by_id);
    for (size_t i = 0; i < count; i++) {
        char id[37];
        tmq_id_format (&facts[i]->id, id);
        length += (size_t) snprintf (lines + length, LINE_BYTES, "%s %d %u %llu\n", id,
                                     (int) facts[i]->status, facts[i]->attempt,
                                     (unsigned long long) facts[i]->seq);
    }
    free (facts);
    return lines;
}

/* The first line that differs, of both. */
static char *difference (const char *told, const char *found)
{
    char text[3 * LINE_BYTES] = "";
    while (*told != '\0' && *told == *found) {
        size_t length = strcspn (told, "\n") + 1;
        if (strncmp (told, found, length) != 0)
            break;
        told += length;
        found += length;
    }
    if (*told != *found || *told != '\0')
        snprintf (text, sizeof text, "told '%.*s', in the table '%.*s'", (int) strcspn (told, "\n"),
                  told, (int) strcspn (found, "\n"), found);
    return strdup (text);
}

char *rules_untold (const postgres_t *server, const history_t *history, const char *damage)
{
    char *told = lines_of (history);
    char *found = ask (server, damage,
                       "SELECT string_agg (concat_ws (' ', id, status, attempts, last_event) ||"
                       " E'\\n', '' ORDER BY id) FROM known");
    char *text = difference (told, found);
    free (told);
    free (found);
    return text;
}
