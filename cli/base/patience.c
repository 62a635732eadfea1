/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/patience.h"

#include <time.h>

#include "base/clock.h"

bool patience_waits (patience_t *self, const tmq_error_t *error, uint32_t timeout_ms)
{
    if (error->code != TMQ_LIMIT || error->retry_after_ms == 0)
        return false;
    const uint64_t now = mono_ms ();
    if (!self->until_ms)
        self->until_ms = now + timeout_ms;
    if (now + error->retry_after_ms > self->until_ms)
        return false;
    nanosleep (&(struct timespec){(time_t) (error->retry_after_ms / 1000),
                                  (long) (error->retry_after_ms % 1000) * 1000000},
               NULL);
    return true;
}
