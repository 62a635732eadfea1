/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a look-up that fails for good ends the process (A23), like any other read of
 * the store. */
#include "sweeper.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "exits.h"
#include "store/wakeup.h"
#include "timestamp.h"
#include "trim.h"

enum { INTERVAL_MS = 1000 }; /* between the beginnings of two passes */

struct sweeper {
    store_t *store;
    int fd;
    pthread_t thread;
    store_sweep_t sweep; /* of the thread: the place in the pass */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    due_t found;                          /* not yet taken */
    bool waits;                           /* … there is something */
    bool taken;                           /* not yet decided */
    uint64_t batches[SWEEPER_SLICES_MAX]; /* with decided slices, not yet in the tables */
    size_t batches_count;
    bool again; /* the pass has ended: begin anew */
    bool stop;
};

static void look (sweeper_t *self)
{
    store_error_t error = {STORE_OK, ""};
    self->sweep.wall_ms = clock_ms (CLOCK_REALTIME);
    self->sweep.limit = TMQ_SWEEP_ITEMS_MAX;
    store_code_t code = store_due (self->store, &self->sweep, &error);
    if (code != STORE_OK && code != STORE_ERROR_AWAY) /* what is out of reach has nothing due now */
        exits_store_failed (&error);
    pthread_mutex_lock (&self->lock);
    self->again = self->again || !self->sweep.more;
    self->waits = self->sweep.found.count > 0 || self->sweep.found.rows_count > 0;
    if (self->waits) {
        self->found = self->sweep.found;
        wakeup_raise (self->fd);
    } else {
        due_clear (&self->sweep.found);
    }
    pthread_mutex_unlock (&self->lock);
}

/* Waits until the next slice may be looked for. False: stop. */
static bool wait_turn (sweeper_t *self, int64_t *pass_at)
{
    pthread_mutex_lock (&self->lock);
    while (!self->stop) {
        bool out = self->waits || self->taken;
        if (!out && !self->again && self->batches_count < SWEEPER_SLICES_MAX)
            break;
        if (out || self->batches_count > 0) {
            pthread_cond_wait (&self->changed, &self->lock);
            continue;
        }
        /* Everything has arrived. */
        if (clock_ms (CLOCK_MONOTONIC) >= *pass_at)
            break;
        struct timespec until = {*pass_at / 1000, *pass_at % 1000 * 1000000};
        pthread_cond_timedwait (&self->changed, &self->lock, &until);
    }
    if (self->again) {
        self->again = false;
        self->sweep = (store_sweep_t){0};
        *pass_at = clock_ms (CLOCK_MONOTONIC) + INTERVAL_MS;
    }
    bool go_on = !self->stop;
    pthread_mutex_unlock (&self->lock);
    return go_on;
}

static void *sweeper_run (void *context)
{
    sweeper_t *self = context;
    int64_t pass_at = clock_ms (CLOCK_MONOTONIC) + INTERVAL_MS;
    trim_t trim = {0};
    pthread_setname_np (pthread_self (), "sweeper");
    while (wait_turn (self, &pass_at)) {
        look (self);
        trim_sometimes (&trim, clock_ms (CLOCK_MONOTONIC)); /* a thread that has the time for it */
    }
    return NULL;
}

int sweeper_fd (const sweeper_t *self)
{
    return self->fd;
}

bool sweeper_take (sweeper_t *self, due_t *out)
{
    pthread_mutex_lock (&self->lock);
    bool found = self->waits;
    if (found) {
        *out = self->found;
        self->found = (due_t){0};
        self->waits = false;
        self->taken = true;
        wakeup_lower (self->fd);
    }
    pthread_mutex_unlock (&self->lock);
    return found;
}

void sweeper_decided (sweeper_t *self, size_t removed, uint64_t batch)
{
    pthread_mutex_lock (&self->lock);
    self->taken = false;
    if (removed > 0)
        self->batches[self->batches_count++] = batch;
    else
        self->again = true;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void sweeper_written (sweeper_t *self, uint64_t batch)
{
    pthread_mutex_lock (&self->lock);
    size_t done = 0;
    while (done < self->batches_count && self->batches[done] <= batch)
        done++;
    self->batches_count -= done;
    memmove (self->batches, self->batches + done, self->batches_count * sizeof (uint64_t));
    if (done > 0)
        pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void sweeper_reset (sweeper_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->taken = false;
    self->batches_count = 0;
    self->again = true;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

static void release (sweeper_t *self)
{
    due_clear (&self->found);
    if (self->fd >= 0)
        close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

sweeper_t *sweeper_new (store_t *store)
{
    sweeper_t *self = memory_zero (1, sizeof (*self));
    pthread_condattr_t attributes;
    self->store = store;
    self->again = true;
    self->fd = wakeup_new ();
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_init (&attributes);
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    pthread_cond_init (&self->changed, &attributes);
    pthread_condattr_destroy (&attributes);
    if (self->fd >= 0 && pthread_create (&self->thread, NULL, sweeper_run, self) == 0)
        return self;
    release (self);
    return NULL;
}

void sweeper_free (sweeper_t **self_p)
{
    sweeper_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
    pthread_join (self->thread, NULL);
    release (self);
}
