/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Writes rows behind the journal. What fails is rolled back as a whole; the caller repeats it when
 * space was missing and gives up otherwise. */
#include "store/sqlite/tables.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/planted.h"
#include "store/checksum.h"
#include "store/marks.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/wal.h"

enum statement {
    BEGIN,
    COMMIT,
    META_READ,
    META_WRITE,
    TASK_NEW,
    TASK,
    TASK_DELETE,
    BODY,
    LABEL,
    ATTEMPT,
    TOMBSTONE,
    EVENTS,
    LABELS_DELETE,
    RESULT_DELETE,
    ROW_WRITE,
    ROW_DELETE,
    QUEUE_DELETE,
    SESSION_DELETE,
    MARK,
    ROW_READ,
    STATEMENTS
};

#define TASK_INSERT                                                                                \
    "INSERT INTO task (" ROW_COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,"     \
    " ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)"

/* Bodies are given once: an image without them leaves the stored ones alone. */
#define TASK_UPDATE                                                                                \
    " ON CONFLICT (number) DO UPDATE SET queue = excluded.queue, session = excluded.session,"      \
    " status = excluded.status, expires_at = excluded.expires_at, leased = excluded.leased,"       \
    " labels = excluded.labels,"                                                                   \
    " last_event = excluded.last_event, rest = excluded.rest,"                                     \
    " sum = excluded.sum, payload_sum = coalesce (excluded.payload_sum, payload_sum),"             \
    " result_sum = CASE excluded.result_bytes WHEN 0 THEN NULL"                                    \
    " ELSE coalesce (excluded.result_sum, result_sum) END,"                                        \
    " payload_bytes = excluded.payload_bytes, result_bytes = excluded.result_bytes,"               \
    " payload = coalesce (excluded.payload, payload),"                                             \
    " result = CASE excluded.result_bytes WHEN 0 THEN NULL"                                        \
    " ELSE coalesce (excluded.result, result) END"

static const char *const TEXTS[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [META_READ] = "SELECT generation, epoch, written_batch, last_number, last_pos, newest_ms,"
                  " tasks, tombstones, event_bytes, clean, sum FROM meta",
    /* The old epoch is the fence: whoever lost it changes no row. */
    [META_WRITE] = "UPDATE meta SET epoch = ?1, written_batch = ?2, last_number = ?3,"
                   " last_pos = ?4, newest_ms = ?5, tasks = ?6, tombstones = ?7,"
                   " event_bytes = ?8, clean = ?9, sum = ?11"
                   " WHERE epoch = ?10",
    [TASK_NEW] = TASK_INSERT,
    [TASK] = TASK_INSERT TASK_UPDATE,
    [TASK_DELETE] = "DELETE FROM task WHERE number = ?1 RETURNING queue, session",
    [BODY] = "REPLACE INTO body (number, kind, bytes, sum) VALUES (?1, ?2, ?3, ?4)",
    /* They hardly ever change: those that are there stay as they are. */
    [LABELS_DELETE] = "DELETE FROM label WHERE number = ?1 AND position < " LABELS_END,
    [RESULT_DELETE] = "DELETE FROM body WHERE number = ?1 AND kind = 2",
    [LABEL] = "INSERT INTO label (number, position, ns, key, value) VALUES (?1, ?2, ?3, ?4, ?5)"
              " ON CONFLICT DO NOTHING",
    [ATTEMPT] = "REPLACE INTO attempt (number, attempt, worker, started_at, ended_at, how,"
                " error_code, error_message, secret, request_id, sum)"
                " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [TOMBSTONE] = "INSERT INTO tombstone (ns, id, number, code, at, sum, owner, queue)"
                  " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                  " ON CONFLICT DO NOTHING",
    [EVENTS] = "INSERT INTO event (key, pos, count, at, list, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [ROW_WRITE] = "REPLACE INTO row (kind, key, body, sum, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
    [ROW_DELETE] = "DELETE FROM row WHERE kind = ?1 AND key = ?2",
    [QUEUE_DELETE] = "DELETE FROM name WHERE id = ?1"
                     " AND NOT EXISTS (SELECT 1 FROM task WHERE queue = ?1)",
    [SESSION_DELETE] = "DELETE FROM name WHERE id = ?1"
                       " AND NOT EXISTS (SELECT 1 FROM task WHERE session = ?1)",
    /* A task that was removed has none. */
    [MARK] = "INSERT INTO label (number, position, ns, key, value)"
             " SELECT number, ?3, ns, ?4, ?5 FROM task WHERE ns = ?1 AND id = ?2"
             " ON CONFLICT DO NOTHING",
    [ROW_READ] = "SELECT body FROM row WHERE kind = ?1 AND key = ?2",
};

enum {
    SHRINK_BYTES = 1024 * 1024, /* that one step gives back */
    SPARE_SHARE = 6,            /* of the file, or … */
    SPARE_BYTES = 1024 * 1024   /* … so much may be free: what comes next fills it */
};

/* A name that a removed task had: perhaps nobody has it now. */
typedef struct left_name {
    name_kind_t kind;
    int64_t id;
} left_name_t;

struct tables {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    name_numbers_t names;
    forget_rows_t forget_rows;
    forget_t forget;
    left_name_t *left; /* in the open transaction, each once */
    size_t left_count;
    size_t left_capacity;
    number_map_t left_ids;
    bytes_t rest; /* of the row being written */
    uint64_t removals;
    bool order_known; /* its row is there, and right */
    forgotten_t forgotten;
    tables_meta_t stored; /* as committed */
    tables_meta_t meta;   /* with the changes of the open transaction */
    wal_t wal;
    bool shrunk; /* pages were given back since the last checkpoint for their sake */
    unsigned planted_bug;
};

static uint64_t sum_of_meta (const tables_meta_t *meta)
{
    const int64_t numbers[] = {(int64_t) meta->generation,    (int64_t) meta->epoch,
                               (int64_t) meta->written_batch, meta->last_number,
                               (int64_t) meta->last_pos,      meta->newest_ms,
                               (int64_t) meta->tasks,         (int64_t) meta->tombstones,
                               (int64_t) meta->event_bytes,   meta->clean};
    return checksum_add_numbers (0, numbers, sizeof (numbers) / sizeof (numbers[0]));
}

static store_code_t tables_read_meta (tables_t *self, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[META_READ];
    int rc = sqlite3_step (statement);
    store_code_t code = STORE_OK;
    if (rc == SQLITE_ROW)
        self->stored = (tables_meta_t){
            .generation = (uint64_t) sqlite3_column_int64 (statement, 0),
            .epoch = (uint64_t) sqlite3_column_int64 (statement, 1),
            .written_batch = (uint64_t) sqlite3_column_int64 (statement, 2),
            .last_number = sqlite3_column_int64 (statement, 3),
            .last_pos = (uint64_t) sqlite3_column_int64 (statement, 4),
            .newest_ms = sqlite3_column_int64 (statement, 5),
            .tasks = (uint64_t) sqlite3_column_int64 (statement, 6),
            .tombstones = (uint64_t) sqlite3_column_int64 (statement, 7),
            .event_bytes = (uint64_t) sqlite3_column_int64 (statement, 8),
            .clean = sqlite3_column_int64 (statement, 9) != 0,
        };
    else if (rc == SQLITE_DONE)
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table meta is empty",
                           sqlite3_db_filename (self->db, "main"));
    else
        code = sql_fail (self->db, "cannot be read", error);
    uint64_t sum = code == STORE_OK ? (uint64_t) sqlite3_column_int64 (statement, 10) : 0;
    bool is_new = self->stored.epoch == 0 && sum == 0; /* SQLite made the row: see the schema */
    if (code == STORE_OK && !is_new && sum != sum_of_meta (&self->stored))
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: table meta is damaged",
                           sqlite3_db_filename (self->db, "main"));
    sqlite3_reset (statement);
    self->meta = self->stored;
    return code;
}

store_code_t tables_open (tables_t **out, const store_options_t *options, gate_t *gate,
                          store_error_t *error)
{
    tables_t *self = memory_zero (1, sizeof (*self));
    bool created;
    self->planted_bug = options->planted_bug;
    forget_init (&self->forget, &forget_rows_calls, &self->forget_rows);
    store_code_t code = schema_open_tables (&self->db, options, &created, error);
    if (code == STORE_OK)
        code = sql_run (self->db, "PRAGMA cache_size = -65536", error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, self->statements, TEXTS, STATEMENTS, error);
    if (code == STORE_OK)
        code = names_open (&self->names, self->db, true, error);
    if (code == STORE_OK)
        code = forget_rows_open (&self->forget_rows, self->db, error);
    if (code == STORE_OK)
        code = tables_read_meta (self, error);
    if (code == STORE_OK)
        code = order_find (&self->stored.order, &self->order_known, self->db, error);
    self->meta.order = self->stored.order;
    if (code == STORE_OK)
        code = wal_watch (&self->wal, self->db, gate, options->log_bytes_max, error);
    if (code == STORE_OK)
        *out = self;
    else
        tables_free (&self);
    return code;
}

void tables_free (tables_t **self_p)
{
    tables_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    names_close (&self->names);
    forget_rows_close (&self->forget_rows);
    sql_finalize (self->statements, STATEMENTS);
    sql_close (&self->db);
    bytes_free (&self->rest);
    free (self->left);
    number_map_clear (&self->left_ids);
    free (self);
}

/* Asked once, at the start: one look at the end of an index for each namespace. */
static const char NEWEST_ID[] =
    "SELECT max (id) FROM ("
    "SELECT (SELECT id FROM task WHERE ns = n.id ORDER BY id DESC LIMIT 1) AS id FROM namespace n"
    " UNION ALL "
    "SELECT (SELECT id FROM tombstone WHERE ns = n.id ORDER BY id DESC LIMIT 1) FROM namespace n)";

store_code_t tables_newest_id (tables_t *self, tmq_id_t *out, store_error_t *error)
{
    const char *const texts[] = {NEWEST_ID};
    sqlite3_stmt *statement = NULL;
    store_code_t code = sql_prepare (self->db, &statement, texts, 1, error);
    if (code != STORE_OK)
        return code;
    *out = (tmq_id_t){{0}};
    int rc = sqlite3_step (statement);
    if (rc == SQLITE_ROW)
        sql_column_bytes (statement, 0, out->bytes, sizeof (out->bytes));
    else
        code = sql_fail (self->db, "cannot be read", error);
    sqlite3_finalize (statement);
    return code;
}

uint64_t tables_removals (const tables_t *self)
{
    return self->removals;
}

const tables_meta_t *tables_meta (const tables_t *self)
{
    return &self->stored;
}

/* Writing. */

static void leave_name (tables_t *self, name_kind_t kind, int64_t id)
{
    bool is_new = false;
    if (id != 0)
        number_map_put (&self->left_ids, (uint64_t) id, &is_new);
    if (!is_new)
        return;
    self->left =
        memory_grow (self->left, &self->left_capacity, self->left_count, sizeof (left_name_t));
    self->left[self->left_count++] = (left_name_t){kind, id};
}

static store_code_t delete_task (tables_t *self, int64_t number, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[TASK_DELETE];
    sqlite3_bind_int64 (statement, 1, number);
    int rc = sqlite3_step (statement);
    if (rc == SQLITE_ROW) {
        self->meta.tasks -= self->planted_bug != ENGINE_BUG_COUNT_NOT_TAKEN_BACK;
        leave_name (self, NAME_QUEUE, sqlite3_column_int64 (statement, 0));
        leave_name (self, NAME_SESSION, sqlite3_column_int64 (statement, 1));
        rc = sqlite3_step (statement);
    }
    store_code_t code =
        rc == SQLITE_DONE ? STORE_OK : sql_fail (self->db, "a task cannot be removed", error);
    sqlite3_reset (statement);
    return code;
}

/* Behind all rows of a write-back: names that no task has any more. */
static store_code_t forget_names (tables_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < self->left_count; i++) {
        const left_name_t *left = &self->left[i];
        sqlite3_stmt *statement =
            self->statements[left->kind == NAME_QUEUE ? QUEUE_DELETE : SESSION_DELETE];
        sqlite3_bind_int64 (statement, 1, left->id);
        code = sql_do (statement, "a name cannot be removed", error);
        if (code == STORE_OK && sqlite3_changes (self->db) > 0)
            names_removed (&self->names, left->kind, left->id);
    }
    self->left_count = 0;
    number_map_clear (&self->left_ids);
    return code;
}

static store_code_t write_removal (tables_t *self, const removal_t *removal, store_error_t *error)
{
    store_code_t code = delete_task (self, removal->number, error);
    self->removals++;
    if (code != STORE_OK)
        return code;
    if (removal->number > self->meta.last_number)
        self->meta.last_number = removal->number; /* came and went between two write-backs */
    int64_t ns;
    code = names_add (&self->names, NAME_NAMESPACE, 0, removal->ns, &ns, error);
    if (code != STORE_OK)
        return code;
    sqlite3_stmt *statement = self->statements[TOMBSTONE];
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_blob (statement, 2, removal->id.bytes, sizeof (removal->id.bytes), SQLITE_STATIC);
    sqlite3_bind_int64 (statement, 3, removal->number);
    sqlite3_bind_int64 (statement, 4, row_tombstone_code (removal));
    sqlite3_bind_int64 (statement, 5, removal->at);
    sqlite3_bind_int64 (statement, 6, (sqlite3_int64) row_sum_of_tombstone (removal, ns));
    sqlite3_bind_text (statement, 7, removal->owner, -1, SQLITE_STATIC);
    sqlite3_bind_text (statement, 8, removal->queue, -1, SQLITE_STATIC);
    code = sql_do (statement, "a tombstone cannot be written", error);
    if (code == STORE_OK && sqlite3_changes (self->db) > 0)
        self->meta.tombstones++;
    return code;
}

static store_code_t write_body (tables_t *self, int64_t number, int kind, const buf_t *body,
                                store_error_t *error)
{
    if (buf_length (body) <= ROW_BODY_INLINE_MAX)
        return STORE_OK;
    sqlite3_stmt *statement = self->statements[BODY];
    sqlite3_bind_int64 (statement, 1, number);
    sqlite3_bind_int (statement, 2, kind);
    sql_bind_body (statement, 3, body);
    uint64_t sum = row_sum_of_body (number, kind, buf_bytes (body), buf_length (body));
    sqlite3_bind_int64 (statement, 4, (sqlite3_int64) sum);
    return sql_do (statement, "a body cannot be written", error);
}

static store_code_t write_labels (tables_t *self, const record_t *record, store_error_t *error)
{
    store_code_t code = STORE_OK;
    if (record->relabelled && self->planted_bug != ENGINE_BUG_LABEL_LEFT) {
        sqlite3_bind_int64 (self->statements[LABELS_DELETE], 1, record->number);
        code = sql_do (self->statements[LABELS_DELETE], "labels cannot be removed", error);
    }
    if (code != STORE_OK || record->labels_count == 0)
        return code;
    int64_t ns;
    code = names_find (&self->names, NAME_NAMESPACE, 0, record->ns, &ns, error);
    sqlite3_stmt *statement = self->statements[LABEL];
    for (size_t i = 0; code == STORE_OK && i < record->labels_count; i++) {
        sqlite3_bind_int64 (statement, 1, record->number);
        sqlite3_bind_int64 (statement, 2, (sqlite3_int64) i);
        sqlite3_bind_int64 (statement, 3, ns);
        sqlite3_bind_text (statement, 4, record->labels[i].key, -1, SQLITE_STATIC);
        sqlite3_bind_text (statement, 5, record->labels[i].value, -1, SQLITE_STATIC);
        code = sql_do (statement, "a label cannot be written", error);
    }
    return code;
}

/* The index of those whom others act for: a mark at the first place behind the labels. */
static store_code_t write_owner (tables_t *self, const record_t *record, store_error_t *error)
{
    int64_t ns;
    if (!access_is_behalf (record->owner))
        return STORE_OK;
    store_code_t code = names_find (&self->names, NAME_NAMESPACE, 0, record->ns, &ns, error);
    if (code != STORE_OK)
        return code;
    sqlite3_stmt *statement = self->statements[LABEL];
    sqlite3_bind_int64 (statement, 1, record->number);
    sqlite3_bind_int64 (statement, 2, TMQ_LABELS_MAX);
    sqlite3_bind_int64 (statement, 3, ns);
    sqlite3_bind_text (statement, 4, RECORD_MARK_OWNER, -1, SQLITE_STATIC);
    sqlite3_bind_text (statement, 5, record->owner, -1, SQLITE_STATIC);
    return sql_do (statement, "the owner of a task cannot be written", error);
}

static store_code_t find_names (tables_t *self, const record_t *record, row_names_t *names,
                                store_error_t *error)
{
    name_numbers_t *all = &self->names;
    store_code_t code = names_add (all, NAME_NAMESPACE, 0, record->ns, &names->ns, error);
    if (code == STORE_OK)
        code = names_add (all, NAME_OWNER, names->ns, record->owner, &names->owner, error);
    if (code == STORE_OK)
        code = names_add (all, NAME_QUEUE, names->ns, record->queue, &names->queue, error);
    if (code == STORE_OK)
        code = names_add (all, NAME_SESSION, names->ns, record->session, &names->session, error);
    return code;
}

/* The images come in order of number: a number above all that were ever stored is a new row, which
 * a plain INSERT writes a fifth faster. */
static store_code_t write_row (tables_t *self, const image_t *image, store_error_t *error)
{
    const record_t *record = image->record;
    row_names_t names;
    store_code_t code = find_names (self, record, &names, error);
    if (code != STORE_OK)
        return code;
    bool is_new = record->number > self->meta.last_number;
    sqlite3_stmt *statement = self->statements[is_new ? TASK_NEW : TASK];
    row_bind (statement, record, &names, image->payload, image->result, &self->rest);
    if (is_new)
        self->meta.last_number = record->number;
    else /* an update leaves the last inserted row id alone: so new rows are told from old ones */
        sqlite3_set_last_insert_rowid (self->db, 0);
    code = sql_do (statement, "a task cannot be written", error);
    if (code == STORE_OK && sqlite3_last_insert_rowid (self->db) != 0) {
        self->meta.tasks++;
        order_add (&self->meta.order, record->number, record->created_at);
    }
    return code;
}

static store_code_t write_image (tables_t *self, const image_t *image, store_error_t *error)
{
    const record_t *record = image->record;
    bool is_new = record->number > self->meta.last_number;
    store_code_t code = write_row (self, image, error);
    /* One that is queued after attempts may have had an outcome before. */
    if (code == STORE_OK && !is_new && record->status == TMQ_STATUS_QUEUED && record->attempt > 0) {
        sqlite3_bind_int64 (self->statements[RESULT_DELETE], 1, record->number);
        code = sql_do (self->statements[RESULT_DELETE], "a result cannot be removed", error);
    }
    if (code == STORE_OK)
        code = write_body (self, record->number, ROW_BODY_PAYLOAD, image->payload, error);
    if (code == STORE_OK)
        code = write_body (self, record->number, ROW_BODY_RESULT, image->result, error);
    if (code == STORE_OK)
        code = write_labels (self, record, error);
    if (code == STORE_OK)
        code = write_owner (self, record, error);
    return code;
}

static store_code_t write_attempt (tables_t *self, const attempt_t *attempt, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[ATTEMPT];
    sqlite3_bind_int64 (statement, 1, attempt->number);
    sqlite3_bind_int64 (statement, 2, attempt->attempt);
    sql_bind_text (statement, 3, attempt->worker);
    sqlite3_bind_int64 (statement, 4, attempt->started_at);
    sqlite3_bind_int64 (statement, 5, attempt->ended_at);
    sqlite3_bind_int (statement, 6, (int) attempt->how);
    sqlite3_bind_int (statement, 7, attempt->error_code);
    sql_bind_text (statement, 8, attempt->error_message);
    sqlite3_bind_blob (statement, 9, attempt->secret, sizeof (attempt->secret), SQLITE_STATIC);
    sqlite3_bind_blob (statement, 10, attempt->request_id, sizeof (attempt->request_id),
                       SQLITE_STATIC);
    sqlite3_bind_int64 (statement, 11, (sqlite3_int64) row_sum_of_attempt (attempt));
    return sql_do (statement, "an attempt cannot be written", error);
}

static store_code_t write_block (tables_t *self, const event_block_t *block, int64_t at,
                                 store_error_t *error)
{
    int64_t ns;
    store_code_t code = names_add (&self->names, NAME_NAMESPACE, 0, block->ns, &ns, error);
    if (code != STORE_OK)
        return code;
    sqlite3_stmt *statement = self->statements[EVENTS];
    int64_t key = EVENT_KEY (ns, block->first_seq);
    sqlite3_bind_int64 (statement, 1, key);
    sqlite3_bind_int64 (statement, 2, (sqlite3_int64) block->first_pos);
    sqlite3_bind_int64 (statement, 3, block->count);
    sqlite3_bind_int64 (statement, 4, at);
    code = sql_bind_blob (statement, 5, buf_bytes (block->list), buf_length (block->list),
                          "events cannot be written", error);
    if (code != STORE_OK)
        return code;
    uint64_t sum = row_sum_of_events (key, (int64_t) block->first_pos, block->count, at,
                                      buf_bytes (block->list), buf_length (block->list));
    sqlite3_bind_int64 (statement, 6, (sqlite3_int64) sum);
    self->meta.event_bytes += buf_length (block->list);
    uint64_t last_pos = block->first_pos + block->count - 1;
    if (last_pos > self->meta.last_pos)
        self->meta.last_pos = last_pos;
    return sql_do (statement, "events cannot be written", error);
}

static store_code_t write_kind_row (tables_t *self, const row_t *row, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[row->gone ? ROW_DELETE : ROW_WRITE];
    sqlite3_bind_int (statement, 1, (int) row->kind);
    store_code_t code = sql_bind_blob (statement, 2, buf_bytes (row->key), buf_length (row->key),
                                       "a row cannot be written", error);
    if (code == STORE_OK && !row->gone)
        code = sql_bind_blob (statement, 3, buf_bytes (row->body), buf_length (row->body),
                              "a row cannot be written", error);
    if (code != STORE_OK)
        return code;
    uint64_t sum =
        row_sum_of_kind_row ((int) row->kind, buf_bytes (row->key), buf_length (row->key),
                             buf_bytes (row->body), buf_length (row->body), row->expires_at);
    if (!row->gone) {
        sqlite3_bind_int64 (statement, 4, (sqlite3_int64) sum);
        sqlite3_bind_int64 (statement, 5, row->expires_at);
    }
    return sql_do (statement, "a row cannot be written", error);
}

static store_code_t write_marks (tables_t *self, const row_t *row, store_error_t *error)
{
    int64_t ns = 0;
    int64_t place;
    marks_t marks;
    turn_mark_t mark;
    if (!marks_open (&marks, row))
        return STORE_OK;
    store_code_t code = names_find (&self->names, NAME_NAMESPACE, 0, marks.ns, &ns, error);
    sqlite3_stmt *statement = self->statements[MARK];
    sqlite3_bind_int64 (statement, 1, ns);
    sqlite3_bind_blob (statement, 2, marks.id, sizeof (tmq_id_t), SQLITE_STATIC);
    while (code == STORE_OK && marks_next (&marks, &mark, &place)) {
        sqlite3_bind_int64 (statement, 3, place);
        sqlite3_bind_text (statement, 4, mark.key, -1, SQLITE_STATIC);
        sqlite3_bind_text (statement, 5, mark.value, (int) mark.length, SQLITE_STATIC);
        code = sql_do (statement, "what a turn tells cannot be written", error);
    }
    sqlite3_clear_bindings (statement);
    return code;
}

static store_code_t write_changed_row (tables_t *self, const row_t *row, store_error_t *error)
{
    store_code_t code = write_kind_row (self, row, error);
    return code == STORE_OK ? write_marks (self, row, error) : code;
}

/* Removals come first, so that a dedup key is free when its next holder is written. */
static store_code_t write_removals (tables_t *self, batch_t *const *batches, size_t count,
                                    store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; code == STORE_OK && k < batches[i]->removals_count; k++)
            code = write_removal (self, &batches[i]->removals[k], error);
    return code;
}

static store_code_t write_batch (tables_t *self, const batch_t *batch, const images_t *images,
                                 store_error_t *error)
{
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < batch->attempts_count; i++) {
        if (!images_is_removed (
                images, batch->attempts[i].number)) /* a removed task takes its attempts along */
            code = write_attempt (self, &batch->attempts[i], error);
    }
    for (size_t i = 0; code == STORE_OK && i < batch->blocks_count; i++)
        code = write_block (self, &batch->blocks[i], batch->wall_ms, error);
    /* Also when the clock came back. A start finds a leap that was not believed yet once more. */
    self->meta.newest_ms = batch->expiry_ms;
    self->meta.written_batch = batch->no;
    return code;
}

store_code_t tables_write (tables_t *self, const dirty_t *dirty, store_error_t *error)
{
    const images_t *images = &dirty->images;
    store_code_t code = write_removals (self, dirty->batches, dirty->count, error);
    for (size_t i = 0; code == STORE_OK && i < images->count; i++)
        code = write_image (self, &images->list[i], error);
    for (size_t i = 0; code == STORE_OK && i < dirty->count; i++)
        code = write_batch (self, dirty->batches[i], images, error);
    for (size_t i = 0; code == STORE_OK && i < dirty->rows.count; i++)
        code = write_changed_row (self, &dirty->rows.rows[i], error);
    if (code == STORE_OK)
        code = forget_names (self, error);
    return code;
}

/* Transactions. */

store_code_t tables_begin (tables_t *self, store_error_t *error)
{
    self->meta = self->stored;
    self->left_count = 0;
    self->forgotten = (forgotten_t){0};
    number_map_clear (&self->left_ids);
    names_trim (&self->names);
    return sql_do (self->statements[BEGIN], "cannot begin a write-back", error);
}

void tables_start_epoch (tables_t *self)
{
    self->meta.epoch++;
    self->meta.written_batch = 0;
    self->meta.clean = false;
}

void tables_set_clean (tables_t *self, bool clean)
{
    self->meta.clean = clean;
}

static store_code_t read_floor (tables_t *self, uint64_t *floor, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[ROW_READ];
    sqlite3_bind_int (statement, 1, ROW_KIND_FORGOTTEN);
    sqlite3_bind_blob (statement, 2, FORGET_FLOOR_KEY, sizeof (FORGET_FLOOR_KEY), SQLITE_STATIC);
    int rc = sqlite3_step (statement);
    store_code_t code = STORE_OK;
    *floor = 0;
    if (rc == SQLITE_ROW) {
        buf_t *body = buf_new (sqlite3_column_blob (statement, 0),
                               (size_t) sqlite3_column_bytes (statement, 0));
        *floor = row_number (body);
        buf_drop (body);
    } else if (rc != SQLITE_DONE) {
        code = sql_fail (self->db, "a row cannot be read", error);
    }
    sqlite3_reset (statement);
    return code;
}

static store_code_t raise_floor (tables_t *self, store_error_t *error)
{
    forgotten_t *forgotten = &self->forgotten;
    store_code_t code = read_floor (self, &forgotten->upto_seq, error);
    if (code != STORE_OK)
        return code;
    row_t row = forget_raise_floor (forgotten);
    code = write_kind_row (self, &row, error);
    row_drop (&row);
    return code;
}

store_code_t tables_forget (tables_t *self, const forget_limits_t *limits, bool *more,
                            store_error_t *error)
{
    forget_totals_t totals = {self->meta.event_bytes, self->meta.tombstones};
    store_code_t code = forget_slice (&self->forget, limits, &totals, more, error);
    self->meta.event_bytes = totals.event_bytes;
    self->meta.tombstones = totals.tombstones;
    if (code != STORE_OK || self->forget.spaces_count == 0)
        return code;
    self->forgotten =
        (forgotten_t){.list = self->forget.spaces, .count = self->forget.spaces_count};
    names_forget (&self->names);
    return raise_floor (self, error);
}

const forgotten_t *tables_forgotten (const tables_t *self)
{
    return &self->forgotten;
}

static store_code_t write_meta (tables_t *self, store_error_t *error)
{
    const tables_meta_t *meta = &self->meta;
    sqlite3_stmt *statement = self->statements[META_WRITE];
    sqlite3_bind_int64 (statement, 1, (sqlite3_int64) meta->epoch);
    sqlite3_bind_int64 (statement, 2, (sqlite3_int64) meta->written_batch);
    sqlite3_bind_int64 (statement, 3, meta->last_number);
    sqlite3_bind_int64 (statement, 4, (sqlite3_int64) meta->last_pos);
    sqlite3_bind_int64 (statement, 5, meta->newest_ms);
    sqlite3_bind_int64 (statement, 6, (sqlite3_int64) meta->tasks);
    sqlite3_bind_int64 (statement, 7, (sqlite3_int64) meta->tombstones);
    sqlite3_bind_int64 (statement, 8, (sqlite3_int64) meta->event_bytes);
    sqlite3_bind_int (statement, 9, meta->clean);
    sqlite3_bind_int64 (statement, 10, (sqlite3_int64) self->stored.epoch);
    sqlite3_bind_int64 (statement, 11, (sqlite3_int64) sum_of_meta (meta));
    store_code_t code = sql_do (statement, "a write-back cannot be written", error);
    if (code == STORE_OK && sqlite3_changes (self->db) != 1)
        code = store_fail (error, STORE_ERROR_FENCED, "%s: another broker took over",
                           sqlite3_db_filename (self->db, "main"));
    return code;
}

static store_code_t write_order (tables_t *self, store_error_t *error)
{
    const order_t *order = &self->meta.order;
    const order_t *stored = &self->stored.order;
    if (self->order_known && order->first == stored->first && order->last == stored->last)
        return STORE_OK;
    uint8_t body[ORDER_BYTES];
    order_pack (order, body);
    row_t row = row_make (ROW_KIND_ORDER, ORDER_KEY, sizeof (ORDER_KEY), body, sizeof (body));
    store_code_t code = write_kind_row (self, &row, error);
    row_drop (&row);
    return code;
}

store_code_t tables_commit (tables_t *self, store_error_t *error)
{
    store_code_t code = write_meta (self, error);
    if (code == STORE_OK)
        code = write_order (self, error);
    if (code == STORE_OK)
        code = sql_do (self->statements[COMMIT], "a write-back cannot be made durable", error);
    if (code == STORE_OK) {
        self->stored = self->meta;
        self->order_known = true;
    }
    return code;
}

void tables_rollback (tables_t *self)
{
    sql_rollback (self->db);
    names_forget (&self->names);
    forget_begin_anew (&self->forget);
}

store_code_t tables_quick_check (tables_t *self, store_error_t *error)
{
    store_error_t found;
    store_code_t code = sql_pragma (self->db, "PRAGMA quick_check (1)", "ok", &found);
    if (code == STORE_OK)
        return STORE_OK;
    return store_fail (error, STORE_ERROR_CORRUPT, "%s", found.text);
}

store_code_t tables_begin_history (tables_t *self, store_error_t *error)
{
    int64_t generation = 0;
    store_code_t code = sql_number (
        self->db,
        "UPDATE meta SET generation = random () & 0x7fffffffffffffff | 1 RETURNING generation",
        &generation, error);
    self->meta.generation = (uint64_t) generation;
    self->meta.clean = true;
    return code;
}

store_code_t tables_copy (tables_t *self, copy_t *out, const char *path, store_error_t *error)
{
    return copy_begin (out, self->db, path, error);
}

/* The log. */

bool tables_are_held (const tables_t *self)
{
    return wal_is_held (&self->wal);
}

store_code_t tables_checkpoint_all (tables_t *self, store_error_t *error)
{
    return wal_checkpoint_all (&self->wal, error);
}

store_code_t tables_checkpoint_if_large (tables_t *self, store_error_t *error)
{
    return wal_checkpoint_if_large (&self->wal, error);
}

store_code_t tables_need_log (tables_t *self, store_error_t *error)
{
    return wal_need (&self->wal, error);
}

/* Free pages. */

static store_code_t give_pages_back (tables_t *self, store_error_t *error)
{
    char text[64];
    snprintf (text, sizeof (text), "PRAGMA incremental_vacuum (%d)",
              (int) (SHRINK_BYTES / self->wal.page_bytes));
    store_code_t code = tables_need_log (self, error);
    if (code == STORE_OK)
        code = tables_begin (self, error);
    if (code == STORE_OK)
        code = sql_run (self->db, text, error);
    if (code == STORE_OK)
        code = tables_commit (self, error);
    if (code != STORE_OK)
        tables_rollback (self);
    return code;
}

store_code_t tables_space (tables_t *self, tables_space_t *out, store_error_t *error)
{
    int64_t spare = 0;
    int64_t pages = 0;
    store_code_t code = sql_number (self->db, "PRAGMA freelist_count", &spare, error);
    if (code == STORE_OK)
        code = sql_number (self->db, "PRAGMA page_count", &pages, error);
    *out = (tables_space_t){(uint64_t) pages * self->wal.page_bytes,
                            (uint64_t) spare * self->wal.page_bytes};
    return code;
}

static store_code_t shrink_step (tables_t *self, store_error_t *error)
{
    store_code_t code = give_pages_back (self, error);
    self->shrunk = true;
    return code == STORE_OK ? tables_checkpoint_if_large (self, error) : code;
}

/* The file gets smaller when the log comes into it. */
static store_code_t finish_shrinking (tables_t *self, store_error_t *error)
{
    if (!self->shrunk)
        return STORE_OK;
    self->shrunk = false;
    return wal_checkpoint (&self->wal, error);
}

store_code_t tables_shrink (tables_t *self, bool *more, store_error_t *error)
{
    tables_space_t space;
    *more = false;
    store_code_t code = tables_space (self, &space, error);
    if (code != STORE_OK)
        return code;
    *more = space.free_bytes > space.file_bytes / SPARE_SHARE && space.free_bytes > SPARE_BYTES;
    return *more ? shrink_step (self, error) : finish_shrinking (self, error);
}

store_code_t tables_vacuum (tables_t *self, tables_space_t *out, store_error_t *error)
{
    store_code_t code = tables_space (self, out, error);
    if (code == STORE_OK && out->free_bytes > 0) {
        code = shrink_step (self, error);
        if (code == STORE_OK)
            code = tables_space (self, out, error);
    }
    return code == STORE_OK && out->free_bytes == 0 ? finish_shrinking (self, error) : code;
}
