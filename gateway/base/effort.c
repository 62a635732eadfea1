/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/effort.h"

#include <time.h>

#include "timestamp.h"

static int64_t began_us;

void effort_begin (void)
{
    began_us = clock_us (CLOCK_THREAD_CPUTIME_ID);
}

uint64_t effort_take (void)
{
    const int64_t before_us = began_us;
    effort_begin ();
    return began_us > before_us ? (uint64_t) (began_us - before_us) : 0;
}
