/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The machine's clocks as numbers: CLOCK_MONOTONIC for lengths of time, CLOCK_REALTIME for dates,
 * since 1970 UTC. Any thread. Never called where time is an argument, as in the broker's core. */
#ifndef TASKMQ_PROTO_TIMESTAMP_H
#define TASKMQ_PROTO_TIMESTAMP_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_us (clockid_t clock)
{
    struct timespec now;
    clock_gettime (clock, &now);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static inline int64_t clock_ms (clockid_t clock)
{
    return clock_us (clock) / 1000;
}

#endif
