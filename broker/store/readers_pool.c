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

#include "core/base/memory.h"
#include "store/wakeup.h"

typedef struct job {
    struct job *next;
    read_t *read;
} job_t;

typedef struct queue {
    job_t *first;
    job_t *last;
} queue_t;

typedef struct worker {
    readers_pool_t *pool;
    store_reader_t *reader;
    pthread_t thread;
    bool running;
} worker_t;

struct readers_pool {
    int fd;
    worker_t *workers;
    size_t workers_count;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    queue_t waiting;
    queue_t done;
    bool stop;
};

static void queue_push (queue_t *queue, job_t *job)
{
    job->next = NULL;
    if (queue->last == NULL)
        queue->first = job;
    else
        queue->last->next = job;
    queue->last = job;
}

static job_t *queue_pop (queue_t *queue)
{
    job_t *job = queue->first;
    if (job != NULL) {
        queue->first = job->next;
        if (queue->first == NULL)
            queue->last = NULL;
    }
    return job;
}

/* The reads are the asker's, who frees them. */
static void queue_clear (queue_t *queue)
{
    for (job_t *job = queue_pop (queue); job != NULL; job = queue_pop (queue))
        free (job);
}

static void *worker_run (void *context)
{
    worker_t *worker = context;
    readers_pool_t *self = worker->pool;
    pthread_setname_np (pthread_self (), "reader");
    pthread_mutex_lock (&self->lock);
    while (true) {
        while (self->waiting.first == NULL && !self->stop)
            pthread_cond_wait (&self->changed, &self->lock);
        if (self->stop)
            break;
        job_t *job = queue_pop (&self->waiting);
        pthread_mutex_unlock (&self->lock);
        (void) store_reader_run (worker->reader, job->read); /* the read carries its error */
        pthread_mutex_lock (&self->lock);
        if (self->done.first == NULL)
            wakeup_raise (self->fd);
        queue_push (&self->done, job);
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

void readers_pool_submit (readers_pool_t *self, read_t *read)
{
    job_t *job = memory_alloc (sizeof (*job));
    job->read = read;
    pthread_mutex_lock (&self->lock);
    queue_push (&self->waiting, job);
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
    job_t *job = queue_pop (&self->done);
    if (job != NULL && self->done.first == NULL)
        wakeup_lower (self->fd);
    pthread_mutex_unlock (&self->lock);
    if (job == NULL)
        return NULL;
    read_t *read = job->read;
    free (job);
    return read;
}

static store_code_t workers_start (readers_pool_t *self, store_t *store, store_error_t *error)
{
    for (size_t i = 0; i < self->workers_count; i++) {
        worker_t *worker = &self->workers[i];
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
    queue_clear (&self->waiting);
    queue_clear (&self->done);
    free (self->workers);
    if (self->fd >= 0)
        close (self->fd);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
    free (self);
}
