/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The sqlite backend: a journal in front, rows behind (A9 to A14).
 *
 * A commit is durable when the journal has it. Then the batch waits in memory until the store
 * thread has written its rows, together with those of other batches. If that finds no space it is
 * tried again every second and nothing is given up; any other failure of the store thread is told
 * to the server, which ends the process: the journal still has everything. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "ids.h"
#include "store/space.h"
#include "store/sqlite/old_journal.h"
#include "store/sqlite/readers.h"
#include "store/sqlite/sqlite_schema.h"
#include "store/sqlite/store_thread.h"
#include "store/sqlite/upgrade.h"
#include "store/sqlite/wal_scan.h"
#include "timestamp.h"

typedef struct sqlite_reader {
    store_reader_t base;
    readers_t readers;
} sqlite_reader_t;

/* Commits. */

/* The journal has its largest size, and no segment is free: waits until the write-back has given
 * some back. FULL: it waits for space itself. */
static store_code_t wait_for_segments (sqlite_store_t *self, store_error_t *error)
{
    store_code_t code = behind_wait (self->behind, error);
    if (code == STORE_ERROR_FULL)
        store_fail (error, code,
                    JOURNAL_FILE
                    " has its largest size, and no space is left for " SCHEMA_TABLES_FILE);
    return code;
}

static store_code_t append (sqlite_store_t *self, batch_t *const *batches, size_t count,
                            store_error_t *error)
{
    store_code_t code = STORE_ERROR_BUSY;
    while (code == STORE_ERROR_BUSY) {
        code = journal_append (self->journal, batches, count, error);
        if (code != STORE_ERROR_BUSY)
            break;
        code = wait_for_segments (self, error);
        code = code == STORE_OK ? STORE_ERROR_BUSY : code;
    }
    return code;
}

static store_code_t sqlite_commit (store_t *base, batch_t *const *batches, size_t count,
                                   store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    int64_t start_us = clock_us (CLOCK_MONOTONIC);
    store_code_t code = behind_failure (self->behind, error);
    if (code == STORE_OK)
        code = append (self, batches, count, error);
    if (code != STORE_OK) {
        for (size_t i = 0; i < count; i++)
            batch_free (batches[i]);
        if (code == STORE_ERROR_FULL) {
            atomic_store (&self->no_space, true);
            reserve_release (&self->reserve);
        }
        return code;
    }
    behind_take (self->behind, batches, count, start_us);
    return STORE_OK;
}

static uint64_t sqlite_written (store_t *base)
{
    return behind_written (((sqlite_store_t *) base)->behind);
}

static void sqlite_flush (store_t *base)
{
    behind_flush (((sqlite_store_t *) base)->behind);
}

static void sqlite_exported (store_t *base, uint64_t pos)
{
    behind_exported (((sqlite_store_t *) base)->behind, pos);
}

/* Reads. */

static store_code_t sqlite_load (store_t *base, lookup_t *keys, size_t count, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    if (self->overlay != NULL && sqlite_written (base) >= overlay_upto (self->overlay)) {
        overlay_free (self->overlay);
        self->overlay = NULL;
    }
    store_code_t code = load_keys (&self->load, keys, count, error);
    for (size_t i = 0; code == STORE_OK && self->overlay != NULL && i < count; i++)
        overlay_correct (self->overlay, &keys[i]);
    return code;
}

static void sqlite_forgotten (store_t *base, forgotten_t *out)
{
    behind_forgotten (((sqlite_store_t *) base)->behind, out);
}

/* A task whose row is not its latest state. */
static bool is_dirty (void *context, int64_t number)
{
    return behind_has (((sqlite_store_t *) context)->behind, number);
}

static store_code_t sqlite_due (store_t *base, store_sweep_t *sweep, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    load_dirty_t dirty = {is_dirty, self};
    pthread_mutex_lock (&self->due_lock);
    store_code_t code = load_due (&self->due, &dirty, sweep, error);
    pthread_mutex_unlock (&self->due_lock);
    return code;
}

/* After a failed commit some batches may still wait for their rows, and if those find no space
 * either, for long: then their images are read from memory. */
static store_code_t sqlite_live (store_t *base, const store_live_visitor_t *visitor,
                                 store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    overlay_free (self->overlay);
    store_code_t code = behind_wait_all (self->behind, &self->overlay, error);
    if (code == STORE_OK)
        code = load_live (&self->load, self->overlay, visitor, error);
    return code;
}

static store_code_t sqlite_reader_open (store_reader_t **out, store_t *base, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    sqlite_reader_t *reader = memory_zero (1, sizeof (*reader));
    reader->base.store = base;
    store_code_t code = readers_open (&reader->readers, self->options.directory, &self->gate,
                                      self->options.read_us_max, error);
    reader->readers.view.damage = &self->damage;
    if (code == STORE_OK)
        *out = &reader->base;
    else
        free (reader);
    return code;
}

static void sqlite_reader_close (store_reader_t *base)
{
    sqlite_reader_t *reader = (sqlite_reader_t *) base;
    readers_close (&reader->readers);
    free (reader);
}

static store_code_t sqlite_reader_run (store_reader_t *base, read_t *read, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base->store;
    readers_t *readers = &((sqlite_reader_t *) base)->readers;
    bool lacks;
    if (read->kind != READ_EXPORT || read->from_tables ||
        !behind_follow (self->behind, read, &lacks))
        return readers_run (readers, read, error);
    return readers_complete (readers, read, lacks, error);
}

static store_code_t sqlite_backup (store_t *base, store_backup_t *backup, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    pthread_mutex_lock (&self->lock);
    bool busy = self->backup != NULL || self->ended;
    if (!busy) {
        atomic_store (&self->no_space, false);
        self->backup = backup;
        behind_wake (self->behind);
        while (self->backup == backup)
            pthread_cond_wait (&self->backed_up, &self->lock);
        *error = self->backup_error;
    }
    pthread_mutex_unlock (&self->lock);
    if (busy)
        return store_fail (error, STORE_ERROR_BUSY, "another copy is being made");
    return error->code;
}

static store_code_t sqlite_vacuum (store_t *base, bool begin, store_vacuum_t *out,
                                   store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    pthread_mutex_lock (&self->lock);
    if (begin && !self->vacuum_wanted) {
        self->vacuum_wanted = true;
        self->vacuum_goal = 0;
        self->vacuum = (store_vacuum_t){.more = true};
        self->vacuum_error = (store_error_t){STORE_OK, ""};
        behind_wake (self->behind);
    }
    *out = self->vacuum;
    store_error_t ended = self->vacuum_error;
    pthread_mutex_unlock (&self->lock);
    if (ended.code != STORE_OK)
        *error = ended;
    return ended.code;
}

static store_code_t sqlite_check (store_t *base, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    return files_check (&self->files, self->options.directory, error);
}

static uint64_t file_bytes (const char *directory, const char *name)
{
    char path[4096];
    struct stat status;
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    return stat (path, &status) == 0 ? (uint64_t) status.st_size : 0;
}

static void sqlite_stats (store_t *base, store_stats_t *out)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    const char *directory = self->options.directory;
    *out = (store_stats_t){
        .tasks = atomic_load (&self->tasks),
        .tombstones = atomic_load (&self->tombstones),
        .removals = atomic_load (&self->removals),
        .damaged = atomic_load (&self->damage.count),
        .schema = SCHEMA_TABLES_VERSION,
        .upgraded_from = (int) self->upgraded_from,
        .tables_held = tables_are_held (self->tables),
        .synchronous_normal = self->options.synchronous_normal,
    };
    behind_stats (self->behind, out);
    if (self->archive != NULL) {
        archive_stats_t archive;
        archive_stats (self->archive, &archive);
        out->archive_stalled = archive.stalled;
        out->archive_backlog_bytes = archive.backlog_bytes;
        out->archive_lag_ms = archive.lag_ms;
        out->archive_gaps = archive.gaps;
    }
    out->database_bytes = file_bytes (directory, SCHEMA_TABLES_FILE);
    out->wal_bytes = file_bytes (directory, SCHEMA_TABLES_FILE "-wal");
    out->journal_bytes = file_bytes (directory, JOURNAL_FILE);
    out->free_bytes = space_free_bytes (directory);
}

/* Opening and closing. */

typedef struct recovery {
    tables_t *tables;
    uint64_t batches;
    uint64_t last;      /* batch that is in the tables now */
    old_journal_t *old; /* of an earlier version, or NULL */
    lost_t lost;
} recovery_t;

static store_code_t replay_batch (void *context, batch_t *batch, store_error_t *error)
{
    recovery_t *replay = context;
    dirty_t dirty = {0};
    dirty_add (&dirty, batch, 0);
    dirty_sort (&dirty);
    replay->last = batch->no;
    store_code_t code = tables_write (replay->tables, &dirty, error);
    replay->batches++;
    dirty_free (&dirty);
    return code;
}

static void make_boot (boot_t *boot, const tables_meta_t *meta, const tmq_id_t *newest_id,
                       const recovery_t *replay)
{
    *boot = (boot_t){
        .generation = meta->generation,
        .epoch = meta->epoch,
        .last_number = meta->last_number,
        .last_pos = meta->last_pos,
        .newest_id_ms = id_time_ms (newest_id) + 1, /* 0 would say that it is not known */
        .newest_ms = meta->newest_ms,
        .tasks = meta->tasks,
        .recovered_batches = replay->batches,
        .lost = replay->lost,
    };
}

static store_code_t open_journals (sqlite_store_t *self, recovery_t *replay,
                                   const journal_tables_t *found, store_error_t *error)
{
    const store_options_t *options = &self->options;
    const journal_options_t journal = {.directory = options->directory,
                                       .bytes = options->journal_bytes,
                                       .unsynced = options->synchronous_normal,
                                       .device = options->journal_device,
                                       .archive = self->archive};
    store_code_t code = old_journal_open (&replay->old, options->directory, error);
    if (code == STORE_OK && replay->old != NULL)
        code = old_journal_judge (replay->old, found, &replay->lost, error);
    bool needed = !found->clean && (replay->old == NULL || old_journal_is_empty (replay->old));
    if (code == STORE_OK)
        code = journal_open (&self->journal, &journal, found, needed, error);
    return code;
}

static store_code_t replay_all (sqlite_store_t *self, recovery_t *replay,
                                const journal_tables_t *found, store_error_t *error)
{
    bool cut = false;
    store_code_t code = STORE_OK;
    if (replay->old != NULL)
        code = old_journal_replay (replay->old, found, replay_batch, replay, error);
    if (code == STORE_OK)
        code = journal_replay (self->journal, replay_batch, replay, &cut, error);
    if (cut)
        replay->lost = journal_lost (self->journal);
    return code;
}

/* Before the tables are of the next epoch: the archive has what was committed in this one, and
 * knows that the next one follows. */
static store_code_t begin_archive (sqlite_store_t *self, const recovery_t *replay,
                                   const journal_tables_t *found, store_error_t *error)
{
    if (self->archive == NULL)
        return STORE_OK;
    const archive_header_t header = {.generation = found->generation,
                                     .epoch = found->epoch + 1,
                                     .base_epoch = found->epoch,
                                     .base_batch = replay->last};
    store_code_t code = journal_recover_archive (self->journal, error);
    return code == STORE_OK ? archive_begin (self->archive, &header, error) : code;
}

/* From now on the tables do not have all that is committed. Who finds them so and no journal of
 * their epoch knows that it was exchanged. */
static store_code_t need_journal (sqlite_store_t *self, store_error_t *error)
{
    store_code_t code = tables_begin (self->tables, error);
    if (code != STORE_OK)
        return code;
    tables_set_clean (self->tables, false);
    code = tables_commit (self->tables, error);
    if (code != STORE_OK)
        tables_rollback (self->tables);
    return code;
}

/* Brings the journal's batches into the tables and begins a new epoch, in one transaction: a crash
 * at any point leaves either all of it to be done again or nothing. */
static store_code_t replay_and_begin (sqlite_store_t *self, recovery_t *replay,
                                      store_error_t *error)
{
    const tables_meta_t *meta = tables_meta (self->tables);
    const journal_tables_t found = {meta->generation, meta->epoch, meta->written_batch,
                                    meta->clean};
    store_code_t code = open_journals (self, replay, &found, error);
    if (code == STORE_OK)
        code = tables_begin (self->tables, error);
    if (code != STORE_OK)
        return code;
    replay->last = found.written;
    code = replay_all (self, replay, &found, error);
    if (code == STORE_OK)
        code = begin_archive (self, replay, &found, error);
    if (code == STORE_OK) {
        tables_start_epoch (self->tables);
        tables_set_clean (self->tables, true); /* until the journal is of this epoch, too */
        code = tables_commit (self->tables, error);
    }
    if (code != STORE_OK) {
        tables_rollback (self->tables);
        return code;
    }
    code = tables_checkpoint_all (self->tables, error);
    if (code == STORE_OK)
        code = journal_begin (self->journal, meta->generation, meta->epoch, error);
    if (code == STORE_OK)
        code = old_journal_remove (&replay->old, error);
    return code == STORE_OK ? need_journal (self, error) : code;
}

static store_code_t recover (sqlite_store_t *self, boot_t *boot, store_error_t *error)
{
    const tables_meta_t *meta = tables_meta (self->tables);
    recovery_t replay = {.tables = self->tables};
    tmq_id_t newest_id = {{0}};
    store_code_t code = replay_and_begin (self, &replay, error);
    old_journal_free (&replay.old);
    if (code == STORE_OK)
        code = tables_newest_id (self->tables, &newest_id, error);
    make_boot (boot, meta, &newest_id, &replay);
    boot->journal_way = code == STORE_OK ? journal_way (self->journal) : "";
    atomic_store (&self->tasks, meta->tasks);
    atomic_store (&self->tombstones, meta->tombstones);
    return code;
}

static void sqlite_free (sqlite_store_t *self)
{
    behind_free (self->behind);
    view_close (&self->load);
    view_close (&self->due);
    archive_free (&self->archive); /* it takes what is committed until now */
    journal_free (&self->journal);
    tables_free (&self->tables);
    overlay_free (self->overlay);
    reserve_destroy (&self->reserve);
    gate_destroy (&self->gate);
    pthread_mutex_destroy (&self->due_lock);
    pthread_mutex_destroy (&self->lock);
    pthread_cond_destroy (&self->backed_up);
    free ((char *) self->options.directory);
    free (self);
}

static sqlite_store_t *sqlite_new (const store_options_t *options)
{
    sqlite_store_t *self = memory_zero (1, sizeof (*self));
    self->base.backend = &store_backend_sqlite;
    self->options = *options;
    self->options.directory = memory_text (options->directory);
    gate_init (&self->gate);
    self->damage.found = options->damaged;
    self->damage.context = options->notify_context;
    reserve_init (&self->reserve, self->options.directory);
    pthread_mutex_init (&self->due_lock, NULL);
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->backed_up, NULL);
    self->behind = behind_new (&store_thread_calls, self, &self->options);
    return self;
}

static store_code_t check_directory (const char *directory, store_error_t *error)
{
    struct stat status;
    if (stat (directory, &status) != 0)
        return store_fail (error, STORE_ERROR_ACCESS, "%s: %s", directory, strerror (errno));
    if (!S_ISDIR (status.st_mode))
        return store_fail (error, STORE_ERROR_ACCESS, "%s: is not a directory", directory);
    return STORE_OK;
}

static bool has_bytes (const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf (path, sizeof (path), "%s/%s", directory, name);
    return stat (path, &status) == 0 && status.st_size > 0;
}

/* The tables are made before the journal. Where there is one and no tables somebody took them away:
 * empty ones in their place would belong to nothing. */
static store_code_t check_tables_are_there (const char *directory, store_error_t *error)
{
    static const char *const journals[] = {JOURNAL_FILE, SCHEMA_JOURNAL_FILE,
                                           SCHEMA_JOURNAL_FILE "-wal"};
    if (has_bytes (directory, SCHEMA_TABLES_FILE) ||
        has_bytes (directory, SCHEMA_TABLES_FILE "-wal"))
        return STORE_OK;
    for (size_t i = 0; i < sizeof (journals) / sizeof (journals[0]); i++)
        if (has_bytes (directory, journals[i]))
            return store_fail (error, STORE_ERROR_CORRUPT,
                               "%s/" SCHEMA_TABLES_FILE " is missing or empty, and %s is there: put"
                               " it back, or restore a backup",
                               directory, journals[i]);
    return STORE_OK;
}

static store_code_t sqlite_start (sqlite_store_t *self, boot_t *boot, store_error_t *error)
{
    bool tables_cut;
    const char *directory = self->options.directory;
    store_code_t code = check_directory (directory, error);
    if (code == STORE_OK)
        code = check_tables_are_there (directory, error);
    if (code == STORE_OK)
        reserve_begin (&self->reserve);
    if (code == STORE_OK)
        code = wal_scan (directory, SCHEMA_TABLES_FILE, &tables_cut, error);
    if (code == STORE_OK)
        code = upgrade_run (&self->options, true, &self->upgraded_from, error);
    if (code == STORE_OK)
        code = tables_open (&self->tables, &self->options, &self->gate, error);
    if (code == STORE_OK && self->options.archive != NULL)
        code = archive_new (&self->archive, self->options.archive, error);
    if (code == STORE_OK)
        code = recover (self, boot, error);
    if (code == STORE_OK)
        code = load_open (&self->load, directory, &self->gate, error);
    if (code == STORE_OK)
        code = load_open (&self->due, directory, &self->gate, error);
    if (code != STORE_OK)
        return code;
    files_note (&self->files, directory);
    self->load.damage = self->due.damage = &self->damage;
    reserve_take (&self->reserve);
    self->may_shrink = true; /* a start before this one may not have come so far */
    return behind_start (self->behind, error);
}

static store_code_t sqlite_open (store_t **out, const store_options_t *options, boot_t *boot,
                                 store_error_t *error)
{
    sqlite_store_t *self = sqlite_new (options);
    store_code_t code = sqlite_start (self, boot, error);
    if (code == STORE_OK)
        *out = &self->base;
    else
        sqlite_free (self);
    return code;
}

/* All rows are written: says so in the journal, then in the tables. */
static store_code_t finish (sqlite_store_t *self, store_error_t *error)
{
    store_code_t code = journal_rest (self->journal, error);
    if (code == STORE_OK)
        code = tables_begin (self->tables, error);
    if (code != STORE_OK)
        return code;
    tables_set_clean (self->tables, true);
    code = tables_commit (self->tables, error);
    if (code != STORE_OK) {
        tables_rollback (self->tables);
        return code;
    }
    view_close (&self->load);
    view_close (&self->due);
    return tables_checkpoint_all (self->tables, error);
}

static store_code_t sqlite_close (store_t *base, store_error_t *error)
{
    sqlite_store_t *self = (sqlite_store_t *) base;
    store_code_t code = behind_stop (self->behind, error);
    if (code == STORE_OK)
        code = finish (self, error);
    sqlite_free (self);
    return code;
}

const store_backend_t store_backend_sqlite = {
    .uri = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .inline_inputs = STORE_INLINE_INPUTS,
    .live = sqlite_live,
    .commit = sqlite_commit,
    .written = sqlite_written,
    .flush = sqlite_flush,
    .exported = sqlite_exported,
    .load = sqlite_load,
    .reader_open = sqlite_reader_open,
    .reader_close = sqlite_reader_close,
    .reader_run = sqlite_reader_run,
    .backup = sqlite_backup,
    .vacuum = sqlite_vacuum,
    .due = sqlite_due,
    .forgotten = sqlite_forgotten,
    .check = sqlite_check,
    .stats = sqlite_stats,
};
