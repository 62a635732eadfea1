/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "peak.h"

void peak_add (peak_t *self, int64_t mono_ms, int64_t value)
{
    int64_t part = mono_ms / PEAK_PART_MS;
    if (part - self->part >= PEAK_PARTS)
        self->part = part - PEAK_PARTS;
    while (self->part < part)
        self->most[++self->part % PEAK_PARTS] = 0;
    int64_t *most = &self->most[part % PEAK_PARTS];
    *most = value > *most ? value : *most;
}

int64_t peak_get (const peak_t *self, int64_t mono_ms)
{
    int64_t most = 0;
    int64_t part = mono_ms / PEAK_PART_MS;
    for (int64_t i = self->part; i > part - PEAK_PARTS && i > self->part - PEAK_PARTS && i >= 0;
         i--)
        most = self->most[i % PEAK_PARTS] > most ? self->most[i % PEAK_PARTS] : most;
    return most;
}
