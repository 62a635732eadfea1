/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The committer thread. It hands every failure on as a result; the server decides what follows. */
#include "store/committer.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/wakeup.h"
#include "timestamp.h"

struct committer {
    store_t *store;
    int fd;
    pthread_t thread;
    bool in_flight; /* of the server thread: batches were given and its result not fetched */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    batch_t *batches[STORE_COMMIT_BATCHES_MAX]; /* to be committed */
    size_t count;                               /* 0: nothing to do */
    bool done;                                  /* result is filled */
    bool stop;
    commit_result_t result;
};

static void commit (store_t *store, batch_t *const *batches, size_t count, commit_result_t *result)
{
    store_error_t error = {STORE_OK, ""};
    result->batch = batches[count - 1]->no;
    result->begun_us = clock_us (CLOCK_MONOTONIC);
    result->code = store_commit (store, batches, count, &error);
    result->ended_us = clock_us (CLOCK_MONOTONIC);
    snprintf (result->text, sizeof (result->text), "%s", error.text);
}

static void *committer_run (void *context)
{
    committer_t *self = context;
    pthread_setname_np (pthread_self (), "committer");
    pthread_mutex_lock (&self->lock);
    while (true) {
        while (self->count == 0 && !self->stop)
            pthread_cond_wait (&self->changed, &self->lock);
        if (self->count == 0)
            break;
        size_t count = self->count;
        self->count = 0;
        pthread_mutex_unlock (&self->lock);
        commit_result_t result; /* nobody else touches the batches before it is fetched */
        commit (self->store, self->batches, count, &result);
        pthread_mutex_lock (&self->lock);
        self->result = result;
        self->done = true;
        wakeup_raise (self->fd);
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

bool committer_idle (const committer_t *self)
{
    return !self->in_flight;
}

void committer_submit (committer_t *self, batch_t *const *batches, size_t count)
{
    assert (!self->in_flight && count > 0 && count <= STORE_COMMIT_BATCHES_MAX);
    self->in_flight = true;
    pthread_mutex_lock (&self->lock);
    memcpy (self->batches, batches, count * sizeof (batch_t *));
    self->count = count;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void committer_commit (committer_t *self, batch_t *const *batches, size_t count,
                       commit_result_t *result)
{
    /* Nothing in flight means that the thread waits and that its last commit happened before the
     * fetch of its result: the token is ours. */
    assert (!self->in_flight);
    commit (self->store, batches, count, result);
}

int committer_fd (const committer_t *self)
{
    return self->fd;
}

bool committer_result (committer_t *self, commit_result_t *result)
{
    if (!self->in_flight)
        return false;
    pthread_mutex_lock (&self->lock);
    bool done = self->done;
    if (done) {
        *result = self->result;
        self->done = false;
        wakeup_lower (self->fd);
    }
    pthread_mutex_unlock (&self->lock);
    if (done)
        self->in_flight = false;
    return done;
}

committer_t *committer_new (store_t *store)
{
    committer_t *self = memory_zero (1, sizeof (*self));
    self->store = store;
    self->fd = wakeup_new ();
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->changed, NULL);
    if (self->fd >= 0 && pthread_create (&self->thread, NULL, committer_run, self) == 0)
        return self;
    if (self->fd >= 0)
        close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
    return NULL;
}

void committer_free (committer_t **self_p)
{
    committer_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
    pthread_join (self->thread, NULL);
    close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
