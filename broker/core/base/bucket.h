/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A token bucket: so many at once, and so many in a second. */
#ifndef TASKMQ_CORE_BUCKET_H
#define TASKMQ_CORE_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory is a full one. */
typedef struct bucket {
    int64_t paid_ns; /* mono: each token moves it by the time that one takes to come */
} bucket_t;

/* Takes a token, or says in how many ms the next one comes. 0: it is taken. rate: a second, at
 * least 1. burst: at least 1. */
int64_t bucket_take (bucket_t *self, uint64_t rate, uint64_t burst, int64_t mono_ms);
/* … of which one comes each each_ns (at least 1, at most a day). */
int64_t bucket_take_each (bucket_t *self, int64_t each_ns, uint64_t burst, int64_t mono_ms);
/* … of which `count` are taken at once, also when one is there and the others are owed. */
int64_t bucket_take_some (bucket_t *self, uint64_t count, int64_t each_ns, uint64_t burst,
                          int64_t mono_ms);
/* In how many ms one can be taken; 0: now. */
int64_t bucket_wait_ms (const bucket_t *self, int64_t each_ns, uint64_t burst, int64_t mono_ms);
/* The rate or the burst is another one from now on: what was taken at the old one counts as one
 * burst of the new one at most. */
void bucket_fit (bucket_t *self, uint64_t rate, uint64_t burst, int64_t mono_ms);
/* Nothing is missing: it is as a new one. */
bool bucket_is_full (const bucket_t *self, int64_t mono_ms);

#endif
