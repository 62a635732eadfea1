/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The rows of the tables: their columns in the order in which every statement names them, and how a
 * record becomes a row and a row a record. Names stand as texts: a number for each would cost a
 * round trip when it is first met, and one when it is left. Rows have no sums of their own: the
 * server has them for its pages. */
#ifndef TASKMQ_STORE_PG_ROWS_H
#define TASKMQ_STORE_PG_ROWS_H

#include "arena.h"
#include "core/data/batch.h"
#include "store/error.h"
#include "store/postgresql/pg_values.h"

/* Without and with the bodies. For a task that is "t": `SELECT PG_ROW_BARE FROM task t WHERE t.ns =
 * (SELECT id FROM namespace WHERE name = $1) …` keeps the order of an index; a join would not. */
#define PG_ROW_BARE                                                                                \
    "t.number, t.id, t.owner, t.queue, t.session, t.status, t.created_at, t.expires_at,"           \
    " t.leased, t.last_event, t.dedup_key, t.parent, t.labels, t.payload_bytes,"                   \
    " t.result_bytes, t.rest"
#define PG_ROW_WHOLE PG_ROW_BARE ", t.payload, t.result"
/* The bodies only where the condition holds. */
#define PG_ROW_WHOLE_IF(condition)                                                                 \
    PG_ROW_BARE ", CASE WHEN " condition " THEN t.payload END, CASE WHEN " condition               \
                " THEN t.result END"

/* The task t of an id in a namespace, for a CROSS JOIN LATERAL. Ordered, and by a range: only the
 * index of ids has that order, so no other one is walked through to find it. */
#define PG_TASK_BY_ID(space, id)                                                                   \
    "(SELECT t.* FROM task t WHERE t.ns = " space " AND t.id BETWEEN " id " AND " id               \
    " ORDER BY t.id LIMIT 1) t"
#define PG_TASK_BY_KEY(space, owner, key)                                                          \
    "(SELECT t.* FROM task t WHERE t.ns = " space " AND t.owner = " owner                          \
    " AND t.dedup_key IS NOT NULL AND t.dedup_key BETWEEN " key " AND " key                        \
    " ORDER BY t.dedup_key LIMIT 1) t"

/* Positions in these lists. */
typedef enum pg_row_column {
    PG_ROW_NUMBER,
    PG_ROW_ID,
    PG_ROW_OWNER,
    PG_ROW_QUEUE,
    PG_ROW_SESSION,
    PG_ROW_STATUS,
    PG_ROW_CREATED_AT,
    PG_ROW_EXPIRES_AT,
    PG_ROW_LEASED,
    PG_ROW_LAST_EVENT,
    PG_ROW_DEDUP_KEY,
    PG_ROW_PARENT,
    PG_ROW_LABELS,
    PG_ROW_PAYLOAD_BYTES,
    PG_ROW_RESULT_BYTES,
    PG_ROW_REST,
    PG_ROW_BARE_END,
    PG_ROW_PAYLOAD = PG_ROW_BARE_END,
    PG_ROW_RESULT,
    PG_ROW_WHOLE_END
} pg_row_column_t;

/* What a row takes when it is written: the namespace, then the columns above. */
enum { PG_ROW_FIELDS = PG_ROW_WHOLE_END + 1 };
#define PG_ROW_NAMES                                                                               \
    "ns, number, id, owner, queue, session, status, created_at, expires_at, leased, last_event,"   \
    " dedup_key, parent, labels, payload_bytes, result_bytes, rest, payload, result"

/* Puts the fields into their places: the same for all in a COPY, an array each otherwise. */
void pg_row_put (bytes_t *const places[PG_ROW_FIELDS], int32_t ns, const record_t *record,
                 const buf_t *payload, const buf_t *result, bytes_t *scratch);

/* Makes a record of a row whose columns begin at this one (PG_ROW_WHOLE with bodies, else
 * PG_ROW_BARE). The arena is for one row and is reset. STORE_ERROR_DAMAGED: it is not what was
 * written. */
store_code_t pg_row_read (const PGresult *result, int row, int column, const char *ns, bool bodies,
                          arena_t *arena, record_t **out, store_error_t *error);

/* An attempt, as every statement names its columns; the table is "a". */
#define PG_ATTEMPT_COLUMNS                                                                         \
    "a.number, a.attempt, a.worker, a.started_at, a.ended_at, a.how, a.error_code,"                \
    " a.error_message, a.secret, a.request_id"
/* Fills all but the task's id. */
void pg_attempt_read (const PGresult *result, int row, int column, attempt_t *out);

#endif
