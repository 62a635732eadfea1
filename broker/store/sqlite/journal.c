/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The journal. After a failure that is not for lack of space the connection is never used again:
 * a sync that follows a failed one may report success for bytes that are lost. */
#include "store/sqlite/journal.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "store/sqlite/checksum.h"
#include "store/sqlite/journal_codec.h"
#include "store/sqlite/sqlite_schema.h"

enum statement { BEGIN, COMMIT, INSERT, DELETE, DELETE_ALL, MARK, STATEMENTS };

static const char *const TEXTS[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT] = "INSERT INTO journal (batch, body) VALUES (?1, ?2)",
    [DELETE] = "DELETE FROM journal WHERE batch > 0 AND batch <= ?1",
    [DELETE_ALL] = "DELETE FROM journal",
    [MARK] = "INSERT OR REPLACE INTO journal (batch, body) VALUES (-1, ?1)",
};
static const char SELECT_MARK[] = "SELECT body FROM journal WHERE batch = -1";
static const char SELECT_ALL[] = "SELECT batch, body FROM journal WHERE batch > 0 ORDER BY batch";
/* Deleting a row follows the chain of its pages. Under load 20 to 30 MiB wait to be deleted; what
 * the cache does not hold of them is read back from the files. */
static const char CACHE[] = "PRAGMA cache_size = -32768";

enum {
    FRAME_HEADER_BYTES = 24, /* of the write-ahead log, before each page */
    GROW_BYTES = 64 * 1024,  /* written at once */
    /* Pages that a commit may need beside its body: inner ones, those of deleted rows. */
    COMMIT_SLACK_PAGES = 16,
    /* A checkpoint copies all that is not yet written back. While that is less than this part of
     * the log's first size, the log stays within it, so that every commit overwrites; under load it
     * may grow to so many times that size. */
    LITTLE_PART = 4,
    LOADED_TIMES = 8
};

/* What the journal has given up, in a row of its own beside the batches: those of this history and
 * epoch up to `written`. Whoever lost them later is told from who never had them. */
typedef struct mark {
    uint64_t generation;
    uint64_t epoch;
    uint64_t written;
} mark_t;

enum { MARK_NUMBERS = 3, MARK_BYTES = MARK_NUMBERS * 8 + CHECKSUM_BYTES };

struct journal {
    store_options_t options;
    bool had_log;         /* when it was opened */
    bytes_t body;         /* what is being committed; of the committing thread */
    pthread_mutex_t lock; /* guards what follows: the connection is handed over with it */
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
    journal_head_t head; /* of the next batch */
    uint64_t page_bytes;
    uint64_t wal_bytes;   /* used since the log was last reset */
    uint64_t judge_bytes; /* of it: beyond them a checkpoint is thought about */
    store_error_t broken; /* a final failure: nothing is tried after it */

    atomic_uint_fast64_t written; /* rows up to it may go */
    atomic_uint_fast64_t deleted; /* rows up to it are gone */
};

/* Called by SQLite after each commit with the frames that the log holds now. */
static int journal_wal_hook (void *context, sqlite3 *db, const char *name, int frames)
{
    (void) db;
    (void) name;
    journal_t *self = context;
    self->wal_bytes = (uint64_t) frames * (self->page_bytes + FRAME_HEADER_BYTES);
    return SQLITE_OK;
}

/* Whether the write-ahead log is there. A start brings it to its size before the first batch, and
 * only a clean stop removes it. */
static bool has_log (const store_options_t *options)
{
    char path[PATH_MAX];
    int length =
        snprintf (path, sizeof (path), "%s/" SCHEMA_JOURNAL_FILE "-wal", options->directory);
    return length > 0 && (size_t) length < sizeof (path) && access (path, F_OK) == 0;
}

static void log_persists (journal_t *self, int persists)
{
    sqlite3_file_control (self->db, "main", SQLITE_FCNTL_PERSIST_WAL, &persists);
}

store_code_t journal_open (journal_t **out, const store_options_t *options, bool *created,
                           store_error_t *error)
{
    journal_t *self = memory_zero (1, sizeof (*self));
    self->options = *options;
    pthread_mutex_init (&self->lock, NULL);
    self->had_log = has_log (options);
    store_code_t code = schema_open_journal (&self->db, options, created, error);
    int64_t page_bytes = 0;
    if (code == STORE_OK)
        code = sql_run (self->db, CACHE, error);
    if (code == STORE_OK)
        code = sql_number (self->db, "PRAGMA page_size", &page_bytes, error);
    self->page_bytes = (uint64_t) page_bytes;
    if (code == STORE_OK)
        code = sql_prepare (self->db, self->statements, TEXTS, STATEMENTS, error);
    if (code == STORE_OK) {
        sqlite3_wal_hook (self->db, journal_wal_hook, self);
        log_persists (self, self->had_log &&
                                !*created); /* a start that is refused leaves what it found */
        *out = self;
    } else {
        journal_free (&self);
    }
    return code;
}

void journal_free (journal_t **self_p)
{
    journal_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    sql_finalize (self->statements, STATEMENTS);
    sql_close (&self->db);
    bytes_free (&self->body);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

void journal_let_go (journal_t *self)
{
    log_persists (self, 0);
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
static store_code_t mark_read (journal_t *self, mark_t *out, bool *found, store_error_t *error)
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

static store_code_t mark_write (journal_t *self, uint64_t written, store_error_t *error)
{
    uint8_t bytes[MARK_BYTES];
    mark_pack (bytes, &(mark_t){self->head.generation, self->head.epoch, written});
    store_code_t code =
        sql_bind_blob (self->statements[MARK], 1, bytes, sizeof (bytes), "cannot be marked", error);
    return code == STORE_OK ? sql_do (self->statements[MARK], "cannot be marked", error) : code;
}

store_code_t journal_judge (journal_t *self, uint64_t generation, uint64_t epoch, uint64_t written,
                            bool clean, store_error_t *error)
{
    mark_t mark = {0};
    bool found = false;
    store_code_t code = mark_read (self, &mark, &found, error);
    if (code != STORE_OK || !found)
        return code;
    const char *file = sqlite3_db_filename (self->db, "main");
    if (mark.generation != generation)
        return store_fail (error, STORE_ERROR_CORRUPT, "%s: belongs to another " SCHEMA_TABLES_FILE,
                           file);
    if (mark.epoch > epoch || (mark.epoch == epoch && mark.written > written))
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s/" SCHEMA_TABLES_FILE " lacks its newest part: it ends at batch %llu,"
                           " but had all up to %llu; its log is damaged or gone",
                           self->options.directory, (unsigned long long) written,
                           (unsigned long long) mark.written);
    if (mark.epoch == epoch && !clean && !self->had_log)
        return store_fail (error, STORE_ERROR_CORRUPT,
                           "%s-wal is missing: the broker was killed, and its newest commits were"
                           " there; put it back, or make an empty one if another program has moved"
                           " it into journal.db",
                           file);
    return STORE_OK;
}

/* Recovery. */

typedef struct replay {
    journal_t *journal;
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

/* Reads one row; *batch stays NULL when the tables hold it already. */
static store_code_t replay_row (replay_t *replay, sqlite3_stmt *statement, batch_t **batch,
                                store_error_t *error)
{
    int64_t row = sqlite3_column_int64 (statement, 0);
    journal_head_t head;
    bool newer;
    const uint8_t *body = sqlite3_column_blob (statement, 1);
    batch_t *found =
        journal_decode (body, (size_t) sqlite3_column_bytes (statement, 1), &head, &newer);
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

store_code_t journal_replay (journal_t *self, uint64_t generation, uint64_t epoch, uint64_t written,
                             journal_visit_t *each, void *context, store_error_t *error)
{
    replay_t replay = {self, generation, epoch, written, 0};
    sqlite3_stmt *statement;
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

static store_code_t journal_grow_fail (journal_t *self, sqlite3_file *log, int rc,
                                       store_error_t *error)
{
    int system = 0;
    log->pMethods->xFileControl (log, SQLITE_FCNTL_LAST_ERRNO, &system);
    bool full = rc == SQLITE_FULL || (rc == SQLITE_IOERR_WRITE && system == EDQUOT);
    return store_fail (error, full ? STORE_ERROR_FULL : STORE_ERROR_IO,
                       "%s-wal: cannot be brought to its size: %s (SQLite %d)",
                       sqlite3_db_filename (self->db, "main"),
                       full          ? "no space is left"
                       : system != 0 ? strerror (system)
                                     : sqlite3_errstr (rc),
                       rc);
}

/* An fdatasync that overwrites is much cheaper than one that appends, so the empty log is brought
 * to its size once. Zeroes are no frames: whatever a crash leaves of them, the log is empty. Frames
 * that were written without a sync would look like damage after a loss of power. */
static store_code_t journal_grow (journal_t *self, store_error_t *error)
{
    static const uint8_t ZEROES[GROW_BYTES];
    sqlite3_file *log = NULL;
    sqlite3_file_control (self->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    int rc = SQLITE_OK;
    for (size_t at = 0; rc == SQLITE_OK && at < self->options.journal_bytes; at += GROW_BYTES)
        rc = log->pMethods->xWrite (log, ZEROES, GROW_BYTES, (sqlite3_int64) at);
    if (rc == SQLITE_OK)
        rc = log->pMethods->xSync (log, SQLITE_SYNC_NORMAL);
    return rc == SQLITE_OK ? STORE_OK : journal_grow_fail (self, log, rc, error);
}

/* Where the options want it the journal goes without syncs from then on: the newest batches may be
 * lost, but never some from the middle, because a row leaves it only when it is durable in the
 * tables. */
store_code_t journal_begin (journal_t *self, uint64_t generation, uint64_t epoch,
                            store_error_t *error)
{
    bool unsynced = self->options.synchronous_normal;
    self->head = (journal_head_t){generation, epoch, 0};
    store_code_t code = schema_mark_unsynced (self->db, unsynced, error);
    if (code == STORE_OK)
        code = sql_do (self->statements[DELETE_ALL], "cannot be emptied", error);
    if (code == STORE_OK)
        code = sql_checkpoint (self->db, SQLITE_CHECKPOINT_TRUNCATE, error);
    if (code == STORE_OK)
        code = journal_grow (self, error);
    if (code == STORE_OK)
        code = mark_write (self, 0, error);
    if (code == STORE_OK) /* so that it stands in the file, whatever becomes of the log */
        code = sql_checkpoint (self->db, SQLITE_CHECKPOINT_RESTART, error);
    if (code == STORE_OK)
        code = schema_set_synchronous (self->db, unsynced, error);
    log_persists (self, 1);
    self->wal_bytes = 0;
    self->judge_bytes = self->options.journal_bytes;
    return code;
}

/* Commits. */

/* Rows that are in the tables leave with this commit, so that they cost no sync of their own. */
static store_code_t journal_delete (journal_t *self, uint64_t upto, store_error_t *error)
{
    if (upto <= atomic_load (&self->deleted))
        return STORE_OK;
    sqlite3_bind_int64 (self->statements[DELETE], 1, (sqlite3_int64) upto);
    store_code_t code = sql_do (self->statements[DELETE], "rows cannot be deleted", error);
    return code == STORE_OK ? mark_write (self, upto, error) : code;
}

static store_code_t journal_checkpoint (journal_t *self, store_error_t *error)
{
    store_code_t code = sql_checkpoint (self->db, SQLITE_CHECKPOINT_RESTART, error);
    if (code == STORE_OK) {
        self->wal_bytes = 0;
        self->judge_bytes = self->options.journal_bytes;
    }
    return code;
}

/* Before a commit that needs so many bytes of the log. */
static store_code_t journal_make_room (journal_t *self, uint64_t needs, store_error_t *error)
{
    int64_t pages = 0;
    int64_t unused = 0;
    if (self->wal_bytes == 0 || self->wal_bytes + needs <= self->judge_bytes)
        return STORE_OK;
    if (self->wal_bytes + needs > LOADED_TIMES * self->options.journal_bytes)
        return journal_checkpoint (self, error);
    self->judge_bytes += self->options.journal_bytes;
    store_code_t code = sql_number (self->db, "PRAGMA page_count", &pages, error);
    if (code == STORE_OK)
        code = sql_number (self->db, "PRAGMA freelist_count", &unused, error);
    uint64_t used_bytes = (uint64_t) (pages - unused) * self->page_bytes;
    if (code == STORE_OK && used_bytes < self->options.journal_bytes / LITTLE_PART)
        code = journal_checkpoint (self, error);
    return code;
}

/* Batches, and where each begins in the bodies; the last end is that of all. */
typedef struct packed {
    batch_t *const *batches;
    size_t count;
    size_t ends[STORE_COMMIT_BATCHES_MAX];
    const bytes_t *body;
} packed_t;

static store_code_t journal_insert (journal_t *self, const packed_t *packed, store_error_t *error)
{
    sqlite3_stmt *statement = self->statements[INSERT];
    store_code_t code = STORE_OK;
    for (size_t i = 0; code == STORE_OK && i < packed->count; i++) {
        size_t start = i == 0 ? 0 : packed->ends[i - 1];
        sqlite3_bind_int64 (statement, 1, (sqlite3_int64) packed->batches[i]->no);
        code = sql_bind_blob (statement, 2, packed->body->data + start, packed->ends[i] - start,
                              "a commit cannot be written", error);
        if (code == STORE_OK)
            code = sql_do (statement, "a commit cannot be written", error);
    }
    return code;
}

/* Without batches: only deletes. */
static store_code_t journal_write (journal_t *self, const packed_t *packed, store_error_t *error)
{
    size_t bytes = packed->count == 0 ? 0 : packed->ends[packed->count - 1];
    uint64_t needs = bytes + bytes / 16 + COMMIT_SLACK_PAGES * self->page_bytes;
    store_code_t code = journal_make_room (self, needs, error);
    if (code == STORE_OK)
        code = sql_do (self->statements[BEGIN], "cannot begin a commit", error);
    if (code != STORE_OK)
        return code;
    uint64_t written = atomic_load (&self->written);
    code = journal_delete (self, written, error);
    if (code == STORE_OK)
        code = journal_insert (self, packed, error);
    if (code == STORE_OK)
        code = sql_do (self->statements[COMMIT], "a commit cannot be made durable", error);
    if (code == STORE_OK)
        atomic_store (&self->deleted, written);
    else
        sql_rollback (self->db);
    return code;
}

static void journal_note_failure (journal_t *self, store_code_t code, const store_error_t *error)
{
    if (code != STORE_OK && code != STORE_ERROR_FULL)
        self->broken = *error;
}

/* The head is the committing thread's alone, as the bodies are. */
static void journal_pack (journal_t *self, packed_t *packed)
{
    journal_head_t head = self->head;
    bytes_clear (&self->body);
    for (size_t i = 0; i < packed->count; i++) {
        journal_encode (&self->body, &head, packed->batches[i]);
        packed->ends[i] = self->body.length;
        head.previous = packed->batches[i]->no;
    }
}

store_code_t journal_append (journal_t *self, batch_t *const *batches, size_t count,
                             store_error_t *error)
{
    packed_t packed = {.batches = batches, .count = count, .body = &self->body};
    journal_pack (self, &packed);
    pthread_mutex_lock (&self->lock);
    store_code_t code = self->broken.code;
    if (code == STORE_OK) {
        code = journal_write (self, &packed, error);
        journal_note_failure (self, code, error);
    } else {
        *error = self->broken;
    }
    if (code == STORE_OK)
        self->head.previous = batches[count - 1]->no;
    pthread_mutex_unlock (&self->lock);
    return code;
}

void journal_written (journal_t *self, uint64_t batch)
{
    atomic_store (&self->written, batch);
}

bool journal_has_written_rows (journal_t *self)
{
    return atomic_load (&self->written) > atomic_load (&self->deleted);
}

store_code_t journal_rest (journal_t *self, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    store_code_t code = self->broken.code;
    if (code == STORE_OK) {
        code = journal_write (self, &(packed_t){.count = 0}, error);
        if (code == STORE_OK)
            code = journal_checkpoint (self, error);
        journal_note_failure (self, code, error);
    } else {
        *error = self->broken;
    }
    pthread_mutex_unlock (&self->lock);
    return code;
}
