/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What was just written back, kept for whoever follows the events (READ_EXPORT): it reads the tasks
 * as they came instead of finding each of them in the tables again, which costs four times as much.
 *
 * Nothing rests on it: what a follower does not find here, because it lags, is in the tables. */
#ifndef TASKMQ_STORE_FEED_H
#define TASKMQ_STORE_FEED_H

#include <pthread.h>

#include "core/lookup.h"
#include "store/dirty.h"

/* Any thread may call any function. */
typedef struct feed {
    pthread_mutex_t lock;   /* guards what follows */
    struct feed_set *first; /* rising positions, oldest first */
    struct feed_set *last;
    size_t bytes;
    bool followed; /* somebody has read: before that nothing is kept */
} feed_t;

void feed_init (feed_t *self);
void feed_destroy (feed_t *self);
/* Takes one write-back, whose rows reads can see by now; *dirty becomes empty. */
void feed_put (feed_t *self, dirty_t *dirty);
/* Answers a READ_EXPORT with the write-back that its after_pos falls into or is followed by; false:
 * it is not here, read the tables. The items' records may lack bodies, which earlier write-backs
 * had. */
bool feed_take (feed_t *self, read_t *read);

#endif
