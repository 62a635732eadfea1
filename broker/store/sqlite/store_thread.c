/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/store_thread.h"

#include <unistd.h>

#include "core/base/memory.h"

enum {
    STALL_MS = 1000,     /* between two tries when there is no space (A22) */
    REST_MS = 1000,      /* without a commit, until the journal says what is written (A10) */
    FORGET_MS = 1000,    /* between two looks for what is old */
    FORGET_MS_MAX = 50,  /* of slices in a row, before the next write-back */
    SHRINK_PAUSE_MS = 20 /* between two steps that give free pages back */
};

/* Where the store thread stands with what is old. */
typedef struct forgetting {
    bool more; /* the last slice left something */
    int64_t next_ms;
} forgetting_t;

static store_code_t write_back (sqlite_store_t *self, store_error_t *error)
{
    store_code_t code = tables_need_log (self->tables, error);
    if (code != STORE_OK)
        return code;
    code = tables_begin (self->tables, error);
    if (code == STORE_OK)
        code = tables_write (self->tables, &self->writing, error);
    if (code == STORE_OK)
        code = tables_commit (self->tables, error);
    if (code != STORE_OK) {
        tables_rollback (self->tables);
        return code;
    }
    /* The rows are durable. A log that finds no space to be emptied into stays longer. */
    code = tables_checkpoint_if_large (self->tables, error);
    if (code != STORE_ERROR_FULL)
        return code;
    reserve_release (&self->reserve);
    return STORE_OK;
}

/* When pending is to be written, in mono_ms; in the past: now. */
static int64_t write_due_ms (const sqlite_store_t *self, int64_t last_ms)
{
    if (dirty_tasks (&self->pending) >= self->options.dirty_tasks_max || self->stop)
        return 0;
    int64_t due = self->pending.since_ms + self->options.dirty_ms_max;
    if (self->flush && last_ms + FLUSH_MS_MIN < due)
        due = last_ms + FLUSH_MS_MIN;
    return due;
}

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
    end_backup (self, code, &error);
}

/* Writes self->writing, however long it takes; the lock is held before and after, not meanwhile. */
static store_code_t write_pending (sqlite_store_t *self, store_error_t *error)
{
    self->writing = self->pending;
    self->pending = (dirty_t){0};
    dirty_expect (&self->pending, dirty_tasks (&self->writing));
    self->flush = false;
    dirty_sort (&self->writing);
    pthread_mutex_unlock (&self->lock);
    store_code_t code = journal_make_room (self->journal, error);
    pthread_mutex_lock (&self->lock);
    if (code != STORE_OK && code != STORE_ERROR_FULL)
        return code;
    while (true) {
        pthread_mutex_unlock (&self->lock);
        code = write_back (self, error);
        if (code == STORE_ERROR_FULL)
            reserve_release (&self->reserve);
        pthread_mutex_lock (&self->lock);
        self->stalled = code == STORE_ERROR_FULL;
        if (self->stalled)
            give_backup_up (self, STORE_ERROR_FULL, "no space: the copy gave its own back");
        if (!self->stalled || self->stop)
            break;
        for (int64_t until = clock_ms (CLOCK_MONOTONIC) + STALL_MS;
             clock_ms (CLOCK_MONOTONIC) < until && !self->stop;)
            wait_until (self, until);
    }
    return code;
}

/* Says that the rows are there and gives the batches away. The lock is held before and after. */
static void publish_written (sqlite_store_t *self)
{
    const batch_t *newest = self->writing.batches[self->writing.count - 1];
    uint64_t batch = newest->no;
    self->expiry_ms = newest->expiry_ms;
    dirty_t done = self->writing;
    self->writing = (dirty_t){0};
    self->tasks = tables_meta (self->tables)->tasks;
    self->tombstones = tables_meta (self->tables)->tombstones;
    self->removals = tables_removals (self->tables);
    journal_written (self->journal, batch);
    pthread_mutex_unlock (&self->lock);
    follow_put (&self->followed, &done);
    atomic_store (&self->written, batch);
    if (self->options.notify != NULL)
        self->options.notify (self->options.notify_context);
    pthread_mutex_lock (&self->lock);
}

/* Whoever finds a namespace gone from the tables finds its last sequence here. */
static store_code_t commit_forgotten (sqlite_store_t *self, const forgotten_t *forgotten,
                                      store_error_t *error)
{
    if (forgotten->count == 0)
        return tables_commit (self->tables, error);
    pthread_mutex_lock (&self->lock);
    self->forgotten.upto_seq = forgotten->upto_seq;
    pthread_mutex_unlock (&self->lock);
    gate_close (&self->gate);
    store_code_t code = tables_commit (self->tables, error);
    self->gate.forgets++;
    gate_open (&self->gate);
    if (code != STORE_OK)
        return code;
    pthread_mutex_lock (&self->lock);
    forgotten_t *all = &self->forgotten;
    for (size_t i = 0; i < forgotten->count; i++) {
        all->list =
            memory_grow (all->list, &self->forgotten_capacity, all->count, sizeof (*all->list));
        all->list[all->count++] = forgotten->list[i];
    }
    pthread_mutex_unlock (&self->lock);
    if (self->options.notify != NULL)
        self->options.notify (self->options.notify_context);
    return STORE_OK;
}

/* Forgets one slice of what is old; times are those of the batches, so that no clock can be wrong.
 * What finds no space to be forgotten waits for the next round. */
static store_code_t forget (sqlite_store_t *self, bool *more, store_error_t *error)
{
    const store_options_t *options = &self->options;
    retention_limits_t limits = {self->expiry_ms - options->events_ms_max,
                                 options->events_bytes_max, atomic_load (&self->exported),
                                 self->expiry_ms - options->tombstones_ms_max,
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
    return code == STORE_ERROR_FULL ? STORE_OK : code;
}

/* Every FORGET_MS after a write-back, and at once while there is more, for about FORGET_MS_MAX at a
 * time. The lock is held before and after, not meanwhile. */
static store_code_t forget_sometimes (sqlite_store_t *self, forgetting_t *forgetting,
                                      store_error_t *error)
{
    int64_t start_ms = clock_ms (CLOCK_MONOTONIC);
    if (!forgetting->more && start_ms < forgetting->next_ms)
        return STORE_OK;
    forgetting->next_ms = start_ms + FORGET_MS;
    pthread_mutex_unlock (&self->lock);
    store_code_t code;
    do
        code = forget (self, &forgetting->more, error);
    while (code == STORE_OK && forgetting->more &&
           clock_ms (CLOCK_MONOTONIC) < start_ms + FORGET_MS_MAX);
    pthread_mutex_lock (&self->lock);
    self->tombstones = tables_meta (self->tables)->tombstones;
    return code;
}

/* One step of the copy. Before the last one everything that waits is written, so that the copy has
 * what was durable when it was asked for. The lock is held before and after, not meanwhile. An
 * error is one of the store's own. */
static store_code_t copy_some (sqlite_store_t *self, int64_t *last_ms, store_error_t *error)
{
    store_backup_t *backup = self->backup;
    store_error_t why;
    if (copy_is_nearly_done (&self->copy) && self->pending.count > 0) {
        *last_ms = clock_ms (CLOCK_MONOTONIC);
        store_code_t code = write_pending (self, error);
        if (code != STORE_OK)
            return code;
        publish_written (self);
        if (self->backup == NULL)
            return STORE_OK;
    }
    pthread_mutex_unlock (&self->lock);
    store_code_t copied = STORE_OK;
    if (self->copy.db == NULL)
        copied = tables_copy (self->tables, &self->copy, backup->path, &why);
    if (copied == STORE_OK && atomic_load (&self->no_space))
        copied = store_fail (&why, STORE_ERROR_FULL, "no space: the copy gave its own back");
    if (copied == STORE_OK && backup->goes_on != NULL && !backup->goes_on (backup->context))
        copied = store_fail (&why, STORE_ERROR_BUSY, "the copy was given up");
    if (copied == STORE_OK)
        copied = copy_step (&self->copy, &why);
    pthread_mutex_lock (&self->lock);
    if (copied != STORE_OK || self->copy.done)
        end_backup (self, copied, &why);
    return STORE_OK;
}

/* After a long rest the tables' file gets smaller, step by step; a commit meanwhile ends the rest.
 * Without space for it, it stays as it is until the next one. */
static store_code_t shrink (sqlite_store_t *self, store_error_t *error)
{
    int64_t due = self->commit_ms + self->options.shrink_ms;
    if (clock_ms (CLOCK_MONOTONIC) < due) {
        wait_until (self, due);
        return STORE_OK;
    }
    pthread_mutex_unlock (&self->lock);
    bool more = false;
    store_code_t code = tables_shrink (self->tables, &more, error);
    pthread_mutex_lock (&self->lock);
    self->may_shrink = more && code == STORE_OK;
    if (self->may_shrink && !self->stop && self->pending.count == 0)
        wait_until (self, clock_ms (CLOCK_MONOTONIC) + SHRINK_PAUSE_MS);
    return code == STORE_ERROR_FULL ? STORE_OK : code;
}

/* One step of the vacuum. The lock is held before and after, not meanwhile. Without space it ends;
 * any other error is one of the store's own. */
static store_code_t vacuum_some (sqlite_store_t *self, store_error_t *error)
{
    store_vacuum_t *vacuum = &self->vacuum;
    tables_space_t before = {0};
    tables_space_t space = {0};
    bool begins = self->vacuum_goal == 0;
    store_error_t why = {STORE_OK, ""};
    pthread_mutex_unlock (&self->lock);
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
    if (code != STORE_ERROR_FULL) {
        *error = why;
        return code;
    }
    self->vacuum_error = why;
    return STORE_OK;
}

/* Nothing is pending: tells the journal so after a while, and sleeps. */
static store_code_t rest (sqlite_store_t *self, store_error_t *error)
{
    self->flush = false; /* everything is written already */
    if (!journal_can_rest (self->journal)) {
        if (self->may_shrink)
            return shrink (self, error);
        pthread_cond_wait (&self->changed, &self->lock);
        return STORE_OK;
    }
    int64_t due = self->commit_ms + REST_MS;
    if (clock_ms (CLOCK_MONOTONIC) < due) {
        wait_until (self, due);
        return STORE_OK;
    }
    pthread_mutex_unlock (&self->lock);
    store_code_t code = journal_rest (self->journal, error);
    reserve_take (&self->reserve);
    pthread_mutex_lock (&self->lock);
    if (code != STORE_ERROR_FULL && code != STORE_ERROR_BUSY)
        return code;
    wait_until (self, clock_ms (CLOCK_MONOTONIC) + STALL_MS); /* unless the next commit says it */
    return STORE_OK;
}

void *store_thread_run (void *context)
{
    sqlite_store_t *self = context;
    store_error_t error = {STORE_OK, ""};
    store_code_t code = STORE_OK;
    int64_t last_ms = 0;
    forgetting_t forgetting = {false, 0};
    pthread_setname_np (pthread_self (), "store");
    pthread_mutex_lock (&self->lock);
    while (code == STORE_OK) {
        bool is_due =
            self->pending.count > 0 && clock_ms (CLOCK_MONOTONIC) >= write_due_ms (self, last_ms);
        if (self->backup != NULL && !self->stop && !is_due) {
            code = copy_some (self, &last_ms, &error);
            continue;
        }
        if (self->vacuum_wanted && !self->stop && !is_due) {
            code = vacuum_some (self, &error);
            continue;
        }
        if (self->pending.count == 0) {
            if (self->stop)
                break;
            code = forgetting.more ? forget_sometimes (self, &forgetting, &error)
                                   : rest (self, &error);
            continue;
        }
        int64_t due = write_due_ms (self, last_ms);
        if (clock_ms (CLOCK_MONOTONIC) < due) {
            wait_until (self, due);
            continue;
        }
        last_ms = clock_ms (CLOCK_MONOTONIC);
        self->may_shrink = true;
        code = write_pending (self, &error);
        if (code != STORE_OK)
            break;
        publish_written (self);
        code = forget_sometimes (self, &forgetting, &error);
    }
    give_backup_up (self, STORE_ERROR_BUSY, "the copy was given up: the store ends");
    if (code != STORE_OK)
        self->broken = error;
    bool tell = code != STORE_OK && !self->stop && self->options.failed != NULL;
    pthread_mutex_unlock (&self->lock);
    if (tell)
        self->options.failed (self->options.notify_context, &error);
    return NULL;
}
