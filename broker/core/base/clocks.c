/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The two clocks (S20). */
#include "core/base/clocks.h"

static clocks_step_t note (clocks_t *self, clocks_step_t news, int64_t ms)
{
    self->news = news;
    self->news_ms = ms;
    return news;
}

/* The wall clock says wall_ms, passed_ms of the monotonic clock later. */
static clocks_step_t step (clocks_t *self, int64_t wall_ms, int64_t passed_ms)
{
    int64_t step_ms = wall_ms - self->wall_ms;
    if (!clocks_are_held (self))
        self->leap_ms = 0;
    if (step_ms < -CLOCKS_LEAP_MS) {
        self->wall_ms = wall_ms;
        self->leap_ms = 0;
        self->hold_until_ms = self->mono_ms;
        return note (self, CLOCKS_BACK, -step_ms);
    }
    if (step_ms <= 0)
        return CLOCKS_STEADY;
    self->wall_ms = wall_ms;
    int64_t leap_ms = step_ms - (passed_ms > 0 ? passed_ms : 0);
    if (leap_ms > CLOCKS_LEAP_MS) {
        self->leap_ms += leap_ms;
        self->hold_until_ms = self->mono_ms + CLOCKS_HOLD_MS;
        return note (self, CLOCKS_LEAPT, leap_ms);
    }
    return leap_ms > CLOCKS_NOTICED_MS ? CLOCKS_MOVED : CLOCKS_STEADY;
}

clocks_step_t clocks_boot (clocks_t *self, int64_t newest_ms, now_t now)
{
    self->mono_ms = self->heard_ms = now.mono_ms;
    if (self->wall_ms == 0)
        self->wall_ms = newest_ms;
    if (self->wall_ms == 0)
        self->wall_ms = now.wall_ms;
    return step (self, now.wall_ms, 0);
}

clocks_step_t clocks_advance (clocks_t *self, now_t now)
{
    int64_t passed_ms = now.mono_ms - self->mono_ms;
    if (passed_ms > 0)
        self->mono_ms = now.mono_ms;
    return step (self, now.wall_ms, passed_ms);
}

int64_t clocks_wall_ms (const clocks_t *self, int64_t at_least_ms)
{
    return self->wall_ms > at_least_ms ? self->wall_ms : at_least_ms;
}

int64_t clocks_awake_ms (const clocks_t *self)
{
    return self->mono_ms - self->paused_ms;
}

int64_t clocks_awake_due_ms (const clocks_t *self, int64_t awake_ms)
{
    return awake_ms + self->paused_ms;
}

int64_t clocks_look_again_ms (const clocks_t *self, int64_t due_ms)
{
    int64_t later_ms = self->mono_ms + CLOCKS_HEARD_MS;
    return due_ms > later_ms ? due_ms : later_ms;
}

int64_t clocks_expiry_ms (const clocks_t *self)
{
    return self->wall_ms - self->leap_ms;
}

bool clocks_are_held (const clocks_t *self)
{
    return self->mono_ms < self->hold_until_ms;
}
