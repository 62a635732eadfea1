/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Holds threads back that have time: those that follow the events begin when a start has read what
 * it needs, for they would read the same database beside it. */
#ifndef TASKMQ_STORE_BAR_H
#define TASKMQ_STORE_BAR_H

#include <pthread.h>
#include <stdbool.h>

typedef struct bar {
    pthread_mutex_t lock;
    pthread_cond_t lifted;
    bool is_lifted;
} bar_t;
#define BAR_INIT                                                                                   \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false                                 \
    }

void bar_lift (bar_t *self); /* for good */
void bar_wait (bar_t *self); /* until it is lifted; NULL is no bar */

#endif
