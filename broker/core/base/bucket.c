/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Buckets. */
#include "core/base/bucket.h"

enum { SECOND_US = 1000000, MS_US = 1000, BURST_MAX = 1000000000 };

int64_t bucket_take (bucket_t *self, uint64_t rate, uint64_t burst, int64_t mono_ms)
{
    int64_t now_us = mono_ms * MS_US;
    int64_t each_us = rate >= SECOND_US ? 1 : SECOND_US / (int64_t) rate;
    int64_t most_us = each_us * (int64_t) (burst < BURST_MAX ? burst : BURST_MAX);
    int64_t paid_us = self->paid_us > now_us ? self->paid_us : now_us;
    int64_t ahead_us = paid_us + each_us - now_us;
    if (ahead_us > most_us)
        return (ahead_us - most_us + MS_US - 1) / MS_US;
    self->paid_us = paid_us + each_us;
    return 0;
}

bool bucket_is_full (const bucket_t *self, int64_t mono_ms)
{
    return self->paid_us <= mono_ms * MS_US;
}
