/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A limit that the configuration may change while threads go by it. */
#ifndef TASKMQ_CORE_SHARED_LIMIT_H
#define TASKMQ_CORE_SHARED_LIMIT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef _Atomic uint64_t shared_limit_t;

/* Any thread. NULL: 0. */
static inline uint64_t shared_limit (shared_limit_t *self)
{
    return self == NULL ? 0 : atomic_load (self);
}

#endif
