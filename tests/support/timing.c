/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "support/timing.h"

#include <errno.h>
#include <time.h>

int64_t timing_ms (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void timing_pause (uint32_t ms)
{
    struct timespec rest = {ms / 1000, (long) (ms % 1000) * 1000000};
    while (nanosleep (&rest, &rest) < 0 && errno == EINTR) {
    }
}
