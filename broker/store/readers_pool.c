/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reader threads behind a handover. A read that fails comes back with its error; the asker
 * decides what follows. */
#include "store/readers_pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "store/handover.h"

typedef struct reader_thread {
    readers_pool_t *pool;
    store_reader_t *reader;
    pthread_t thread;
    bool running;
} reader_thread_t;

struct readers_pool {
    handover_t *handover; /* of reads, the asker's, who frees them */
    reader_thread_t *workers;
    size_t workers_count;
};

static void *worker_run (void *context)
{
    reader_thread_t *worker = context;
    handover_t *handover = worker->pool->handover;
    read_t *read;
    pthread_setname_np (pthread_self (), "reader");
    while ((read = handover_next (handover)) != NULL) {
        (void) store_reader_run (worker->reader, read); /* the read carries its error */
        handover_finish (handover, read);
    }
    return NULL;
}

void readers_pool_submit (readers_pool_t *self, read_t *read)
{
    handover_submit (self->handover, read);
}

int readers_pool_fd (const readers_pool_t *self)
{
    return handover_fd (self->handover);
}

read_t *readers_pool_done (readers_pool_t *self)
{
    return handover_done (self->handover);
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
    self->workers = memory_zero (threads, sizeof (*self->workers));
    self->workers_count = threads;
    self->handover = handover_new ();
    store_code_t code;
    if (self->handover == NULL) {
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
    if (self->handover != NULL)
        handover_stop (self->handover);
    for (size_t i = 0; i < self->workers_count; i++) {
        if (self->workers[i].running)
            pthread_join (self->workers[i].thread, NULL);
        if (self->workers[i].reader != NULL)
            store_reader_close (&self->workers[i].reader);
    }
    free (self->workers);
    handover_free (&self->handover);
    free (self);
}
