/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The committer thread. It hands every failure on as a result; the server decides what follows. */
#include "store/committer.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "store/wakeup.h"

struct committer {
    store_t *store;
    int fd;
    pthread_t thread;
    bool in_flight; /* of the server thread: a batch was given and its result not fetched */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    batch_t *batch; /* to be committed */
    bool done;      /* result is filled */
    bool stop;
    commit_result_t result;
};

static void commit (store_t *store, batch_t *batch, commit_result_t *result)
{
    store_error_t error = {STORE_OK, ""};
    result->batch = batch->no;
    result->code = store_commit (store, batch, &error);
    snprintf (result->text, sizeof (result->text), "%s", error.text);
}

static void *committer_run (void *context)
{
    committer_t *self = context;
    pthread_setname_np (pthread_self (), "committer");
    pthread_mutex_lock (&self->lock);
    while (true) {
        while (self->batch == NULL && !self->stop)
            pthread_cond_wait (&self->changed, &self->lock);
        if (self->batch == NULL)
            break;
        batch_t *batch = self->batch;
        self->batch = NULL;
        pthread_mutex_unlock (&self->lock);
        commit_result_t result;
        commit (self->store, batch, &result);
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

void committer_submit (committer_t *self, batch_t *batch)
{
    assert (!self->in_flight);
    self->in_flight = true;
    pthread_mutex_lock (&self->lock);
    self->batch = batch;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

void committer_commit (committer_t *self, batch_t *batch, commit_result_t *result)
{
    /* Nothing in flight means that the thread waits and that its last commit happened before the
     * fetch of its result: the token is ours. */
    assert (!self->in_flight);
    commit (self->store, batch, result);
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
