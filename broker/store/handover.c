/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/handover.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/fifo.h"
#include "core/base/memory.h"
#include "store/wakeup.h"

struct handover {
    int fd;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    fifo_t waiting;
    fifo_t done;
    bool stop;
};

handover_t *handover_new (void)
{
    handover_t *self = memory_zero (1, sizeof (*self));
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->changed, NULL);
    self->fd = wakeup_new ();
    if (self->fd < 0)
        handover_free (&self);
    return self;
}

void handover_free (handover_t **self_p)
{
    handover_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    fifo_free (&self->waiting);
    fifo_free (&self->done);
    if (self->fd >= 0)
        close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

void handover_submit (handover_t *self, void *job)
{
    pthread_mutex_lock (&self->lock);
    fifo_push (&self->waiting, job);
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

size_t handover_waiting (handover_t *self)
{
    pthread_mutex_lock (&self->lock);
    size_t count = self->waiting.count;
    pthread_mutex_unlock (&self->lock);
    return count;
}

void *handover_next (handover_t *self)
{
    pthread_mutex_lock (&self->lock);
    while (self->waiting.count == 0 && !self->stop)
        pthread_cond_wait (&self->changed, &self->lock);
    void *job = self->stop ? NULL : fifo_pop (&self->waiting);
    pthread_mutex_unlock (&self->lock);
    return job;
}

void handover_finish (handover_t *self, void *job)
{
    pthread_mutex_lock (&self->lock);
    if (self->done.count == 0)
        wakeup_raise (self->fd);
    fifo_push (&self->done, job);
    pthread_mutex_unlock (&self->lock);
}

void *handover_done (handover_t *self)
{
    pthread_mutex_lock (&self->lock);
    void *job = fifo_pop (&self->done);
    if (job != NULL && self->done.count == 0)
        wakeup_lower (self->fd);
    pthread_mutex_unlock (&self->lock);
    return job;
}

int handover_fd (const handover_t *self)
{
    return self->fd;
}

void handover_stop (handover_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}
