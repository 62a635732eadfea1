/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Every row is read as the broker reads it; what SQLite knows of its structure and indexes comes
 * before. A log that stands beside a file is read with it. */
#include "store/audit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "store/checksum.h"
#include "store/journal/journal.h"
#include "store/sqlite/old_journal.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/wal_scan.h"

enum { META_NUMBERS = 10 };

static const char STRUCTURE[] = "PRAGMA integrity_check (1000000)";
static const char FOREIGN_KEYS[] = "SELECT \"table\", rowid FROM pragma_foreign_key_check";
static const char META[] = "SELECT generation, epoch, written_batch, last_number, last_pos,"
                           " newest_ms, tasks, tombstones, event_bytes, clean, sum,"
                           " (SELECT count (*) FROM task) FROM meta";
static const char NAMES[] = "SELECT id, 0, 0, name, sum FROM namespace"
                            " UNION ALL SELECT id, ns, kind, name, sum FROM name";
static const char TASKS[] = "SELECT " ROW_COLUMNS " FROM task ORDER BY number";
static const char ATTEMPTS[] = "SELECT " ROW_ATTEMPT_COLUMNS " FROM attempt";
static const char TOMBSTONES[] =
    "SELECT ns, id, number, code, at, sum, owner, queue FROM tombstone";
static const char EVENTS[] = "SELECT " ROW_EVENTS_COLUMNS " FROM event ORDER BY key";
static const char KIND_ROWS[] = "SELECT kind, key, body, sum, expires_at FROM row";

typedef struct check {
    store_audit_t *report;
    sqlite3 *db;
    const char *file;
    row_reader_t reader;
    journal_tables_t tables; /* as the journal has to find them */
} check_t;

static void found (check_t *self, const char *what, int64_t number)
{
    char text[600];
    self->report->findings++;
    if (number >= 0)
        snprintf (text, sizeof (text), "%s: %s %lld", self->file, what, (long long) number);
    else
        snprintf (text, sizeof (text), "%s: %s", self->file, what);
    self->report->found (self->report->context, text);
}

static void found_error (check_t *self, const store_error_t *error)
{
    self->report->findings++;
    self->report->found (self->report->context, error->text);
}

/* Calls each for every row; what SQLite cannot read any more is a finding too. */
static void each_row (check_t *self, const char *sql, void (*each) (check_t *, sqlite3_stmt *))
{
    store_error_t error;
    sqlite3_stmt *statement;
    if (sql_prepare (self->db, &statement, &sql, 1, &error) != STORE_OK) {
        found_error (self, &error);
        return;
    }
    int rc = sqlite3_step (statement);
    for (; rc == SQLITE_ROW; rc = sqlite3_step (statement))
        each (self, statement);
    if (rc != SQLITE_DONE) {
        sql_fail (self->db, "cannot be read to its end", &error);
        found_error (self, &error);
    }
    sqlite3_finalize (statement);
}

static uint64_t sum_in (sqlite3_stmt *row, int column)
{
    return (uint64_t) sqlite3_column_int64 (row, column);
}

static void check_structure (check_t *self, sqlite3_stmt *row)
{
    const char *text = sql_column_text (row, 0);
    if (sqlite3_stricmp (text, "ok") != 0)
        found (self, text, -1);
}

static void check_reference (check_t *self, sqlite3_stmt *row)
{
    char text[100];
    snprintf (text, sizeof (text), "no task for table %.60s, row", sql_column_text (row, 0));
    found (self, text, sqlite3_column_int64 (row, 1));
}

static void check_meta (check_t *self, sqlite3_stmt *row)
{
    int64_t numbers[META_NUMBERS];
    for (int i = 0; i < META_NUMBERS; i++)
        numbers[i] = sqlite3_column_int64 (row, i);
    self->tables = (journal_tables_t){(uint64_t) numbers[0], (uint64_t) numbers[1],
                                      (uint64_t) numbers[2], numbers[9] != 0};
    self->report->generation = (uint64_t) numbers[0];
    self->report->last_pos = (uint64_t) numbers[4];
    bool is_new = numbers[1] == 0 && sum_in (row, META_NUMBERS) == 0;
    if (!is_new && checksum_add_numbers (0, numbers, META_NUMBERS) != sum_in (row, META_NUMBERS))
        found (self, "table meta is damaged", -1);
    else if (numbers[6] != sqlite3_column_int64 (row, META_NUMBERS + 1))
        found (self, "the rows of table task are not as many as table meta says:", numbers[6]);
}

static void check_name (check_t *self, sqlite3_stmt *row)
{
    if (names_sum ((name_kind_t) sqlite3_column_int (row, 2), sqlite3_column_int64 (row, 1),
                   sql_column_text (row, 3)) != sum_in (row, 4))
        found (self, "damaged: name", sqlite3_column_int64 (row, 0));
}

static void check_task (check_t *self, sqlite3_stmt *row)
{
    record_t *record;
    store_error_t error;
    self->report->tasks++;
    names_trim (self->reader.names);
    if (row_read (&self->reader, row, true, &record, &error) != STORE_OK) {
        found_error (self, &error);
        return;
    }
    if (self->report->task != NULL)
        self->report->task (self->report->context, record);
    record_free (record);
}

static void check_attempt (check_t *self, sqlite3_stmt *row)
{
    attempt_t attempt;
    if (!row_read_attempt (row, &attempt))
        found (self, "damaged: an attempt of task number", attempt.number);
}

static void check_tombstone (check_t *self, sqlite3_stmt *row)
{
    removal_t removal = {.number = sqlite3_column_int64 (row, 2),
                         .at = sqlite3_column_int64 (row, 4),
                         .owner = sql_column_text (row, 6),
                         .queue = sql_column_text (row, 7)};
    row_take_tombstone_code (&removal, sqlite3_column_int64 (row, 3));
    sql_column_bytes (row, 1, removal.id.bytes, sizeof (removal.id.bytes));
    if (row_sum_of_tombstone (&removal, sqlite3_column_int64 (row, 0)) != sum_in (row, 5))
        found (self, "damaged: the tombstone of task number", removal.number);
}

/* Whoever waits for its event is told of it. */
static void show_block (const store_audit_t *report, const event_block_t *block)
{
    if (report->block != NULL && report->pos >= block->first_pos &&
        report->pos - block->first_pos < block->count)
        report->block (report->context, block);
}

static void check_events (check_t *self, sqlite3_stmt *row)
{
    store_error_t error;
    self->report->blocks++;
    if (row_check_events (row, &error) != STORE_OK) {
        found_error (self, &error);
        return;
    }
    int64_t key = sqlite3_column_int64 (row, ROW_EVENTS_KEY);
    event_block_t block = {.first_seq = (uint64_t) (key - EVENT_KEY (key >> 42, 0)),
                           .first_pos = (uint64_t) sqlite3_column_int64 (row, ROW_EVENTS_POS),
                           .count = (uint32_t) sqlite3_column_int64 (row, ROW_EVENTS_COUNT)};
    if (names_text (self->reader.names, NAME_NAMESPACE, key >> 42, &block.ns, &error) != STORE_OK)
        return; /* a damaged name is told by itself */
    block.list = buf_new (sqlite3_column_blob (row, ROW_EVENTS_LIST),
                          (size_t) sqlite3_column_bytes (row, ROW_EVENTS_LIST));
    show_block (self->report, &block);
    buf_drop (block.list);
}

static void note_batch (store_audit_t *report, const batch_t *batch)
{
    report->batches++;
    for (size_t i = 0; i < batch->blocks_count; i++) {
        const event_block_t *block = &batch->blocks[i];
        uint64_t last = block->first_pos + block->count - 1;
        report->last_pos = last > report->last_pos ? last : report->last_pos;
        show_block (report, block);
    }
    for (size_t i = 0; report->task != NULL && i < batch->records_count; i++)
        report->task (report->context, batch->records[i]);
    for (size_t i = 0; report->removal != NULL && i < batch->removals_count; i++)
        report->removal (report->context, &batch->removals[i]);
}

static void check_kind_row (check_t *self, sqlite3_stmt *row)
{
    int kind = sqlite3_column_int (row, 0);
    if (row_sum_of_kind_row (kind, sqlite3_column_blob (row, 1),
                             (size_t) sqlite3_column_bytes (row, 1), sqlite3_column_blob (row, 2),
                             (size_t) sqlite3_column_bytes (row, 2),
                             sqlite3_column_int64 (row, 4)) != sum_in (row, 3)) {
        found (self, "damaged: a row of kind", kind);
    } else if (self->report->row != NULL && kind == (int) self->report->row_kind) {
        row_t told = row_make (self->report->row_kind, sqlite3_column_blob (row, 1),
                               (size_t) sqlite3_column_bytes (row, 1), sqlite3_column_blob (row, 2),
                               (size_t) sqlite3_column_bytes (row, 2));
        self->report->row (self->report->context, &told);
        row_drop (&told);
    }
}

/* What is in the tables behind the tasks. */
static void check_others (check_t *self)
{
    each_row (self, ATTEMPTS, check_attempt);
    each_row (self, TOMBSTONES, check_tombstone);
    each_row (self, EVENTS, check_events);
    each_row (self, KIND_ROWS, check_kind_row);
    each_row (self, FOREIGN_KEYS, check_reference);
}

static store_code_t check_tables (check_t *self, store_error_t *error)
{
    name_numbers_t names = {0};
    sqlite3_stmt *statements[ROW_STATEMENTS];
    store_code_t code = names_open (&names, self->db, false, error);
    if (code == STORE_OK)
        code = sql_prepare (self->db, statements, ROW_TEXTS, ROW_STATEMENTS, error);
    if (code == STORE_OK) {
        self->reader = (row_reader_t){&names, statements, arena_new (ROW_UNPACKED_MAX)};
        each_row (self, META, check_meta);
        if (!self->report->tasks_only)
            each_row (self, NAMES, check_name);
        if (self->report->upgraded == 0)
            each_row (self, TASKS, check_task);
        if (!self->report->tasks_only)
            check_others (self);
        arena_free (self->reader.arena);
        sql_finalize (statements, ROW_STATEMENTS);
    }
    names_close (&names);
    return code;
}

static void note_version (store_audit_t *report, int64_t version)
{
    report->schema = (int) version;
    report->upgraded = version == SCHEMA_TABLES_VERSION ? 0 : SCHEMA_TABLES_VERSION;
}

static store_code_t check_parts (check_t *self, const char *directory, store_error_t *error)
{
    bool cut;
    const bool whole = !self->report->tasks_only;
    if (whole && wal_scan (directory, self->file, &cut, error) != STORE_OK)
        found_error (self, error);
    int64_t version = 0;
    store_code_t code = schema_open_unchanged (&self->db, directory, true, &version, error);
    if (code == STORE_ERROR_CORRUPT) {
        found_error (self, error);
        return STORE_OK;
    }
    if (code != STORE_OK)
        return code;
    note_version (self->report, version);
    if (whole)
        each_row (self, STRUCTURE, check_structure);
    code = check_tables (self, error);
    if (code == STORE_ERROR_CORRUPT) {
        found_error (self, error);
        code = STORE_OK;
    }
    sql_close (&self->db);
    return code;
}

/* SQLite makes an empty log where there is none: that goes again. */
static store_code_t check_file (store_audit_t *report, const char *directory,
                                journal_tables_t *found, store_error_t *error)
{
    check_t self = {.report = report, .file = SCHEMA_TABLES_FILE};
    char log[PATH_MAX];
    snprintf (log, sizeof (log), "%s/%s-wal", directory, self.file);
    struct stat status;
    bool had_log = stat (log, &status) == 0;
    store_code_t code = check_parts (&self, directory, error);
    if (!had_log && stat (log, &status) == 0 && status.st_size == 0)
        unlink (log);
    *found = self.tables;
    return code;
}

static bool has_log (const char *directory)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf (path, sizeof (path), "%s/" JOURNAL_FILE, directory);
    return stat (path, &status) != 0 ? errno != ENOENT : status.st_size > 0;
}

static store_code_t count_batch (void *context, batch_t *batch, store_error_t *error)
{
    (void) error;
    store_audit_t *report = context;
    note_batch (report, batch);
    for (size_t i = 0; report->row != NULL && i < batch->rows_count; i++)
        if (batch->rows[i].kind == report->row_kind)
            report->row (report->context, &batch->rows[i]);
    batch_free (batch);
    return STORE_OK;
}

/* A start goes on, and these are lost. */
static void found_lost (check_t *self, const lost_t *lost)
{
    char text[400];
    if (lost->why == NULL)
        return;
    if (lost->first == 0)
        snprintf (text, sizeof (text), "a start goes on, and commits may be lost: %s", lost->why);
    else
        snprintf (text, sizeof (text),
                  "a start goes on without %llu batches, from batch %llu to %llu: %s",
                  (unsigned long long) lost->last - lost->first + 1,
                  (unsigned long long) lost->first, (unsigned long long) lost->last, lost->why);
    found (self, text, -1);
}

/* As a start reads them. *self: of which this is a part. */
static store_code_t check_old (check_t *self, old_journal_t *old, store_error_t *error)
{
    lost_t lost = {NULL, 0, 0};
    store_code_t code = old_journal_judge (old, &self->tables, &lost, error);
    if (code == STORE_OK)
        found_lost (self, &lost);
    return code == STORE_OK
               ? old_journal_replay (old, &self->tables, count_batch, self->report, error)
               : code;
}

static store_code_t check_log (check_t *self, const char *directory, bool needed,
                               store_error_t *error)
{
    journal_t *journal = NULL;
    bool cut;
    const journal_options_t options = {.directory = directory};
    store_code_t code = journal_open (&journal, &options, &self->tables, needed, error);
    if (code == STORE_OK)
        code = journal_replay (journal, count_batch, self->report, &cut, error);
    if (code == STORE_OK) {
        lost_t lost = journal_lost (journal);
        found_lost (self, &lost);
    }
    journal_free (&journal);
    return code;
}

/* The journal of an earlier version stands for a missing one. So does nothing where the tables need
 * none, as in a directory that was restored: the start makes one. */
static store_code_t check_journals (store_audit_t *report, const char *directory,
                                    const journal_tables_t *tables, store_error_t *error)
{
    check_t self = {.report = report, .file = SCHEMA_JOURNAL_FILE, .tables = *tables};
    old_journal_t *old = NULL;
    store_code_t code = old_journal_open (&old, directory, error);
    bool needed = !tables->clean && (old == NULL || old_journal_is_empty (old));
    if (code == STORE_OK && old != NULL)
        code = check_old (&self, old, error);
    old_journal_free (&old);
    self.file = JOURNAL_FILE;
    if (code == STORE_OK && (needed || has_log (directory)))
        code = check_log (&self, directory, needed, error);
    if (code != STORE_ERROR_CORRUPT)
        return code;
    found_error (&self, error);
    return STORE_OK;
}

store_code_t store_audit (store_audit_t *self, const char *directory, store_error_t *error)
{
    self->findings = self->tasks = self->blocks = self->batches = 0;
    self->generation = self->last_pos = 0;
    self->schema = self->upgraded = 0;
    journal_tables_t tables = {0};
    store_code_t code = check_file (self, directory, &tables, error);
    return code == STORE_OK ? check_journals (self, directory, &tables, error) : code;
}
