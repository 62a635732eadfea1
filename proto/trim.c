/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Failure: without /proc nothing is known, and nothing is trimmed. */
#include "trim.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOK_MS = 1000 };

static uint64_t resident_bytes (void)
{
    unsigned long pages = 0;
    FILE *file = fopen ("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf (file, "%*u %lu", &pages) != 1)
        pages = 0;
    fclose (file);
    return (uint64_t) pages * (uint64_t) sysconf (_SC_PAGESIZE);
}

bool trim_is_due (trim_t *self, int64_t mono_ms, uint64_t resident)
{
    bool grows = resident > self->resident_bytes;
    self->resident_bytes = resident;
    if (resident < TRIM_BYTES_MIN || grows || mono_ms < self->next_at)
        return false;
    self->next_at = mono_ms + TRIM_MS_MIN;
    return true;
}

void trim_sometimes (trim_t *self, int64_t mono_ms)
{
    if (mono_ms < self->look_at)
        return;
    self->look_at = mono_ms + LOOK_MS;
    if (trim_is_due (self, mono_ms, resident_bytes ()))
        malloc_trim (0);
}
