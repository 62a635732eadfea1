/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/base/beats.h"

#include "core/base/planted.h"

void beats_init (beats_t *self, int64_t lease_ms)
{
    *self = (beats_t){.lease_ms = lease_ms, .valid_until = INT64_MIN};
}

int64_t beats_every_ms (const beats_t *self)
{
    return self->lease_ms / BEATS_IN_LEASE;
}

void beats_acknowledged (beats_t *self, int64_t sent_ms)
{
    int64_t until = sent_ms + self->lease_ms - self->lease_ms / BEATS_MARGIN_PART;
    if (until > self->valid_until)
        self->valid_until = until;
}

void beat_watch_init (beat_watch_t *self, int64_t lease_ms)
{
    *self = (beat_watch_t){.lease_ms = lease_ms};
}

bool beat_watch_saw (beat_watch_t *self, uint64_t epoch, uint64_t beat, int64_t now_ms)
{
    if (!self->sees || self->epoch != epoch || self->beat != beat) {
        self->sees = true;
        self->epoch = epoch;
        self->beat = beat;
        self->since_ms = now_ms;
    }
    return now_ms - self->since_ms >= self->lease_ms;
}

int64_t beat_watch_pause_ms (const beat_watch_t *self, int64_t usual_ms, int64_t now_ms)
{
    int64_t left_ms = self->since_ms + self->lease_ms - now_ms;
    return self->sees && left_ms > 0 && left_ms < usual_ms ? left_ms : usual_ms;
}

void beat_watch_missed (beat_watch_t *self)
{
    self->sees = self->sees && self->planted_bug == ENGINE_BUG_MISS_IS_SILENCE;
}
