/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The two clocks (S27). */
#include "core/base/clocks.h"

void clocks_boot (clocks_t *self, int64_t newest_ms, now_t now)
{
    self->mono_ms = self->heard_ms = now.mono_ms;
    if (self->wall_ms < newest_ms)
        self->wall_ms = newest_ms;
    self->away_ms = now.wall_ms - self->wall_ms;
    if (self->wall_ms < now.wall_ms)
        self->wall_ms = now.wall_ms;
}

clocks_step_t clocks_advance (clocks_t *self, now_t now)
{
    int64_t mono_step_ms = now.mono_ms - self->mono_ms;
    int64_t wall_step_ms = now.wall_ms > self->wall_ms ? now.wall_ms - self->wall_ms : 0;
    if (mono_step_ms > 0)
        self->mono_ms = now.mono_ms;
    self->wall_ms += wall_step_ms;
    if (!clocks_are_held (self))
        self->leap_ms = 0;
    int64_t leap_ms = wall_step_ms - (mono_step_ms > 0 ? mono_step_ms : 0);
    if (leap_ms > CLOCKS_LEAP_MS) {
        self->leap_ms += leap_ms;
        self->hold_until_ms = self->mono_ms + CLOCKS_HOLD_MS;
        return CLOCKS_LEAPT;
    }
    return leap_ms > CLOCKS_NOTICED_MS ? CLOCKS_MOVED : CLOCKS_STEADY;
}

int64_t clocks_expiry_ms (const clocks_t *self)
{
    return self->wall_ms - self->leap_ms;
}

bool clocks_are_held (const clocks_t *self)
{
    return self->mono_ms < self->hold_until_ms;
}
