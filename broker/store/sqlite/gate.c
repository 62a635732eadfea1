/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/sqlite/gate.h"

#include <assert.h>

void gate_init (gate_t *self)
{
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->changed, NULL);
    self->readers = 0;
    self->forgets = 0;
    atomic_init (&self->closed, false);
}

void gate_destroy (gate_t *self)
{
    assert (self->readers == 0);
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->lock);
}

void gate_enter (gate_t *self)
{
    pthread_mutex_lock (&self->lock);
    while (atomic_load_explicit (&self->closed, memory_order_relaxed))
        pthread_cond_wait (&self->changed, &self->lock);
    self->readers++;
    pthread_mutex_unlock (&self->lock);
}

void gate_leave (gate_t *self)
{
    pthread_mutex_lock (&self->lock);
    assert (self->readers > 0);
    self->readers--;
    if (self->readers == 0)
        pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}

bool gate_is_closed (gate_t *self)
{
    return atomic_load_explicit (&self->closed, memory_order_relaxed);
}

void gate_close (gate_t *self)
{
    pthread_mutex_lock (&self->lock);
    atomic_store_explicit (&self->closed, true, memory_order_relaxed);
    while (self->readers > 0)
        pthread_cond_wait (&self->changed, &self->lock);
    pthread_mutex_unlock (&self->lock);
}

void gate_open (gate_t *self)
{
    pthread_mutex_lock (&self->lock);
    atomic_store_explicit (&self->closed, false, memory_order_relaxed);
    pthread_cond_broadcast (&self->changed);
    pthread_mutex_unlock (&self->lock);
}
