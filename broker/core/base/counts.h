/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Counters of `stats`. */
#ifndef TASKMQ_CORE_COUNTS_H
#define TASKMQ_CORE_COUNTS_H

#include <stdint.h>

#include "counters.h"

typedef struct counts {
#define X(name, meaning, bad) uint64_t name;
    ENGINE_COUNTER_MAP (X)
#undef X
} counts_t;

/* A number of the server or the store, shown by `stats` after the engine's. */
typedef struct counter {
    const char *name;
    uint64_t value;
} counter_t;

#endif
