/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Buckets. */
#include "core/base/bucket.h"

enum { MS_NS = 1000000, BURST_MAX = 1000000000 };

static const int64_t SECOND_NS = 1000000000;

/* How far a burst is paid ahead. */
static int64_t most_ns (int64_t each_ns, uint64_t burst)
{
    int64_t most = 0;
    int64_t many = (int64_t) (burst < BURST_MAX ? burst : BURST_MAX);
    return __builtin_mul_overflow (each_ns, many, &most) ? INT64_MAX / 4 : most;
}

/* What is paid ahead when one more is taken, beyond what may be; 0 or less: it may be taken. */
static int64_t lacks_ns (const bucket_t *self, int64_t each_ns, uint64_t burst, int64_t now_ns)
{
    int64_t paid_ns = self->paid_ns > now_ns ? self->paid_ns : now_ns;
    return paid_ns + each_ns - now_ns - most_ns (each_ns, burst);
}

static int64_t each_of (uint64_t rate)
{
    return rate >= (uint64_t) SECOND_NS ? 1 : SECOND_NS / (int64_t) rate;
}

int64_t bucket_wait_ms (const bucket_t *self, int64_t each_ns, uint64_t burst, int64_t mono_ms)
{
    int64_t lacks = lacks_ns (self, each_ns, burst, mono_ms * MS_NS);
    return lacks <= 0 ? 0 : (lacks + MS_NS - 1) / MS_NS;
}

int64_t bucket_take_each (bucket_t *self, int64_t each_ns, uint64_t burst, int64_t mono_ms)
{
    int64_t now_ns = mono_ms * MS_NS;
    int64_t wait_ms = bucket_wait_ms (self, each_ns, burst, mono_ms);
    if (wait_ms == 0)
        self->paid_ns = (self->paid_ns > now_ns ? self->paid_ns : now_ns) + each_ns;
    return wait_ms;
}

int64_t bucket_take_some (bucket_t *self, uint64_t count, int64_t each_ns, uint64_t burst,
                          int64_t mono_ms)
{
    int64_t wait_ms = bucket_take_each (self, each_ns, burst, mono_ms);
    if (wait_ms == 0)
        self->paid_ns += (int64_t) (count - 1) * each_ns;
    return wait_ms;
}

int64_t bucket_take (bucket_t *self, uint64_t rate, uint64_t burst, int64_t mono_ms)
{
    return bucket_take_each (self, each_of (rate), burst, mono_ms);
}

void bucket_fit (bucket_t *self, uint64_t rate, uint64_t burst, int64_t mono_ms)
{
    int64_t full_ns = mono_ms * MS_NS + most_ns (each_of (rate), burst);
    if (self->paid_ns > full_ns)
        self->paid_ns = full_ns;
}

bool bucket_is_full (const bucket_t *self, int64_t mono_ms)
{
    return self->paid_ns <= mono_ms * MS_NS;
}
