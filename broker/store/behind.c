/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/behind.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/memory.h"
#include "store/follow.h"
#include "timestamp.h"

enum {
    FLUSH_MS_MIN = 20, /* between two write-backs that were asked for (A11) */
    FORGET_MS = 1000,  /* between two looks for what is old */
    FORGET_MS_MAX = 50 /* of slices in a row, before the next write-back */
};

struct behind {
    const behind_calls_t *calls;
    void *context;
    store_options_t options;
    followed_t followed;
    pthread_t thread;
    bool runs;

    /* Of the thread. */
    int64_t expiry_ms; /* by it is judged what is old; 0: nothing is yet */
    int64_t last_ms;   /* when the last write-back began */
    int64_t forget_ms; /* when it looks for what is old again … */
    bool forgets_more; /* … but the last slice left something */
    bool rest_goes_on; /* the backend has more to do at once, and that comes first */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    dirty_t pending; /* to be written */
    dirty_t writing; /* being written */
    bool flush;
    bool woken;
    bool stop;
    bool stalled;
    int64_t commit_ms;    /* when the last commit came */
    store_error_t broken; /* a final failure of the thread */
    uint64_t commits;
    uint64_t commit_us;
    forgotten_t forgotten; /* not told yet */
    size_t forgotten_capacity;

    atomic_uint_fast64_t written;
    atomic_uint_fast64_t exported; /* events up to it may be forgotten */
};

/* Waits for a change with the lock held, at most until mono_ms. */
static void wait_until (behind_t *self, int64_t mono_ms)
{
    if (mono_ms == INT64_MAX) {
        pthread_cond_wait (&self->changed, &self->lock);
        return;
    }
    struct timespec until = {mono_ms / 1000, mono_ms % 1000 * 1000000};
    pthread_cond_timedwait (&self->changed, &self->lock, &until);
}

static void tell (const behind_t *self)
{
    if (self->options.notify != NULL)
        self->options.notify (self->options.notify_context);
}

/* The thread. */

/* When what waits is to be written, in mono_ms; in the past: now. INT64_MAX: nothing does. */
static int64_t write_due_ms (const behind_t *self)
{
    if (self->pending.count == 0)
        return INT64_MAX;
    if (dirty_tasks (&self->pending) >= self->options.dirty_tasks_max || self->stop)
        return 0;
    int64_t due = self->pending.since_ms + self->options.dirty_ms_max;
    if (self->flush && self->last_ms + FLUSH_MS_MIN < due)
        due = self->last_ms + FLUSH_MS_MIN;
    return due;
}

static store_code_t write_back (behind_t *self, store_error_t *error)
{
    const dirty_t *writing = &self->writing;
    store_code_t code = self->calls->begin (self->context, error);
    if (code == STORE_OK)
        code = self->calls->write (self->context, writing, error);
    if (code == STORE_OK)
        code = self->calls->commit (self->context, writing->batches[writing->count - 1], error);
    return code;
}

/* Writes what waits, however long it takes; the lock is held before and after, not meanwhile. */
static store_code_t write_pending (behind_t *self, store_error_t *error)
{
    store_code_t code;
    self->last_ms = clock_ms (CLOCK_MONOTONIC);
    self->writing = self->pending;
    self->pending = (dirty_t){0};
    dirty_expect (&self->pending, dirty_tasks (&self->writing));
    self->flush = false;
    dirty_sort (&self->writing);
    while (true) {
        pthread_mutex_unlock (&self->lock);
        code = write_back (self, error);
        pthread_mutex_lock (&self->lock);
        self->stalled = code == STORE_ERROR_FULL;
        if (!self->stalled || self->stop)
            break;
        for (int64_t until = clock_ms (CLOCK_MONOTONIC) + BEHIND_STALL_MS;
             clock_ms (CLOCK_MONOTONIC) < until && !self->stop;)
            wait_until (self, until);
    }
    return code;
}

/* Says that the rows are there and gives the batches away. The lock is held before and after. */
static void publish_written (behind_t *self)
{
    const batch_t *newest = self->writing.batches[self->writing.count - 1];
    uint64_t batch = newest->no;
    self->expiry_ms = newest->expiry_ms;
    dirty_t done = self->writing;
    self->writing = (dirty_t){0};
    pthread_mutex_unlock (&self->lock);
    follow_put (&self->followed, &done);
    atomic_store (&self->written, batch);
    tell (self);
    pthread_mutex_lock (&self->lock);
}

/* Every FORGET_MS after a write-back, and at once while there is more, for about FORGET_MS_MAX at a
 * time. The lock is held before and after, not meanwhile. */
static store_code_t forget_sometimes (behind_t *self, store_error_t *error)
{
    int64_t start_ms = clock_ms (CLOCK_MONOTONIC);
    if (!self->forgets_more && start_ms < self->forget_ms)
        return STORE_OK;
    self->forget_ms = start_ms + FORGET_MS;
    pthread_mutex_unlock (&self->lock);
    store_code_t code;
    do
        code = self->calls->forget (self->context, self->expiry_ms, atomic_load (&self->exported),
                                    &self->forgets_more, error);
    while (code == STORE_OK && self->forgets_more &&
           clock_ms (CLOCK_MONOTONIC) < start_ms + FORGET_MS_MAX);
    pthread_mutex_lock (&self->lock);
    return code;
}

static store_code_t write_and_forget (behind_t *self, store_error_t *error)
{
    store_code_t code = write_pending (self, error);
    if (code != STORE_OK)
        return code;
    publish_written (self);
    return forget_sometimes (self, error);
}

/* The lock is held before and after, not meanwhile. */
static store_code_t ask_rest (behind_t *self, behind_rest_t *rest, store_error_t *error)
{
    *rest = (behind_rest_t){.busy = self->pending.count > 0 || self->forgets_more,
                            .pending = self->pending.count > 0,
                            .ends = rest->ends,
                            .commit_ms = self->commit_ms,
                            .again_ms = INT64_MAX};
    self->woken = false;
    pthread_mutex_unlock (&self->lock);
    store_code_t code = self->calls->rest (self->context, rest, error);
    pthread_mutex_lock (&self->lock);
    return code;
}

/* Nothing is due. What changes meanwhile may make it so. */
static store_code_t rest (behind_t *self, store_error_t *error)
{
    behind_rest_t rest = {0};
    if (self->pending.count == 0)
        self->flush = false; /* everything is written already */
    store_code_t code = ask_rest (self, &rest, error);
    self->rest_goes_on = rest.again_ms == 0;
    if (code != STORE_OK)
        return code;
    if (rest.write && self->pending.count > 0)
        return write_and_forget (self, error);
    int64_t due_ms = write_due_ms (self);
    int64_t until_ms = rest.again_ms < due_ms ? rest.again_ms : due_ms;
    bool came = !rest.pending && self->pending.count > 0;
    bool idle = !came && !self->woken && !self->stop && !self->forgets_more;
    if (idle && until_ms > clock_ms (CLOCK_MONOTONIC))
        wait_until (self, until_ms);
    return STORE_OK;
}

static store_code_t step (behind_t *self, store_error_t *error)
{
    bool waits = self->pending.count > 0;
    if (waits && clock_ms (CLOCK_MONOTONIC) >= write_due_ms (self))
        return write_and_forget (self, error);
    if (!waits && self->forgets_more && !self->woken && !self->rest_goes_on)
        return forget_sometimes (self, error);
    return rest (self, error);
}

static void *behind_run (void *context)
{
    behind_t *self = context;
    store_error_t error = {STORE_OK, ""};
    store_code_t code = STORE_OK;
    pthread_setname_np (pthread_self (), "store");
    pthread_mutex_lock (&self->lock);
    while (code == STORE_OK && (!self->stop || self->pending.count > 0))
        code = step (self, &error);
    behind_rest_t rest = {.ends = true};
    store_error_t ignored;
    ask_rest (self, &rest, &ignored);
    if (code != STORE_OK)
        self->broken = error;
    /* One that gives up because it is out of reach was told to end. */
    bool told =
        code != STORE_OK && code != STORE_ERROR_AWAY && !self->stop && self->options.failed != NULL;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (told)
        self->options.failed (self->options.notify_context, &error);
    return NULL;
}

/* The others. */

void behind_take (behind_t *self, batch_t *const *batches, size_t count, int64_t begun_us)
{
    pthread_mutex_lock (&self->lock);
    size_t before = dirty_tasks (&self->pending);
    bool was_empty = self->pending.count == 0;
    for (size_t i = 0; i < count; i++)
        dirty_add (&self->pending, batches[i], clock_ms (CLOCK_MONOTONIC));
    bool is_much = before < self->options.dirty_tasks_max &&
                   dirty_tasks (&self->pending) >= self->options.dirty_tasks_max;
    self->commits++;
    self->commit_us += (uint64_t) (clock_us (CLOCK_MONOTONIC) - begun_us);
    self->commit_ms = clock_ms (CLOCK_MONOTONIC);
    if (was_empty || is_much)
        pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

uint64_t behind_written (behind_t *self)
{
    return atomic_load (&self->written);
}

void behind_flush (behind_t *self)
{
    pthread_mutex_lock (&self->lock);
    if (!self->flush && self->pending.count > 0) {
        self->flush = true;
        pthread_cond_broadcast (&self->changed);
    }
    pthread_mutex_unlock (&self->lock);
}

void behind_exported (behind_t *self, uint64_t pos)
{
    atomic_store (&self->exported, pos);
}

void behind_wake (behind_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->woken = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

/* The lock is held. */
static store_code_t failure (const behind_t *self, store_error_t *error)
{
    if (self->broken.code != STORE_OK)
        *error = self->broken;
    return self->broken.code;
}

store_code_t behind_failure (behind_t *self, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    store_code_t code = failure (self, error);
    pthread_mutex_unlock (&self->lock);
    return code;
}

/* Asks for a write-back and waits a little. The lock is held. False: it waits for space, or has
 * ended. */
static bool hurry (behind_t *self)
{
    if (self->stalled || self->broken.code != STORE_OK)
        return false;
    self->flush = true;
    pthread_cond_broadcast (&self->changed);
    wait_until (self, clock_ms (CLOCK_MONOTONIC) + FLUSH_MS_MIN);
    return true;
}

store_code_t behind_wait (behind_t *self, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    uint64_t before = atomic_load (&self->written);
    while (atomic_load (&self->written) == before && hurry (self))
        continue;
    store_code_t code = failure (self, error);
    if (code == STORE_OK && self->stalled)
        code = store_fail (error, STORE_ERROR_FULL, "no space is left to write rows back");
    pthread_mutex_unlock (&self->lock);
    return code;
}

/* Copies what waits to be written. The lock is held. */
static overlay_t *make_overlay (const behind_t *self)
{
    size_t count = self->writing.count + self->pending.count;
    batch_t **batches = memory_zero (count, sizeof (batch_t *));
    for (size_t i = 0; i < self->writing.count; i++)
        batches[i] = self->writing.batches[i];
    for (size_t i = 0; i < self->pending.count; i++)
        batches[self->writing.count + i] = self->pending.batches[i];
    overlay_t *overlay = overlay_new (batches, count);
    free (batches);
    return overlay;
}

store_code_t behind_wait_all (behind_t *self, overlay_t **out, store_error_t *error)
{
    *out = NULL;
    pthread_mutex_lock (&self->lock);
    while ((self->pending.count > 0 || self->writing.count > 0) && hurry (self))
        continue;
    if (self->stalled)
        *out = make_overlay (self);
    store_code_t code = failure (self, error);
    pthread_mutex_unlock (&self->lock);
    return code;
}

bool behind_has (behind_t *self, int64_t number)
{
    pthread_mutex_lock (&self->lock);
    bool has = dirty_has (&self->pending, number) || dirty_has (&self->writing, number);
    pthread_mutex_unlock (&self->lock);
    return has;
}

bool behind_follow (behind_t *self, read_t *read, bool *lacks)
{
    return follow_take (&self->followed, read, lacks);
}

void behind_forgets (behind_t *self, uint64_t upto_seq)
{
    pthread_mutex_lock (&self->lock);
    self->forgotten.upto_seq = upto_seq;
    pthread_mutex_unlock (&self->lock);
}

void behind_forgot (behind_t *self, const forgotten_t *forgotten)
{
    pthread_mutex_lock (&self->lock);
    forgotten_t *all = &self->forgotten;
    for (size_t i = 0; i < forgotten->count; i++) {
        all->list =
            memory_grow (all->list, &self->forgotten_capacity, all->count, sizeof (*all->list));
        all->list[all->count++] = forgotten->list[i];
    }
    pthread_mutex_unlock (&self->lock);
    tell (self);
}

void behind_forgotten (behind_t *self, forgotten_t *out)
{
    pthread_mutex_lock (&self->lock);
    *out = self->forgotten;
    self->forgotten = (forgotten_t){.upto_seq = out->upto_seq};
    self->forgotten_capacity = 0;
    pthread_mutex_unlock (&self->lock);
}

void behind_stats (behind_t *self, store_stats_t *out)
{
    pthread_mutex_lock (&self->lock);
    out->commits = self->commits;
    out->commit_us = self->commit_us;
    out->dirty_tasks = dirty_tasks (&self->pending) + dirty_tasks (&self->writing);
    out->dirty_bytes = self->pending.bytes + self->writing.bytes;
    out->write_back_stalled = self->stalled;
    pthread_mutex_unlock (&self->lock);
}

/* Life. */

behind_t *behind_new (const behind_calls_t *calls, void *context, const store_options_t *options)
{
    behind_t *self = memory_zero (1, sizeof (*self));
    self->calls = calls;
    self->context = context;
    self->options = *options;
    self->commit_ms = clock_ms (CLOCK_MONOTONIC);
    follow_init (&self->followed);
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init (&monotonic);
    pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&self->changed, &monotonic);
    pthread_condattr_destroy (&monotonic);
    return self;
}

store_code_t behind_start (behind_t *self, store_error_t *error)
{
    if (pthread_create (&self->thread, NULL, behind_run, self) != 0)
        return store_fail (error, STORE_ERROR_IO, "the store thread cannot be started");
    self->runs = true;
    return STORE_OK;
}

store_code_t behind_stop (behind_t *self, store_error_t *error)
{
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (self->runs)
        pthread_join (self->thread, NULL);
    self->runs = false;
    return behind_failure (self, error);
}

void behind_free (behind_t *self)
{
    if (self == NULL)
        return;
    follow_destroy (&self->followed);
    dirty_free (&self->pending);
    dirty_free (&self->writing);
    free (self->forgotten.list);
    pthread_mutex_destroy (&self->lock);
    pthread_cond_destroy (&self->changed);
    free (self);
}
