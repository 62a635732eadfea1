/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Two queues and a thread between them. What a runner finds wrong is in the errand's answer. */
#include "errands.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fifo.h"
#include "core/base/memory.h"
#include "store/wakeup.h"

struct errands {
    errand_runner_t *runners;
    size_t runners_count;
    errand_judge_t judge;
    pthread_t thread;
    bool running;
    int fd;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    fifo_t waiting;
    fifo_t done;
    bool stop;
};

static void run (const errands_t *self, errand_t *errand)
{
    bool of_client = errand->context != NULL;
    if (of_client && self->judge.may != NULL && !self->judge.may (self->judge.context, errand)) {
        errand_refuse (errand, TMQ_DENIED, "%s has lost the right to ask for this",
                       errand->identity);
        return;
    }
    for (size_t i = 0; i < self->runners_count; i++) {
        if (self->runners[i].op != errand->op)
            continue;
        self->runners[i].run (self->runners[i].context, errand);
        return;
    }
    errand->code = TMQ_UNSUPPORTED;
}

static void bring_back (errands_t *self, errand_t *errand)
{
    if (self->done.count == 0)
        wakeup_raise (self->fd);
    fifo_push (&self->done, errand);
}

static void *thread_run (void *context)
{
    errands_t *self = context;
    pthread_setname_np (pthread_self (), "errands");
    pthread_mutex_lock (&self->lock);
    while (true) {
        while (self->waiting.count == 0 && !self->stop)
            pthread_cond_wait (&self->changed, &self->lock);
        if (self->stop)
            break;
        errand_t *errand = fifo_pop (&self->waiting);
        pthread_mutex_unlock (&self->lock);
        run (self, errand);
        pthread_mutex_lock (&self->lock);
        bring_back (self, errand);
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

void errands_submit (errands_t *self, errand_t *errand)
{
    pthread_mutex_lock (&self->lock);
    if (self->waiting.count >= ERRANDS_QUEUE_MAX) {
        errand_refuse (errand, TMQ_OVERLOADED, "%d requests that need a file wait",
                       ERRANDS_QUEUE_MAX);
        errand->retry_after_ms = ERRANDS_OVERLOAD_MS;
        bring_back (self, errand);
    } else {
        fifo_push (&self->waiting, errand);
        pthread_cond_signal (&self->changed);
    }
    pthread_mutex_unlock (&self->lock);
}

errand_t *errands_done (errands_t *self)
{
    pthread_mutex_lock (&self->lock);
    errand_t *errand = fifo_pop (&self->done);
    if (errand != NULL && self->done.count == 0)
        wakeup_lower (self->fd);
    pthread_mutex_unlock (&self->lock);
    return errand;
}

int errands_fd (const errands_t *self)
{
    return self->fd;
}

errands_t *errands_new (const errand_runner_t *runners, size_t count, errand_judge_t judge)
{
    errands_t *self = memory_zero (1, sizeof (*self));
    self->runners = memory_alloc (count * sizeof (*runners));
    if (count > 0)
        memcpy (self->runners, runners, count * sizeof (*runners));
    self->runners_count = count;
    self->judge = judge;
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->changed, NULL);
    self->fd = wakeup_new ();
    self->running = self->fd >= 0 && pthread_create (&self->thread, NULL, thread_run, self) == 0;
    if (!self->running)
        errands_free (&self);
    return self;
}

void errands_free (errands_t **self_p)
{
    errands_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
    if (self->running)
        pthread_join (self->thread, NULL);
    fifo_free (&self->waiting);
    fifo_free (&self->done);
    if (self->fd >= 0)
        close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self->runners);
    free (self);
}
