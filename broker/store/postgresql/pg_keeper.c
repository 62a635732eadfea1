/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/postgresql/pg_keeper.h"

#include <stdlib.h>
#include <time.h>

#include "core/base/memory.h"
#include "timestamp.h"

enum { LOOK_MS = 250 /* between two tries */ };

struct pg_keeper {
    pg_store_t *store;
    pg_kept_t *first;
    void (*look) (void *context);
    void *context;
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool hurry;
    bool stop;
};

pg_keeper_t *pg_keeper_new (pg_store_t *store)
{
    pg_keeper_t *self = memory_zero (1, sizeof (*self));
    pthread_condattr_t monotonic;
    self->store = store;
    pthread_mutex_init (&self->lock, NULL);
    pthread_condattr_init (&monotonic);
    pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init (&self->changed, &monotonic);
    pthread_condattr_destroy (&monotonic);
    return self;
}

pg_kept_t *pg_keeper_add (pg_keeper_t *self, const char *name, const char *const *texts,
                          size_t texts_count, int64_t wait_ms_max)
{
    pg_kept_t *kept = memory_zero (1, sizeof (*kept));
    pthread_mutex_init (&kept->lock, NULL);
    pg_link_init (&kept->link, &self->store->target, name, texts, texts_count);
    kept->link.wait_ms_max = wait_ms_max;
    kept->next = self->first;
    self->first = kept;
    return kept;
}

static bool is_closed (pg_kept_t *kept)
{
    pthread_mutex_lock (&kept->lock);
    bool closed = !pg_link_is_open (&kept->link);
    pthread_mutex_unlock (&kept->lock);
    return closed;
}

/* Connects beside the link, so that nobody waits for its lock meanwhile. */
static store_code_t renew (pg_kept_t *kept, store_error_t *error)
{
    pg_link_t fresh;
    const pg_link_t *like = &kept->link; /* what is read of it here never changes */
    pg_link_init (&fresh, like->target, like->name, like->texts, like->texts_count);
    fresh.wait_ms_max = like->wait_ms_max;
    store_code_t code = pg_link_open (&fresh, error);
    if (code != STORE_OK)
        return code;
    pthread_mutex_lock (&kept->lock);
    pg_link_move (&kept->link, &fresh);
    pthread_mutex_unlock (&kept->lock);
    return STORE_OK;
}

/* Every link is open behind it, or the database is out of reach. While it is, a link that looks
 * open says nothing. */
static store_code_t look (pg_keeper_t *self, store_error_t *error)
{
    store_code_t code = STORE_OK;
    bool away = pg_store_is_away (self->store);
    for (pg_kept_t *kept = self->first; code == STORE_OK && kept != NULL; kept = kept->next)
        if (away || is_closed (kept))
            code = renew (kept, error);
    return code;
}

/* What is no longer allowed or belongs to somebody else is for the commits to find: they end the
 * process. */
static void *keeper_run (void *context)
{
    pg_keeper_t *self = context;
    store_error_t error;
    pthread_setname_np (pthread_self (), "keeper");
    pthread_mutex_lock (&self->lock);
    while (!self->stop) {
        self->hurry = false;
        pthread_mutex_unlock (&self->lock);
        if (look (self, &error) == STORE_OK) {
            pg_store_found (self->store, NULL);
            self->look (self->context);
        } else {
            pg_store_lost (self->store, &error);
        }
        pthread_mutex_lock (&self->lock);
        int64_t until_ms = clock_ms (CLOCK_MONOTONIC) + LOOK_MS;
        struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
        bool waits = true;
        while (waits && !self->stop && !self->hurry)
            waits = pthread_cond_timedwait (&self->changed, &self->lock, &until) == 0;
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

store_code_t pg_keeper_start (pg_keeper_t *self, void (*look_too) (void *context), void *context,
                              store_error_t *error)
{
    self->look = look_too;
    self->context = context;
    store_code_t code = look (self, error);
    if (code != STORE_OK)
        return code;
    if (pthread_create (&self->thread, NULL, keeper_run, self) != 0)
        return store_fail (error, STORE_ERROR_IO, "the keeper of connections cannot be started");
    self->runs = true;
    return STORE_OK;
}

void pg_keeper_hurry (pg_keeper_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->hurry = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void pg_keeper_free (pg_keeper_t **self_p)
{
    pg_keeper_t *self = *self_p;
    if (self == NULL)
        return;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (self->runs)
        pthread_join (self->thread, NULL);
    *self_p = NULL; /* not before: the thread may find the database lost, and hurry itself */
    while (self->first != NULL) {
        pg_kept_t *kept = self->first;
        self->first = kept->next;
        pg_link_close (&kept->link);
        pthread_mutex_destroy (&kept->lock);
        free (kept);
    }
    pthread_mutex_destroy (&self->lock);
    pthread_cond_destroy (&self->changed);
    free (self);
}
