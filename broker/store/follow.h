/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What was just written back, kept for whoever follows the events (READ_EXPORT): it reads the tasks
 * as they came instead of finding each of them in the tables again, which costs four times as much.
 *
 * Nothing rests on it: what a follower does not find here, because it lags, is in the tables. */
#ifndef TASKMQ_STORE_FOLLOW_H
#define TASKMQ_STORE_FOLLOW_H

#include <pthread.h>

#include "core/data/lookup.h"
#include "store/dirty.h"

/* Any thread may call any function. */
typedef struct followed {
    pthread_mutex_t lock;       /* guards what follows */
    struct followed_set *first; /* rising positions, oldest first */
    struct followed_set *last;
    size_t bytes;
    bool followed; /* somebody has read: before that nothing is kept */
} followed_t;

void follow_init (followed_t *self);
void follow_destroy (followed_t *self);
/* Takes one write-back, whose rows reads can see by now; *dirty becomes empty. */
void follow_put (followed_t *self, dirty_t *dirty);
/* Answers a READ_EXPORT with the write-back that its after_pos falls into or is followed by; false:
 * it is not here, read the tables. *lacks: records of some items lack bodies, which earlier
 * write-backs had. */
bool follow_take (followed_t *self, read_t *read, bool *lacks);

#endif
