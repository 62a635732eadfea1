/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: a look-up that fails for good ends the process (A23), like any other read of
 * the store. */
#include "sweeper.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "exits.h"
#include "store/wakeup.h"

enum { INTERVAL_S = 1 };

struct sweeper {
    store_t *store;
    int fd;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    record_t **records; /* found, not yet taken */
    size_t count;
    bool busy; /* a slice is out: found, taken, or decided and not yet written back */
    bool more; /* the last slice was full */
    bool stop;
};

static int64_t wall_now (void)
{
    struct timespec now;
    clock_gettime (CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void look (sweeper_t *self)
{
    record_t **records = NULL;
    size_t count = 0;
    store_error_t error = {STORE_OK, ""};
    if (store_due (self->store, wall_now (), TMQ_SWEEP_ITEMS_MAX, &records, &count, &error) !=
        STORE_OK)
        exits_store_failed (&error);
    pthread_mutex_lock (&self->lock);
    self->more = count == TMQ_SWEEP_ITEMS_MAX;
    if (count > 0) {
        self->records = records;
        self->count = count;
        self->busy = true;
        wakeup_raise (self->fd);
    } else {
        free (records);
    }
    pthread_mutex_unlock (&self->lock);
}

/* Waits for the end of the interval, or for the tables if a slice is out. False: stop. */
static bool wait_turn (sweeper_t *self)
{
    struct timespec until;
    clock_gettime (CLOCK_MONOTONIC, &until);
    until.tv_sec += INTERVAL_S;
    pthread_mutex_lock (&self->lock);
    bool elapsed = self->more;
    while (!self->stop && (self->busy || !elapsed)) {
        if (self->busy)
            pthread_cond_wait (&self->changed, &self->lock);
        else
            elapsed = pthread_cond_timedwait (&self->changed, &self->lock, &until) != 0;
        elapsed = elapsed || self->more;
    }
    bool go_on = !self->stop;
    pthread_mutex_unlock (&self->lock);
    return go_on;
}

static void *sweeper_run (void *context)
{
    sweeper_t *self = context;
    while (wait_turn (self))
        look (self);
    return NULL;
}

int sweeper_fd (const sweeper_t *self)
{
    return self->fd;
}

bool sweeper_take (sweeper_t *self, record_t ***records, size_t *count)
{
    pthread_mutex_lock (&self->lock);
    bool found = self->records != NULL;
    if (found) {
        *records = self->records;
        *count = self->count;
        self->records = NULL;
        wakeup_lower (self->fd);
    }
    pthread_mutex_unlock (&self->lock);
    return found;
}

void sweeper_continue (sweeper_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->busy = false;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

static void release (sweeper_t *self)
{
    for (size_t i = 0; self->records != NULL && i < self->count; i++)
        record_free (self->records[i]);
    free (self->records);
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
