/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/effort.h"

#include <time.h>

#include "timestamp.h"

enum {
    CROWDED = 4 /* so much longer than it computes a thread counts as taking, where others run */
};

static int64_t began_us;
static int64_t computed_us;

void effort_begin (void)
{
    began_us = clock_us (CLOCK_MONOTONIC);
    computed_us = clock_us (CLOCK_THREAD_CPUTIME_ID);
}

uint64_t effort_take (void)
{
    const int64_t began_before_us = began_us;
    const int64_t computed_before_us = computed_us;
    effort_begin ();
    const int64_t took_us = began_us - began_before_us;
    const int64_t most_us = CROWDED * (computed_us - computed_before_us);
    const int64_t us = took_us < most_us ? took_us : most_us;
    return us > 0 ? (uint64_t) us : 0;
}
