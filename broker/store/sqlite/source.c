/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* All that a copy has, as batches: for a store that is filled with it. Nobody writes the copy, so
 * one walk through each table is enough. What is damaged ends it: who fills a store would leave it
 * out, and nobody would know. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "store/sqlite/view.h"

enum { TASKS, TOMBSTONES, EVENTS, ROWS, PHASES, ATTEMPTS = PHASES, STATEMENTS };
enum { BATCH_ROWS = 1000, BATCH_BYTES = 4 * 1024 * 1024, ROW_OVERHEAD = 512 };

static const char *const TEXTS[STATEMENTS] = {
    [TASKS] = "SELECT " ROW_COLUMNS " FROM task ORDER BY number",
    [ATTEMPTS] = "SELECT " ROW_ATTEMPT_COLUMNS " FROM attempt WHERE number BETWEEN ?1 AND ?2"
                 " ORDER BY number, attempt",
    [TOMBSTONES] = "SELECT ns, id, number, code, at, sum, owner, queue FROM tombstone ORDER BY age",
    [EVENTS] = "SELECT " ROW_EVENTS_COLUMNS " FROM event ORDER BY pos",
    [ROWS] = "SELECT kind, key, body, expires_at, sum FROM row ORDER BY kind, key",
};

struct store_source {
    gate_t gate;
    view_t view;
    int phase;
    uint64_t no; /* of the newest batch */
};

typedef store_code_t take_t (store_source_t *self, sqlite3_stmt *row, batch_t *batch,
                             store_error_t *error);

static store_code_t damaged (const store_source_t *self, const char *what, int64_t number,
                             store_error_t *error)
{
    return store_fail (error, STORE_ERROR_DAMAGED, "%s: %s %lld is damaged",
                       sqlite3_db_filename (self->view.db, "main"), what, (long long) number);
}

static store_code_t space_of (store_source_t *self, int64_t id, const char **name,
                              store_error_t *error)
{
    names_trim (&self->view.names);
    return names_text (&self->view.names, NAME_NAMESPACE, id, name, error);
}

static store_code_t take_task (store_source_t *self, sqlite3_stmt *row, batch_t *batch,
                               store_error_t *error)
{
    record_t *record;
    store_code_t code = view_record (&self->view, row, true, &record, error);
    if (code != STORE_OK)
        return code;
    if (batch->records == NULL)
        batch->records = memory_zero (BATCH_ROWS, sizeof (record_t *));
    batch->records[batch->records_count++] = record;
    batch->bytes += ROW_OVERHEAD + record->payload_bytes + record->result_bytes;
    return STORE_OK;
}

/* Of the tasks of a batch, which have rising numbers. */
static store_code_t take_attempts (store_source_t *self, batch_t *batch, store_error_t *error)
{
    bool row = true;
    size_t capacity = 0;
    store_code_t code = STORE_OK;
    sqlite3_stmt *statement = view_statement (&self->view, ATTEMPTS);
    sqlite3_bind_int64 (statement, 1, batch->records[0]->number);
    sqlite3_bind_int64 (statement, 2, batch->records[batch->records_count - 1]->number);
    while (code == STORE_OK && row) {
        code = view_step (&self->view, statement, &row, error);
        if (code != STORE_OK || !row)
            break;
        batch->attempts =
            memory_grow (batch->attempts, &capacity, batch->attempts_count, sizeof (attempt_t));
        attempt_t *attempt = &batch->attempts[batch->attempts_count++];
        if (!row_read_attempt (statement, attempt))
            code = damaged (self, "an attempt of task number", attempt->number, error);
    }
    sqlite3_reset (statement);
    return code;
}

static store_code_t take_tombstone (store_source_t *self, sqlite3_stmt *row, batch_t *batch,
                                    store_error_t *error)
{
    const char *ns;
    int64_t space = sqlite3_column_int64 (row, 0);
    removal_t removal = {.number = sqlite3_column_int64 (row, 2),
                         .at = sqlite3_column_int64 (row, 4),
                         .owner = sql_column_text (row, 6),
                         .queue = sql_column_text (row, 7)};
    sql_column_bytes (row, 1, removal.id.bytes, sizeof (removal.id.bytes));
    row_take_tombstone_code (&removal, sqlite3_column_int64 (row, 3));
    if (row_sum_of_tombstone (&removal, space) != (uint64_t) sqlite3_column_int64 (row, 5))
        return damaged (self, "the tombstone of task number", removal.number, error);
    store_code_t code = space_of (self, space, &ns, error);
    if (code != STORE_OK)
        return code;
    removal.ns = memory_text (ns);
    removal.owner = memory_text (removal.owner);
    removal.queue = memory_text (removal.queue);
    if (batch->removals == NULL)
        batch->removals = memory_zero (BATCH_ROWS, sizeof (removal_t));
    batch->removals[batch->removals_count++] = removal;
    batch->bytes += ROW_OVERHEAD;
    return STORE_OK;
}

/* One in a batch: the time of that is the block's. */
static store_code_t take_block (store_source_t *self, sqlite3_stmt *row, batch_t *batch,
                                store_error_t *error)
{
    const char *ns;
    int64_t key = sqlite3_column_int64 (row, ROW_EVENTS_KEY);
    size_t length = (size_t) sqlite3_column_bytes (row, ROW_EVENTS_LIST);
    store_code_t code = row_check_events (row, error);
    if (code == STORE_OK)
        code = space_of (self, EVENT_SPACE (key), &ns, error);
    if (code != STORE_OK)
        return code;
    batch->blocks = memory_zero (1, sizeof (event_block_t));
    batch->blocks[batch->blocks_count++] =
        (event_block_t){.ns = memory_text (ns),
                        .first_seq = (uint64_t) (key - EVENT_KEY (EVENT_SPACE (key), 0)),
                        .first_pos = (uint64_t) sqlite3_column_int64 (row, ROW_EVENTS_POS),
                        .count = (uint32_t) sqlite3_column_int64 (row, ROW_EVENTS_COUNT),
                        .list = buf_new (sqlite3_column_blob (row, ROW_EVENTS_LIST), length)};
    batch->wall_ms = sqlite3_column_int64 (row, ROW_EVENTS_AT);
    batch->bytes += ROW_OVERHEAD + length;
    return STORE_OK;
}

static store_code_t take_row (store_source_t *self, sqlite3_stmt *row, batch_t *batch,
                              store_error_t *error)
{
    row_kind_t kind = (row_kind_t) sqlite3_column_int (row, 0);
    const void *key = sqlite3_column_blob (row, 1);
    size_t key_bytes = (size_t) sqlite3_column_bytes (row, 1);
    const void *body = sqlite3_column_blob (row, 2);
    size_t body_bytes = (size_t) sqlite3_column_bytes (row, 2);
    int64_t expires_at = sqlite3_column_int64 (row, 3);
    uint64_t sum = row_sum_of_kind_row ((int) kind, key, key_bytes, body, body_bytes, expires_at);
    if (sum != (uint64_t) sqlite3_column_int64 (row, 4))
        return damaged (self, "a row of kind", kind, error);
    if (kind == ROW_KIND_ORDER)
        return STORE_OK; /* whoever writes the tasks finds that out */
    if (batch->rows == NULL)
        batch->rows = memory_zero (BATCH_ROWS, sizeof (row_t));
    row_t *to = &batch->rows[batch->rows_count++];
    *to = row_make (kind, key, key_bytes, body, body_bytes);
    to->expires_at = expires_at;
    batch->bytes += ROW_OVERHEAD + key_bytes + body_bytes;
    return STORE_OK;
}

static const struct phase {
    take_t *take;
    size_t rows_max; /* of a batch */
} PHASE[PHASES] = {
    [TASKS] = {take_task, BATCH_ROWS},
    [TOMBSTONES] = {take_tombstone, BATCH_ROWS},
    [EVENTS] = {take_block, 1},
    [ROWS] = {take_row, BATCH_ROWS},
};

/* *more: the phase may have more behind this batch. */
static store_code_t fill (store_source_t *self, batch_t *batch, bool *more, store_error_t *error)
{
    const struct phase *phase = &PHASE[self->phase];
    sqlite3_stmt *statement = self->view.statements[self->phase];
    store_code_t code = STORE_OK;
    *more = true;
    for (size_t rows = 0; rows < phase->rows_max && batch->bytes < BATCH_BYTES; rows++) {
        code = view_step (&self->view, statement, more, error);
        if (code != STORE_OK || !*more)
            break;
        code = phase->take (self, statement, batch, error);
        if (code != STORE_OK)
            break;
    }
    if (code == STORE_OK && batch->records_count > 0)
        code = take_attempts (self, batch, error);
    return code;
}

store_code_t store_source_next (store_source_t *self, batch_t **out, store_error_t *error)
{
    *out = NULL;
    while (self->phase < PHASES) {
        bool more;
        batch_t *batch = memory_zero (1, sizeof (*batch));
        store_code_t code = fill (self, batch, &more, error);
        if (code != STORE_OK) {
            batch_free (batch);
            return code;
        }
        if (!more)
            self->phase++;
        if (batch->bytes > 0) {
            batch->no = ++self->no;
            *out = batch;
            return STORE_OK;
        }
        batch_free (batch);
    }
    return STORE_OK;
}

static store_code_t read_facts (sqlite3 *db, store_source_facts_t *facts, store_error_t *error)
{
    int64_t epoch = 0;
    int64_t last_pos = 0;
    store_code_t code = sql_number (db, "SELECT epoch FROM meta", &epoch, error);
    if (code == STORE_OK)
        code = sql_number (db, "SELECT last_pos FROM meta", &last_pos, error);
    if (code == STORE_OK)
        code = sql_number (db, "SELECT last_number FROM meta", &facts->last_number, error);
    if (code == STORE_OK)
        code = sql_number (db, "SELECT newest_ms FROM meta", &facts->newest_ms, error);
    facts->epoch = (uint64_t) epoch;
    facts->last_pos = (uint64_t) last_pos;
    return code;
}

store_code_t store_source_open (store_source_t **out, const char *directory,
                                store_source_facts_t *facts, store_error_t *error)
{
    store_source_t *self = memory_zero (1, sizeof (*self));
    *out = self;
    *facts = (store_source_facts_t){.epoch = 0};
    gate_init (&self->gate);
    store_code_t code = view_open (&self->view, directory, &self->gate, TEXTS, STATEMENTS, error);
    return code == STORE_OK ? read_facts (self->view.db, facts, error) : code;
}

void store_source_close (store_source_t **self_p)
{
    store_source_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    view_close (&self->view);
    gate_destroy (&self->gate);
    free (self);
}
