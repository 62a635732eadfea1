/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/bar.h"

#include <stddef.h>

void bar_lift (bar_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->is_lifted = true;
    pthread_cond_broadcast (&self->lifted);
    pthread_mutex_unlock (&self->lock);
}

void bar_wait (bar_t *self)
{
    if (self == NULL)
        return;
    pthread_mutex_lock (&self->lock);
    while (!self->is_lifted)
        pthread_cond_wait (&self->lifted, &self->lock);
    pthread_mutex_unlock (&self->lock);
}
