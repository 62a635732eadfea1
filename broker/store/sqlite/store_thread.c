/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/store_thread.h"

#include <unistd.h>

#include "timestamp.h"

enum {
    REST_MS = 1000,      /* without a commit, until the journal says what is written (A10) */
    SHRINK_PAUSE_MS = 20 /* between two steps that give free pages back */
};

/* Copies. */

/* Ends the copy, with its file if it failed. The lock is held before and after, not meanwhile. */
static void end_backup (sqlite_store_t *self, store_code_t code, const store_error_t *error)
{
    store_backup_t *backup = self->backup;
    if (backup == NULL)
        return;
    pthread_mutex_unlock (&self->lock);
    backup->steps = self->copy.steps;
    backup->step_us_max = self->copy.step_us_max;
    copy_end (&self->copy);
    self->copy = (copy_t){0};
    self->copy_caught_up = false;
    if (code != STORE_OK)
        unlink (backup->path);
    const tables_meta_t *meta = tables_meta (self->tables);
    backup->generation = meta->generation;
    backup->epoch = meta->epoch;
    backup->batch = meta->written_batch;
    backup->newest_ms = meta->newest_ms;
    backup->tasks = meta->tasks;
    pthread_mutex_lock (&self->lock);
    self->backup_error = (store_error_t){STORE_OK, ""};
    if (code != STORE_OK)
        self->backup_error = *error;
    self->backup = NULL;
    pthread_cond_broadcast (&self->backed_up);
}

static void give_backup_up (sqlite_store_t *self, store_code_t code, const char *why)
{
    store_error_t error;
    store_fail (&error, code, "%s", why);
    pthread_mutex_lock (&self->lock);
    end_backup (self, code, &error);
    pthread_mutex_unlock (&self->lock);
}

/* One step of the copy. Before the last one everything that waits is written, so that the copy has
 * what was durable when it was asked for. */
static void copy_some (sqlite_store_t *self, store_backup_t *backup, behind_rest_t *rest)
{
    store_error_t why;
    rest->again_ms = 0;
    if (copy_is_nearly_done (&self->copy) && rest->pending && !self->copy_caught_up) {
        self->copy_caught_up = true;
        rest->write = true;
        return;
    }
    store_code_t copied = STORE_OK;
    if (self->copy.db == NULL)
        copied = tables_copy (self->tables, &self->copy, backup->path, &why);
    if (copied == STORE_OK && atomic_load (&self->no_space))
        copied = store_fail (&why, STORE_ERROR_FULL, "no space: the copy gave its own back");
    if (copied == STORE_OK && backup->goes_on != NULL && !backup->goes_on (backup->context))
        copied = store_fail (&why, STORE_ERROR_BUSY, "the copy was given up");
    if (copied == STORE_OK)
        copied = copy_step (&self->copy, &why);
    if (copied == STORE_OK && !self->copy.done)
        return;
    pthread_mutex_lock (&self->lock);
    end_backup (self, copied, &why);
    pthread_mutex_unlock (&self->lock);
}

/* Rows. */

/* No space: what was kept for this is given away, and so is what a copy took. */
static store_code_t give_space (sqlite_store_t *self, store_code_t code)
{
    if (code == STORE_ERROR_FULL) {
        reserve_release (&self->reserve);
        give_backup_up (self, STORE_ERROR_FULL, "no space: the copy gave its own back");
    }
    return code;
}

static store_code_t undo (sqlite_store_t *self, store_code_t code)
{
    if (code != STORE_OK)
        tables_rollback (self->tables);
    return code;
}

static store_code_t begin (void *context, store_error_t *error)
{
    sqlite_store_t *self = context;
    self->may_shrink = true;
    store_code_t code = journal_make_room (self->journal, error);
    if (code != STORE_OK && code != STORE_ERROR_FULL)
        return code;
    code = tables_need_log (self->tables, error);
    if (code == STORE_OK)
        code = undo (self, tables_begin (self->tables, error));
    return give_space (self, code);
}

static store_code_t write_rows (void *context, const dirty_t *dirty, store_error_t *error)
{
    sqlite_store_t *self = context;
    return give_space (self, undo (self, tables_write (self->tables, dirty, error)));
}

static store_code_t commit (void *context, const batch_t *newest, store_error_t *error)
{
    sqlite_store_t *self = context;
    store_code_t code = undo (self, tables_commit (self->tables, error));
    if (code != STORE_OK)
        return give_space (self, code);
    const tables_meta_t *meta = tables_meta (self->tables);
    atomic_store (&self->tasks, meta->tasks);
    atomic_store (&self->tombstones, meta->tombstones);
    atomic_store (&self->removals, tables_removals (self->tables));
    /* The rows are durable. A log that finds no space to be emptied into stays longer. */
    code = tables_checkpoint_if_large (self->tables, error);
    if (code == STORE_ERROR_FULL)
        reserve_release (&self->reserve);
    else if (code != STORE_OK)
        return code;
    journal_written (self->journal, newest->no);
    return STORE_OK;
}

/* Whoever finds a namespace gone from the tables finds its last sequence in what is told of it. */
static store_code_t commit_forgotten (sqlite_store_t *self, const forgotten_t *forgotten,
                                      store_error_t *error)
{
    if (forgotten->count == 0)
        return tables_commit (self->tables, error);
    behind_forgets (self->behind, forgotten->upto_seq);
    gate_close (&self->gate);
    store_code_t code = tables_commit (self->tables, error);
    self->gate.forgets++;
    gate_open (&self->gate);
    if (code == STORE_OK)
        behind_forgot (self->behind, forgotten);
    return code;
}

/* What finds no space to be forgotten waits for the next time. */
static store_code_t forget (void *context, int64_t expiry_ms, uint64_t exported, bool *more,
                            store_error_t *error)
{
    sqlite_store_t *self = context;
    const store_options_t *options = &self->options;
    forget_limits_t limits = {expiry_ms - options->events_ms_max, options->events_bytes_max,
                              exported, expiry_ms - options->tombstones_ms_max,
                              options->tombstones_max};
    *more = false;
    store_code_t code = tables_need_log (self->tables, error);
    if (code == STORE_OK)
        code = tables_begin (self->tables, error);
    if (code == STORE_OK)
        code = tables_forget (self->tables, &limits, more, error);
    if (code == STORE_OK)
        code = commit_forgotten (self, tables_forgotten (self->tables), error);
    if (code != STORE_OK) {
        tables_rollback (self->tables);
        *more = false;
    }
    if (code == STORE_OK)
        code = tables_checkpoint_if_large (self->tables, error);
    atomic_store (&self->tombstones, tables_meta (self->tables)->tombstones);
    return code == STORE_ERROR_FULL ? STORE_OK : code;
}

/* Rest. */

/* After a long rest the tables' file gets smaller, step by step; a commit meanwhile ends the rest.
 * Without space for it, it stays as it is until the next one. */
static store_code_t shrink (sqlite_store_t *self, behind_rest_t *rest, store_error_t *error)
{
    rest->again_ms = rest->commit_ms + self->options.shrink_ms;
    if (clock_ms (CLOCK_MONOTONIC) < rest->again_ms)
        return STORE_OK;
    bool more = false;
    store_code_t code = tables_shrink (self->tables, &more, error);
    self->may_shrink = more && code == STORE_OK;
    rest->again_ms = self->may_shrink ? clock_ms (CLOCK_MONOTONIC) + SHRINK_PAUSE_MS : INT64_MAX;
    return code == STORE_ERROR_FULL ? STORE_OK : code;
}

/* Says in the journal, after a while, that everything is written. */
static store_code_t rest_journal (sqlite_store_t *self, behind_rest_t *rest, store_error_t *error)
{
    rest->again_ms = rest->commit_ms + REST_MS;
    if (clock_ms (CLOCK_MONOTONIC) < rest->again_ms)
        return STORE_OK;
    store_code_t code = journal_rest (self->journal, error);
    reserve_take (&self->reserve);
    rest->again_ms = 0;
    if (code != STORE_ERROR_FULL && code != STORE_ERROR_BUSY)
        return code;
    /* unless the next commit says it */
    rest->again_ms = clock_ms (CLOCK_MONOTONIC) + BEHIND_STALL_MS;
    return STORE_OK;
}

/* One step of the vacuum. Without space it ends; any other error is one of the store's own. */
static store_code_t vacuum_some (sqlite_store_t *self, store_error_t *error)
{
    store_vacuum_t *vacuum = &self->vacuum;
    tables_space_t before = {0};
    tables_space_t space = {0};
    pthread_mutex_lock (&self->lock);
    bool begins = self->vacuum_goal == 0;
    pthread_mutex_unlock (&self->lock);
    store_error_t why = {STORE_OK, ""};
    store_code_t code = begins ? tables_space (self->tables, &before, &why) : STORE_OK;
    if (code == STORE_OK)
        code = tables_vacuum (self->tables, &space, &why);
    pthread_mutex_lock (&self->lock);
    if (code == STORE_OK) {
        if (begins)
            *vacuum = (store_vacuum_t){.file_bytes = before.file_bytes};
        uint64_t given =
            vacuum->file_bytes > space.file_bytes ? vacuum->file_bytes - space.file_bytes : 0;
        *vacuum = (store_vacuum_t){space.file_bytes, space.free_bytes, vacuum->given_bytes + given,
                                   false};
        if (begins)
            self->vacuum_goal = before.free_bytes;
    }
    self->may_shrink = true; /* the log is to come into the file, however this ended */
    self->vacuum_wanted =
        code == STORE_OK && space.free_bytes > 0 && vacuum->given_bytes < self->vacuum_goal;
    vacuum->more = self->vacuum_wanted;
    if (code == STORE_ERROR_FULL)
        self->vacuum_error = why;
    pthread_mutex_unlock (&self->lock);
    if (code != STORE_OK && code != STORE_ERROR_FULL)
        *error = why;
    return code == STORE_ERROR_FULL ? STORE_OK : code;
}

/* The thread has ended: nobody may wait for it. */
static void end (sqlite_store_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->ended = true;
    pthread_mutex_unlock (&self->lock);
    give_backup_up (self, STORE_ERROR_BUSY, "the copy was given up: the store ends");
}

static store_code_t rest (void *context, behind_rest_t *rest, store_error_t *error)
{
    sqlite_store_t *self = context;
    if (rest->ends) {
        end (self);
        return STORE_OK;
    }
    pthread_mutex_lock (&self->lock);
    store_backup_t *backup = self->backup;
    bool vacuums = self->vacuum_wanted;
    pthread_mutex_unlock (&self->lock);
    if (backup != NULL) {
        copy_some (self, backup, rest);
        return STORE_OK;
    }
    if (vacuums) {
        rest->again_ms = 0;
        return vacuum_some (self, error);
    }
    if (rest->busy)
        return STORE_OK;
    if (journal_can_rest (self->journal))
        return rest_journal (self, rest, error);
    return self->may_shrink ? shrink (self, rest, error) : STORE_OK;
}

const behind_calls_t store_thread_calls = {begin, write_rows, commit, forget, rest};
