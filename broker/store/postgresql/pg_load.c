/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/live.h"
#include "store/postgresql/pg_commit.h"
#include "store/postgresql/pg_rows.h"
#include "store/postgresql/pg_schema.h"

enum {
    KEYS_MAX = 500, /* in one round trip */
    LIVE_PAGE = 2000,
    ROWS_PAGE = 1000,
    WAIT_MS = 2000, /* for an answer, then the database is out of reach */
    AGAIN_MS = 100,
    ROW_UNPACKED_MAX = 1024 * 1024 /* a few hundred KiB with all texts at their limits */
};

enum {
    BY_ID,
    TOMBSTONES,
    BY_KEY,
    ATTEMPTS,
    ROWS,
    DUE,
    ROWS_DUE,
    LIVE,
    ROWS_FROM,
    SPACES,
    SPACE_FIND,
    NAMES,
    OWNED,
    STATEMENTS
};

/* How the namespace of a task is read without a join that would lose the order. */
#define SPACE_NAME "(SELECT name FROM namespace WHERE id = t.ns)"

static const char *const TEXTS[STATEMENTS] = {
    /* k.n: which of the keys; it comes first in each answer. */
    [BY_ID] = "SELECT k.n, " PG_ROW_WHOLE_IF (
        "k.bodies") " FROM unnest ($1::int4[], $2::text[], $3::uuid[], $4::bool[]) AS k (n, ns, "
                    "id, bodies)"
                    " JOIN namespace s ON s.name = k.ns CROSS JOIN LATERAL " PG_TASK_BY_ID ("s.id",
                                                                                            "k.id"),
    [TOMBSTONES] = "SELECT k.n, t.number, t.code, t.why, t.at, t.owner, t.queue"
                   " FROM unnest ($1::int4[], $2::text[], $3::uuid[]) AS k (n, ns, id)"
                   " JOIN namespace s ON s.name = k.ns"
                   " JOIN tombstone t ON t.ns = s.id AND t.id = k.id",
    [BY_KEY] = "SELECT k.n, " PG_ROW_WHOLE_IF (
        "k.bodies") " FROM unnest ($1::int4[], $2::text[], $3::text[], $4::text[], $5::bool[])"
                    " AS k (n, ns, owner, key, bodies) JOIN namespace s ON s.name = k.ns"
                    " CROSS JOIN LATERAL " PG_TASK_BY_KEY ("s.id", "k.owner", "k.key"),
    [ATTEMPTS] = "SELECT k.n, " PG_ATTEMPT_COLUMNS
                 " FROM unnest ($1::int4[], $2::text[], $3::uuid[], $4::int8[])"
                 " AS k (n, ns, id, attempt) JOIN namespace s ON s.name = k.ns"
                 " CROSS JOIN LATERAL " PG_TASK_BY_ID (
                     "s.id", "k.id") " JOIN attempt a ON a.number = t.number AND a.attempt = "
                                     "k.attempt AND a.ns = s.id",
    [ROWS] = "SELECT k.n, r.body, r.expires_at"
             " FROM unnest ($2::int4[], $3::int2[], $4::bytea[]) AS k (n, kind, key)"
             " JOIN row r ON r.shard = $1::int2 AND r.kind = k.kind AND r.key = k.key",
    [DUE] = "SELECT " SPACE_NAME ", " PG_ROW_BARE " FROM task t"
            " WHERE (t.expires_at, t.number) > ($2::int8, $3::int8) AND t.expires_at <= $1::int8"
            " AND t.expires_at > 0 AND t.status >= 4 AND NOT t.leased"
            " ORDER BY t.expires_at, t.number LIMIT $4::int8",
    [ROWS_DUE] = "SELECT kind, key, expires_at FROM row WHERE shard = $1::int2"
                 " AND expires_at > 0 AND expires_at <= $2::int8"
                 " AND (expires_at, kind, key) > ($3::int8, $4::int2, $5::bytea)"
                 " ORDER BY expires_at, kind, key LIMIT $6::int8",
    /* Without the name: looking it up takes twice as long as all the rest. */
    [LIVE] = "SELECT t.ns, " PG_ROW_BARE " FROM task t"
             " WHERE (t.status < 4 OR t.leased) AND t.number > $1::int8"
             " ORDER BY t.number LIMIT $2::int8",
    [ROWS_FROM] = "SELECT key, body, expires_at FROM row WHERE shard = $1::int2"
                  " AND kind = $2::int2 AND key > $3::bytea ORDER BY key LIMIT $4::int8",
    [SPACES] = "SELECT n.name, coalesce (e.last, 0) FROM namespace n LEFT JOIN LATERAL"
               " (SELECT first_seq + count - 1 AS last FROM event WHERE ns = n.id"
               " ORDER BY first_seq DESC LIMIT 1) e ON true ORDER BY n.id",
    [SPACE_FIND] = "SELECT 1 FROM namespace WHERE name = $1::text",
    [NAMES] = "SELECT id, name FROM namespace ORDER BY id",
    [OWNED] = PG_COMMIT_OWNED_SQL,
};

pg_kept_t *pg_load_new (pg_store_t *store, const char *name)
{
    return pg_keeper_add (store->keeper, name, TEXTS, STATEMENTS, WAIT_MS);
}

static store_code_t lost (pg_store_t *store, store_code_t code, const store_error_t *error)
{
    if (code == STORE_ERROR_AWAY)
        pg_store_lost (store, error);
    return code;
}

/* Whose rows. */

static void put_epoch (const pg_store_t *store, pg_params_t *params)
{
    pg_params_clear (params);
    pg_param_int2 (params, PG_SHARD);
    pg_param_int8 (params, (int64_t) store->epoch);
}

/* What a successor wrote does not fit what is in memory here. Its epoch begins before its first
 * row, so it is looked for behind what was read. */
static store_code_t judge_owned (const pg_store_t *store, const PGresult *owned,
                                 store_error_t *error)
{
    return PQntuples (owned) > 0 ? STORE_OK : pg_commit_fenced (store, store->epoch, error);
}

static store_code_t check_owned (const pg_store_t *store, pg_link_t *link, store_error_t *error)
{
    PGresult *owned;
    pg_params_t params;
    put_epoch (store, &params);
    store_code_t code = pg_link_run (link, OWNED, &params, &owned, error);
    if (code == STORE_OK)
        code = judge_owned (store, owned, error);
    PQclear (owned);
    return code;
}

/* Keys. */

enum { QUERY_COLUMNS_MAX = 5 };

/* The keys of one statement. */
typedef struct query {
    size_t statement;
    pg_array_t columns[QUERY_COLUMNS_MAX];
    size_t columns_count;
} query_t;

typedef struct load {
    pg_store_t *store;
    pg_kept_t *kept;
    lookup_t *keys;
    size_t first; /* of this round trip */
    arena_t *arena;
    query_t queries[ROWS + 1];
} load_t;

static const pg_type_t TYPES[ROWS + 1][QUERY_COLUMNS_MAX] = {
    [BY_ID] = {PG_INT4, PG_TEXT, PG_UUID, PG_BOOL},
    [TOMBSTONES] = {PG_INT4, PG_TEXT, PG_UUID},
    [BY_KEY] = {PG_INT4, PG_TEXT, PG_TEXT, PG_TEXT, PG_BOOL},
    [ATTEMPTS] = {PG_INT4, PG_TEXT, PG_UUID, PG_INT8},
    [ROWS] = {PG_INT4, PG_INT2, PG_BYTEA},
};
static const size_t COLUMNS[ROWS + 1] = {
    [BY_ID] = 4, [TOMBSTONES] = 3, [BY_KEY] = 5, [ATTEMPTS] = 4, [ROWS] = 3};

static void begin_queries (load_t *self)
{
    for (size_t i = 0; i <= ROWS; i++) {
        query_t *query = &self->queries[i];
        query->statement = i;
        query->columns_count = COLUMNS[i];
        for (size_t k = 0; k < query->columns_count; k++)
            pg_array_begin (&query->columns[k], TYPES[i][k]);
    }
}

/* Begins the row of a key in the arrays of a statement; its second cell is given back. */
static pg_array_t *put_key (load_t *self, size_t statement, size_t key)
{
    query_t *query = &self->queries[statement];
    for (size_t k = 0; k < query->columns_count; k++)
        query->columns[k].count++;
    pg_put_int4 (&query->columns[0].bytes, (int32_t) key);
    return query->columns + 1;
}

static void ask (load_t *self, size_t n)
{
    lookup_t *key = &self->keys[n];
    pg_array_t *cells;
    switch (key->kind) {
    case LOOKUP_ID:
        cells = put_key (self, BY_ID, n);
        pg_put_text (&cells[0].bytes, key->ns);
        pg_put_id (&cells[1].bytes, key->id.bytes);
        pg_put_bool (&cells[2].bytes, key->bodies);
        cells = put_key (self, TOMBSTONES, n);
        pg_put_text (&cells[0].bytes, key->ns);
        pg_put_id (&cells[1].bytes, key->id.bytes);
        break;
    case LOOKUP_DEDUP:
        cells = put_key (self, BY_KEY, n);
        pg_put_text (&cells[0].bytes, key->ns);
        pg_put_text (&cells[1].bytes, key->owner);
        pg_put_text (&cells[2].bytes, key->dedup_key);
        pg_put_bool (&cells[3].bytes, key->bodies);
        break;
    case LOOKUP_ATTEMPT:
        cells = put_key (self, ATTEMPTS, n);
        pg_put_text (&cells[0].bytes, key->ns);
        pg_put_id (&cells[1].bytes, key->id.bytes);
        pg_put_int8 (&cells[2].bytes, key->attempt);
        break;
    case LOOKUP_ROW:
        cells = put_key (self, ROWS, n);
        pg_put_int2 (&cells[0].bytes, (int16_t) key->row_kind);
        pg_put_bytes (&cells[1].bytes, buf_bytes (key->row_key), buf_length (key->row_key));
        break;
    }
}

static void no_answer (lookup_t *key)
{
    key->record = NULL;
    key->tombstone = TMQ_OK;
    key->attempt_row = NULL;
    key->row_found = false;
    key->row_body = NULL;
    key->row_expires_at = 0;
    key->damaged = false;
}

static void drop_answer (lookup_t *key)
{
    record_free (key->record);
    free (key->attempt_row);
    buf_drop (key->row_body);
    no_answer (key);
}

static store_code_t take_task (load_t *self, const PGresult *result, int row, lookup_t *key,
                               store_error_t *error)
{
    store_code_t code =
        pg_row_read (result, row, 1, key->ns, key->bodies, self->arena, &key->record, error);
    key->damaged = code == STORE_ERROR_DAMAGED;
    return pg_store_go_on (self->store, code, error);
}

static void take_tombstone (const PGresult *result, int row, lookup_t *key)
{
    const removal_t removal = {.number = pg_int8 (result, row, 1),
                               .id = key->id,
                               .code = (tmq_code_t) pg_int4 (result, row, 2),
                               .why = (uint8_t) pg_int2 (result, row, 3),
                               .at = pg_int8 (result, row, 4),
                               .owner = pg_text (result, row, 5),
                               .queue = pg_text (result, row, 6)};
    if (key->record == NULL && !key->damaged)
        lookup_take_tombstone (key, &removal);
}

static void take_attempt (const PGresult *result, int row, lookup_t *key)
{
    attempt_t attempt;
    pg_attempt_read (result, row, 1, &attempt);
    attempt.id = key->id;
    key->attempt_row = attempt_new (&attempt);
}

static store_code_t take_answers (load_t *self, size_t statement, const PGresult *result,
                                  store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (int row = 0; code == STORE_OK && row < PQntuples (result); row++) {
        lookup_t *key = &self->keys[pg_int4 (result, row, 0)];
        switch (statement) {
        case BY_ID:
        case BY_KEY: code = take_task (self, result, row, key, error); break;
        case TOMBSTONES: take_tombstone (result, row, key); break;
        case ATTEMPTS: take_attempt (result, row, key); break;
        default:
            key->row_found = true;
            key->row_body = pg_body (result, row, 1);
            key->row_expires_at = pg_int8 (result, row, 2);
        }
    }
    return code;
}

static void give_arrays (query_t *query, pg_params_t *params)
{
    pg_params_clear (params);
    if (query->statement == ROWS)
        pg_param_int2 (params, PG_SHARD);
    for (size_t k = 0; k < query->columns_count; k++)
        pg_param_array (params, &query->columns[k]);
}

static store_code_t take_owned (const load_t *self, store_error_t *error)
{
    PGresult *owned;
    store_code_t code = pg_link_queue_take (&self->kept->link, &owned, error);
    if (code == STORE_OK)
        code = judge_owned (self->store, owned, error);
    PQclear (owned);
    return code;
}

/* All statements that have keys, in one round trip, and whether it was ours to read. */
static store_code_t run_queries (load_t *self, store_error_t *error)
{
    pg_link_t *link = &self->kept->link;
    pg_params_t params;
    size_t wanted[ROWS + 2];
    size_t count = 0;
    for (size_t i = 0; i <= ROWS; i++)
        if (self->queries[i].columns[0].count > 0)
            wanted[count++] = i;
    wanted[count] = OWNED;
    store_code_t code = pg_link_queue_begin (link, wanted, count + 1, error);
    for (size_t i = 0; code == STORE_OK && i < count; i++) {
        give_arrays (&self->queries[wanted[i]], &params);
        code = pg_link_queue (link, wanted[i], &params, error);
    }
    put_epoch (self->store, &params);
    if (code == STORE_OK)
        code = pg_link_queue (link, OWNED, &params, error);
    if (code == STORE_OK)
        code = pg_link_queue_send (link, error);
    for (size_t i = 0; code == STORE_OK && i < count; i++) {
        PGresult *result;
        code = pg_link_queue_take (link, &result, error);
        if (code == STORE_OK)
            code = take_answers (self, wanted[i], result, error);
        PQclear (result);
    }
    if (code == STORE_OK)
        code = take_owned (self, error);
    if (code == STORE_OK)
        pg_link_queue_end (link);
    else
        pg_link_close (link); /* what it still has to say is of no use */
    return code;
}

/* A server that gave a read up, or is short of something, is out of reach for now. */
static store_code_t away_if_busy (store_code_t code)
{
    return code == STORE_ERROR_BUSY || code == STORE_ERROR_FULL ? STORE_ERROR_AWAY : code;
}

store_code_t pg_load_keys (pg_store_t *store, pg_kept_t *kept, lookup_t *keys, size_t count,
                           store_error_t *error)
{
    load_t self = {.store = store, .kept = kept, .keys = keys};
    store_code_t code = STORE_OK;
    self.arena = arena_new (ROW_UNPACKED_MAX);
    for (size_t i = 0; i < count; i++)
        no_answer (&keys[i]);
    pthread_mutex_lock (&kept->lock);
    for (size_t done = 0; code == STORE_OK && done < count;) {
        size_t end = count - done > KEYS_MAX ? done + KEYS_MAX : count;
        begin_queries (&self);
        for (; done < end; done++)
            ask (&self, done);
        code = away_if_busy (run_queries (&self, error));
    }
    pthread_mutex_unlock (&kept->lock);
    for (size_t i = 0; code != STORE_OK && i < count; i++)
        drop_answer (&keys[i]);
    for (size_t i = 0; i <= ROWS; i++)
        for (size_t k = 0; k < QUERY_COLUMNS_MAX; k++)
            pg_array_free (&self.queries[i].columns[k]);
    arena_free (self.arena);
    return lost (store, code, error);
}

/* The sweep. */

static store_code_t due_task (pg_store_t *store, const PGresult *result, int row, arena_t *arena,
                              store_sweep_t *sweep, size_t *capacity, store_error_t *error)
{
    record_t *record;
    sweep->number = pg_int8 (result, row, 1 + PG_ROW_NUMBER);
    sweep->expires_at = pg_int8 (result, row, 1 + PG_ROW_EXPIRES_AT);
    if (behind_has (store->behind, sweep->number))
        return STORE_OK;
    store_code_t code =
        pg_row_read (result, row, 1, pg_text (result, row, 0), false, arena, &record, error);
    if (code != STORE_OK)
        return pg_store_go_on (store, code, error);
    due_t *found = &sweep->found;
    found->records = memory_grow (found->records, capacity, found->count, sizeof (record_t *));
    found->records[found->count++] = record;
    return STORE_OK;
}

static store_code_t due_tasks (pg_store_t *store, pg_link_t *link, store_sweep_t *sweep,
                               store_error_t *error)
{
    PGresult *result;
    pg_params_t params;
    size_t capacity = 0;
    pg_params_clear (&params);
    pg_param_int8 (&params, sweep->wall_ms);
    pg_param_int8 (&params, sweep->expires_at);
    pg_param_int8 (&params, sweep->number);
    pg_param_int8 (&params, (int64_t) sweep->limit);
    store_code_t code = pg_link_run (link, DUE, &params, &result, error);
    if (code != STORE_OK)
        return code;
    arena_t *arena = arena_new (ROW_UNPACKED_MAX);
    for (int row = 0; code == STORE_OK && row < PQntuples (result); row++)
        code = due_task (store, result, row, arena, sweep, &capacity, error);
    sweep->more = (size_t) PQntuples (result) == sweep->limit;
    arena_free (arena);
    PQclear (result);
    return code;
}

static store_code_t due_rows (pg_link_t *link, store_sweep_t *sweep, bool *more,
                              store_error_t *error)
{
    PGresult *result;
    pg_params_t params;
    size_t capacity = 0;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int8 (&params, sweep->wall_ms);
    pg_param_int8 (&params, sweep->row_expires_at);
    pg_param_int2 (&params, (int16_t) sweep->row_kind);
    pg_param_bytes (&params, sweep->row_key.bytes, sweep->row_key.length);
    pg_param_int8 (&params, (int64_t) sweep->limit);
    store_code_t code = pg_link_run (link, ROWS_DUE, &params, &result, error);
    due_t *found = &sweep->found;
    for (int i = 0; code == STORE_OK && i < PQntuples (result); i++) {
        size_t length;
        const uint8_t *key = pg_bytes (result, i, 1, &length);
        sweep->row_kind = (row_kind_t) pg_int2 (result, i, 0);
        sweep->row_expires_at = pg_int8 (result, i, 2);
        sweep->row_key.length = 0;
        row_key_bytes (&sweep->row_key, key,
                       length < ROW_KEY_BYTES_MAX ? length : ROW_KEY_BYTES_MAX);
        if (row_kind_name (sweep->row_kind) == NULL)
            continue; /* of a newer version: it will know */
        found->rows = memory_grow (found->rows, &capacity, found->rows_count, sizeof (row_t));
        found->rows[found->rows_count++] = (row_t){.kind = sweep->row_kind,
                                                   .key = buf_new (key, length),
                                                   .expires_at = sweep->row_expires_at};
    }
    *more = code == STORE_OK && (size_t) PQntuples (result) == sweep->limit;
    PQclear (result);
    return code;
}

store_code_t pg_load_due (pg_store_t *store, pg_kept_t *kept, store_sweep_t *sweep,
                          store_error_t *error)
{
    bool more_rows = false;
    pthread_mutex_lock (&kept->lock);
    store_code_t code = due_tasks (store, &kept->link, sweep, error);
    if (code == STORE_OK)
        code = due_rows (&kept->link, sweep, &more_rows, error);
    if (code == STORE_OK)
        code = check_owned (store, &kept->link, error);
    pthread_mutex_unlock (&kept->lock);
    sweep->more = code == STORE_OK && (sweep->more || more_rows);
    if (code != STORE_OK)
        due_clear (&sweep->found);
    return lost (store, away_if_busy (code), error);
}

/* The live tasks. */

typedef struct stream {
    pg_store_t *store;
    pg_kept_t *kept;
    live_t out;
    arena_t *arena;
    PGresult *names; /* of all namespaces */
    int64_t after;   /* the last task of the newest page */
    uint64_t asked;  /* the opening of the link that was asked for the page behind it; 0: none */
} stream_t;

static store_code_t run_patiently (const stream_t *stream, size_t statement,
                                   const pg_params_t *params, PGresult **out, store_error_t *error)
{
    while (true) {
        pthread_mutex_lock (&stream->kept->lock);
        store_code_t code =
            away_if_busy (pg_link_run (&stream->kept->link, statement, params, out, error));
        if (code == STORE_OK)
            code = away_if_busy (check_owned (stream->store, &stream->kept->link, error));
        pthread_mutex_unlock (&stream->kept->lock);
        if (code == STORE_OK)
            return STORE_OK;
        PQclear (*out);
        *out = NULL;
        if (lost (stream->store, code, error) != STORE_ERROR_AWAY)
            return code;
        nanosleep (&(struct timespec){.tv_nsec = AGAIN_MS * 1000000}, NULL);
    }
}

static store_code_t visit_rows_page (stream_t *stream, row_kind_t kind, buf_t **after, bool *more,
                                     store_error_t *error)
{
    PGresult *result;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_int2 (&params, PG_SHARD);
    pg_param_int2 (&params, (int16_t) kind);
    pg_param_bytes (&params, buf_bytes (*after), buf_length (*after));
    pg_param_int8 (&params, ROWS_PAGE);
    store_code_t code = run_patiently (stream, ROWS_FROM, &params, &result, error);
    if (code != STORE_OK)
        return code;
    int count = PQntuples (result);
    for (int i = 0; i < count; i++) {
        size_t length;
        const uint8_t *key = pg_bytes (result, i, 0, &length);
        row_t row = {.kind = kind,
                     .key = buf_new (key, length),
                     .body = pg_body (result, i, 1),
                     .expires_at = pg_int8 (result, i, 2)};
        live_row (&stream->out, &row);
        buf_drop (*after);
        *after = buf_keep (row.key);
        row_drop (&row);
    }
    *more = count == ROWS_PAGE;
    PQclear (result);
    return STORE_OK;
}

static store_code_t visit_kind (stream_t *stream, row_kind_t kind, store_error_t *error)
{
    buf_t *after = NULL;
    store_code_t code = STORE_OK;
    live_kind (&stream->out, kind);
    for (bool more = true; code == STORE_OK && more;)
        code = visit_rows_page (stream, kind, &after, &more, error);
    buf_drop (after);
    live_kind_end (&stream->out, kind);
    return code;
}

static store_code_t visit_kinds (stream_t *stream, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (int kind = 1; code == STORE_OK && stream->out.visitor->row != NULL && kind < ROW_KINDS_MAX;
         kind++)
        if (row_kind_name ((row_kind_t) kind) != NULL &&
            row_kind_home ((row_kind_t) kind) == ROW_HOME_LIVE)
            code = visit_kind (stream, (row_kind_t) kind, error);
    return code;
}

static store_code_t read_names (stream_t *stream, store_error_t *error)
{
    PQclear (stream->names);
    stream->names = NULL;
    return run_patiently (stream, NAMES, NULL, &stream->names, error);
}

/* The name of a namespace, NULL: there is none. They are ordered by their ids. */
static const char *name_of (const stream_t *stream, int32_t id)
{
    int low = 0;
    int high = PQntuples (stream->names);
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (pg_int4 (stream->names, middle, 0) < id)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < PQntuples (stream->names) && pg_int4 (stream->names, low, 0) == id;
    return found ? pg_text (stream->names, low, 1) : NULL;
}

/* Asks for the page behind the newest task that was given. The lock is held. */
static store_code_t ask_page (stream_t *stream, store_error_t *error)
{
    pg_params_t params;
    pg_link_t *link = &stream->kept->link;
    pg_params_clear (&params);
    pg_param_int8 (&params, stream->after);
    pg_param_int8 (&params, LIVE_PAGE);
    store_code_t code = pg_link_ask (link, LIVE, &params, error);
    stream->asked = code == STORE_OK ? link->opened : 0;
    return code;
}

/* Whether a page is on its way, by this connection. The lock is held. */
static bool is_asked (const stream_t *stream)
{
    const pg_link_t *link = &stream->kept->link;
    return stream->asked != 0 && pg_link_is_open (link) && stream->asked == link->opened;
}

/* A page; the next one is asked for at once, so that the server reads it while this one is taken
 * in. A link that was lost meanwhile, and made anew, was asked for nothing. */
static store_code_t take_page (stream_t *stream, PGresult **out, store_error_t *error)
{
    store_error_t ignored;
    pg_link_t *link = &stream->kept->link;
    store_code_t code = STORE_OK;
    *out = NULL;
    pthread_mutex_lock (&stream->kept->lock);
    bool asked = is_asked (stream);
    if (!asked)
        code = ask_page (stream, error);
    stream->asked = 0;
    if (code == STORE_OK)
        code = pg_link_answer (link, out, error);
    if (code == STORE_OK)
        code = check_owned (stream->store, link, error);
    if (code != STORE_OK) {
        PQclear (*out);
        *out = NULL;
    }
    int count = *out != NULL ? PQntuples (*out) : 0;
    if (count > 0)
        stream->after = pg_int8 (*out, count - 1, 1 + PG_ROW_NUMBER);
    if (count == LIVE_PAGE)
        (void) ask_page (stream, &ignored); /* else it is asked for when it is wanted */
    pthread_mutex_unlock (&stream->kept->lock);
    return away_if_busy (code);
}

static store_code_t take_page_patiently (stream_t *stream, PGresult **out, store_error_t *error)
{
    while (true) {
        store_code_t code = take_page (stream, out, error);
        if (lost (stream->store, code, error) != STORE_ERROR_AWAY)
            return code;
        nanosleep (&(struct timespec){.tv_nsec = AGAIN_MS * 1000000}, NULL);
    }
}

static store_code_t visit_task (stream_t *stream, const PGresult *result, int row,
                                store_error_t *error)
{
    record_t *record;
    if (!live_wants (&stream->out, pg_int8 (result, row, 1 + PG_ROW_NUMBER)))
        return STORE_OK;
    const char *ns = name_of (stream, pg_int4 (result, row, 0));
    if (ns == NULL)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: namespace %d of a live task is missing",
                           stream->store->target.where, (int) pg_int4 (result, row, 0));
    store_code_t code = pg_row_read (result, row, 1, ns, false, stream->arena, &record, error);
    if (code == STORE_OK)
        live_task (&stream->out, record);
    return code;
}

/* What was asked for and is not wanted any more is taken away, so that the link is free. */
static void end_pages (stream_t *stream)
{
    store_error_t ignored;
    pg_link_t *link = &stream->kept->link;
    pthread_mutex_lock (&stream->kept->lock);
    if (is_asked (stream))
        (void) pg_link_answer (link, NULL, &ignored);
    stream->asked = 0;
    pthread_mutex_unlock (&stream->kept->lock);
}

static store_code_t visit_tasks (stream_t *stream, store_error_t *error)
{
    store_code_t code = read_names (stream, error);
    for (bool more = true; code == STORE_OK && more;) {
        PGresult *page;
        code = take_page_patiently (stream, &page, error);
        more = code == STORE_OK && PQntuples (page) == LIVE_PAGE;
        for (int row = 0; code == STORE_OK && row < PQntuples (page); row++)
            code = visit_task (stream, page, row, error);
        PQclear (page);
    }
    end_pages (stream);
    if (code == STORE_OK)
        live_tasks_end (&stream->out);
    return code;
}

static store_code_t is_known (const stream_t *stream, const char *name, bool *known,
                              store_error_t *error)
{
    PGresult *result;
    pg_params_t params;
    pg_params_clear (&params);
    pg_param_text (&params, name);
    store_code_t code = run_patiently (stream, SPACE_FIND, &params, &result, error);
    *known = code == STORE_OK && PQntuples (result) > 0;
    PQclear (result);
    return code;
}

static store_code_t visit_spaces (stream_t *stream, store_error_t *error)
{
    PGresult *result;
    store_code_t code = run_patiently (stream, SPACES, NULL, &result, error);
    for (int row = 0; code == STORE_OK && row < PQntuples (result); row++)
        live_space (&stream->out, pg_text (result, row, 0), (uint64_t) pg_int8 (result, row, 1));
    PQclear (result);
    const char *name;
    for (size_t i = 0; code == STORE_OK && (name = live_new_space (&stream->out, i)) != NULL; i++) {
        bool known;
        code = is_known (stream, name, &known, error);
        if (code == STORE_OK && !known)
            live_space (&stream->out, name, 0);
    }
    return code;
}

store_code_t pg_load_live (pg_store_t *store, pg_kept_t *kept, const overlay_t *overlay,
                           const store_live_visitor_t *visitor, store_error_t *error)
{
    stream_t stream = {.store = store, .kept = kept, .arena = arena_new (ROW_UNPACKED_MAX)};
    live_init (&stream.out, visitor, overlay);
    store_code_t code = visit_kinds (&stream, error);
    if (code == STORE_OK)
        code = visit_tasks (&stream, error);
    if (code == STORE_OK)
        code = visit_spaces (&stream, error);
    if (code == STORE_ERROR_DAMAGED) {
        store_error_t found = *error;
        code = store_fail (error, STORE_ERROR_CORRUPT, "%.400s, and work goes on from there",
                           found.text);
    }
    PQclear (stream.names);
    arena_free (stream.arena);
    return code;
}
