/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/old_journal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/checksum.h"
#include "store/journal/journal_codec.h"
#include "store/sqlite/reshape.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/wal_scan.h"

static const char SELECT_MARK[] = "SELECT body FROM journal WHERE batch = -1";
static const char SELECT_ALL[] = "SELECT batch, body FROM journal WHERE batch > 0 ORDER BY batch";

/* What the journal has given up, in a row of its own beside the batches: those of this history and
 * epoch up to `written`. */
typedef struct mark {
    uint64_t generation;
    uint64_t epoch;
    uint64_t written;
} mark_t;

enum { MARK_NUMBERS = 3, MARK_BYTES = MARK_NUMBERS * 8 + CHECKSUM_BYTES };

struct old_journal {
    char *directory;
    sqlite3 *db;
    bool had_log;   /* when it was opened */
    bool empty_log; /* … without a byte */
    bool cut;       /* the log ends where it was not synced, before commits */
    int64_t version;
};

static bool is_there (const char *directory, const char *name, struct stat *status)
{
    char path[PATH_MAX];
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    return lstat (path, status) == 0;
}

store_code_t old_journal_open (old_journal_t **out, const char *directory, store_error_t *error)
{
    struct stat status;
    bool cut;
    *out = NULL;
    if (!is_there (directory, SCHEMA_JOURNAL_FILE, &status))
        return STORE_OK;
    store_code_t code = wal_scan (directory, SCHEMA_JOURNAL_FILE, &cut, error);
    if (code != STORE_OK)
        return code;
    old_journal_t *self = memory_zero (1, sizeof (*self));
    self->directory = memory_text (directory);
    self->cut = cut;
    self->had_log = is_there (directory, SCHEMA_JOURNAL_FILE "-wal", &status);
    self->empty_log = self->had_log && status.st_size == 0;
    code = schema_open_journal (&self->db, directory, self->had_log, &self->version, error);
    if (code == STORE_OK)
        *out = self;
    else
        old_journal_free (&self);
    return code;
}

bool old_journal_is_empty (const old_journal_t *self)
{
    return self->version == 0;
}

void old_journal_free (old_journal_t **self_p)
{
    old_journal_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    sql_close (&self->db);
    free (self->directory);
    free (self);
}

/* The log goes last: a start that finds one of the others is ended as this one. */
store_code_t old_journal_remove (old_journal_t **self_p, store_error_t *error)
{
    static const char *const NAMES[] = {SCHEMA_JOURNAL_FILE, SCHEMA_JOURNAL_FILE "-shm",
                                        SCHEMA_JOURNAL_FILE "-wal"};
    if (*self_p == NULL)
        return STORE_OK;
    char *directory = memory_text ((*self_p)->directory);
    char path[PATH_MAX];
    store_code_t code = STORE_OK;
    old_journal_free (self_p);
    for (size_t i = 0; i < sizeof (NAMES) / sizeof (NAMES[0]); i++) {
        snprintf (path, sizeof (path), "%s/%s", directory, NAMES[i]);
        if (unlink (path) != 0 && errno != ENOENT)
            code = store_fail (error, STORE_ERROR_IO, "%s: cannot be removed: %s", path,
                               strerror (errno));
    }
    if (code == STORE_OK && device_files.sync_directory (&device_files, directory) != 0)
        code = store_fail (error, STORE_ERROR_IO, "%s: cannot be synced: %s", directory,
                           strerror (errno));
    free (directory);
    return code;
}

/* The mark. */

static void mark_pack (uint8_t to[MARK_BYTES], const mark_t *mark)
{
    const int64_t numbers[MARK_NUMBERS] = {(int64_t) mark->generation, (int64_t) mark->epoch,
                                           (int64_t) mark->written};
    for (size_t i = 0; i < MARK_NUMBERS; i++)
        checksum_put (to + i * 8, (uint64_t) numbers[i]);
    checksum_put (to + (size_t) MARK_NUMBERS * 8, checksum_add_numbers (0, numbers, MARK_NUMBERS));
}

static bool mark_unpack (mark_t *out, const uint8_t *from, size_t bytes)
{
    if (bytes != MARK_BYTES)
        return false;
    *out = (mark_t){checksum_get (from), checksum_get (from + 8), checksum_get (from + 16)};
    uint8_t again[MARK_BYTES];
    mark_pack (again, out);
    return memcmp (from, again, sizeof (again)) == 0;
}

/* *found: a journal that has not begun yet has none. */
static store_code_t mark_read (old_journal_t *self, mark_t *out, bool *found, store_error_t *error)
{
    sqlite3_stmt *statement;
    const char *text = SELECT_MARK;
    store_code_t code = sql_prepare (self->db, &statement, &text, 1, error);
    if (code != STORE_OK)
        return code;
    int rc = sqlite3_step (statement);
    *found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        code = sql_fail (self->db, "cannot be read", error);
    else if (*found && !mark_unpack (out, sqlite3_column_blob (statement, 0),
                                     (size_t) sqlite3_column_bytes (statement, 0)))
        code = store_fail (error, STORE_ERROR_CORRUPT, "%s: its mark is damaged",
                           sqlite3_db_filename (self->db, "main"));
    sqlite3_finalize (statement);
    return code;
}

store_code_t old_journal_judge (old_journal_t *self, const journal_tables_t *tables, lost_t *lost,
                                store_error_t *error)
{
    mark_t mark = {0};
    bool found = false;
    if (self->cut)
        lost->why = "they were not synced to the disk (--synchronous normal)";
    if (old_journal_is_empty (self))
        return STORE_OK;
    store_code_t code = mark_read (self, &mark, &found, error);
    if (code != STORE_OK || !found)
        return code;
    const char *file = sqlite3_db_filename (self->db, "main");
    if (mark.generation != tables->generation)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: belongs to another " SCHEMA_TABLES_FILE,
                           file);
    if (mark.epoch > tables->epoch ||
        (mark.epoch == tables->epoch && mark.written > tables->written))
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s/" SCHEMA_TABLES_FILE " lacks its newest part: it ends at batch %llu,"
                           " but had all up to %llu; its log is damaged or gone",
                           self->directory, (unsigned long long) tables->written,
                           (unsigned long long) mark.written);
    bool needed = mark.epoch == tables->epoch && !tables->clean;
    if (needed && self->empty_log)
        lost->why = "journal.db-wal is empty: what was in it is lost, unless journal.db has it";
    if (needed && !self->had_log)
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s-wal is missing: the broker was killed, and its newest commits were"
                           " there; put it back. If another program has moved it into journal.db,"
                           " make an empty one",
                           file);
    return STORE_OK;
}

typedef struct replay {
    old_journal_t *journal;
    uint64_t generation;
    uint64_t epoch;
    uint64_t written;
    uint64_t previous; /* batch read last, 0 for none */
} replay_t;

static store_code_t replay_fail (const replay_t *replay, int64_t row, const char *what,
                                 store_error_t *error)
{
    return store_fail (error, STORE_ERROR_CORRUPT, "%s: batch %lld %s",
                       sqlite3_db_filename (replay->journal->db, "main"), (long long) row, what);
}

/* As journal_decode, of whichever version the journal is. */
static batch_t *row_batch (const old_journal_t *journal, sqlite3_stmt *statement,
                           journal_head_t *head, bool *newer)
{
    const uint8_t *body = sqlite3_column_blob (statement, 1);
    size_t bytes = (size_t) sqlite3_column_bytes (statement, 1);
    if (journal->version == 0 || journal->version == SCHEMA_JOURNAL_VERSION)
        return journal_decode (body, bytes, head, newer);
    bytes_t today = BYTES_INIT;
    *newer = false;
    batch_t *batch = NULL;
    if (reshape_batch_2 (&today, body, bytes))
        batch = journal_decode (today.data, today.length, head, newer);
    bytes_free (&today);
    return batch;
}

/* Reads one row; *batch stays NULL when the tables hold it already. */
static store_code_t replay_row (replay_t *replay, sqlite3_stmt *statement, batch_t **batch,
                                store_error_t *error)
{
    int64_t row = sqlite3_column_int64 (statement, 0);
    journal_head_t head;
    bool newer;
    batch_t *found = row_batch (replay->journal, statement, &head, &newer);
    if (newer)
        return store_fail (error, STORE_ERROR_NEWER, "%s: was written by a newer version",
                           sqlite3_db_filename (replay->journal->db, "main"));
    if (found == NULL)
        return replay_fail (replay, row, "is damaged", error);
    const char *wrong = NULL;
    if (head.generation != replay->generation || head.epoch > replay->epoch)
        wrong = "belongs to another " SCHEMA_TABLES_FILE;
    else if (found->no != (uint64_t) row)
        wrong = "stands in the wrong place";
    else if (head.epoch == replay->epoch && head.previous > replay->written &&
             head.previous != replay->previous)
        wrong = "has lost the one before it";
    if (wrong != NULL) {
        batch_free (found);
        return replay_fail (replay, row, wrong, error);
    }
    if (head.epoch == replay->epoch && found->no > replay->written) {
        replay->previous = found->no;
        *batch = found;
    } else {
        batch_free (found); /* from before the last recovery, or written back */
    }
    return STORE_OK;
}

store_code_t old_journal_replay (old_journal_t *self, const journal_tables_t *tables,
                                 journal_visit_t *each, void *context, store_error_t *error)
{
    replay_t replay = {self, tables->generation, tables->epoch, tables->written, 0};
    sqlite3_stmt *statement;
    if (old_journal_is_empty (self))
        return STORE_OK;
    const char *text = SELECT_ALL;
    store_code_t code = sql_prepare (self->db, &statement, &text, 1, error);
    while (code == STORE_OK) {
        int rc = sqlite3_step (statement);
        if (rc == SQLITE_DONE)
            break;
        batch_t *batch = NULL;
        if (rc == SQLITE_ROW)
            code = replay_row (&replay, statement, &batch, error);
        else
            code = sql_fail (self->db, "cannot be read", error);
        if (code == STORE_OK && batch != NULL)
            code = each (context, batch, error);
    }
    sqlite3_finalize (statement);
    return code;
}
