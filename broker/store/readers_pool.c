/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reader threads behind two queues. A read that fails comes back with its error; the asker
 * decides what follows. */
#include "store/readers_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/fifo.h"
#include "core/base/memory.h"
#include "store/wakeup.h"

typedef struct reader_thread {
    readers_pool_t *pool;
    store_reader_t *reader;
    pthread_t thread;
    bool running;
} reader_thread_t;

struct readers_pool {
    int fd;
    reader_thread_t *workers;
    size_t workers_count;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    fifo_t waiting; /* reads, the asker's, who frees them */
    fifo_t done;
    bool stop;
};

static void *worker_run (void *context)
{
    reader_thread_t *worker = context;
    readers_pool_t *self = worker->pool;
    pthread_setname_np (pthread_self (), "reader");
    pthread_mutex_lock (&self->lock);
    while (true) {
        while (self->waiting.count == 0 && !self->stop)
            pthread_cond_wait (&self->changed, &self->lock);
        if (self->stop)
            break;
        read_t *read = fifo_pop (&self->waiting);
        pthread_mutex_unlock (&self->lock);
        (void) store_reader_run (worker->reader, read); /* the read carries its error */
        pthread_mutex_lock (&self->lock);
        if (self->done.count == 0)
            wakeup_raise (self->fd);
        fifo_push (&self->done, read);
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

void readers_pool_submit (readers_pool_t *self, read_t *read)
{
    pthread_mutex_lock (&self->lock);
    fifo_push (&self->waiting, read);
    pthread_cond_signal (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

int readers_pool_fd (const readers_pool_t *self)
{
    return self->fd;
}

read_t *readers_pool_done (readers_pool_t *self)
{
    pthread_mutex_lock (&self->lock);
    read_t *read = fifo_pop (&self->done);
    if (read != NULL && self->done.count == 0)
        wakeup_lower (self->fd);
    pthread_mutex_unlock (&self->lock);
    return read;
}

static store_code_t workers_start (readers_pool_t *self, store_t *store, store_error_t *error)
{
    for (size_t i = 0; i < self->workers_count; i++) {
        reader_thread_t *worker = &self->workers[i];
        worker->pool = self;
        store_code_t code = store_reader_open (&worker->reader, store, error);
        if (code != STORE_OK)
            return code;
        if (pthread_create (&worker->thread, NULL, worker_run, worker) != 0) {
            error->code = STORE_ERROR_IO;
            snprintf (error->text, sizeof (error->text), "a reader thread cannot be started");
            return error->code;
        }
        worker->running = true;
    }
    return STORE_OK;
}

store_code_t readers_pool_new (readers_pool_t **out, store_t *store, size_t threads,
                               store_error_t *error)
{
    readers_pool_t *self = memory_zero (1, sizeof (*self));
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->changed, NULL);
    self->workers = memory_zero (threads, sizeof (*self->workers));
    self->workers_count = threads;
    self->fd = wakeup_new ();
    store_code_t code;
    if (self->fd < 0) {
        code = error->code = STORE_ERROR_IO;
        snprintf (error->text, sizeof (error->text), "no descriptor is left for the readers");
    } else {
        code = workers_start (self, store, error);
    }
    if (code == STORE_OK)
        *out = self;
    else
        readers_pool_free (&self);
    return code;
}

void readers_pool_free (readers_pool_t **self_p)
{
    readers_pool_t *self = *self_p;
    if (self == NULL)
        return;
    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->stop = true;
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
    for (size_t i = 0; i < self->workers_count; i++) {
        if (self->workers[i].running)
            pthread_join (self->workers[i].thread, NULL);
        if (self->workers[i].reader != NULL)
            store_reader_close (&self->workers[i].reader);
    }
    fifo_free (&self->waiting);
    fifo_free (&self->done);
    free (self->workers);
    if (self->fd >= 0)
        close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
