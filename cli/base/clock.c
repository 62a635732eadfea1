/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/clock.h"

#include <time.h>

static uint64_t clock_ms (clockid_t clock)
{
    struct timespec now;
    clock_gettime (clock, &now);
    return (uint64_t) now.tv_sec * 1000 + (uint64_t) now.tv_nsec / 1000000;
}

uint64_t wall_ms (void)
{
    return clock_ms (CLOCK_REALTIME);
}

uint64_t mono_ms (void)
{
    return clock_ms (CLOCK_MONOTONIC);
}
