/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/pace.h"

enum { BUSY_MS = 1000 };

bool pace_others_work (pace_t *self, uint64_t written, int64_t now_ms)
{
    if (written != self->written)
        self->busy_until = now_ms + BUSY_MS;
    self->written = written;
    return now_ms < self->busy_until;
}

void pace_lags (pace_t *self, bool more, int64_t now_ms)
{
    if (!more)
        self->lags_since = 0;
    else if (self->lags_since == 0)
        self->lags_since = now_ms;
}

int64_t pace_rest_ms (const pace_t *self, int64_t worked_us, int64_t now_ms)
{
    bool late = self->lags_since != 0 && now_ms - self->lags_since > self->late_ms;
    int64_t rest_ms = worked_us * (late ? self->share_late : self->share) / 1000;
    return rest_ms < self->rest_ms_max ? rest_ms : self->rest_ms_max;
}
