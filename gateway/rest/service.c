/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/service.h"

#include <string.h>

#include "base/trees.h"
#include "timestamp.h"

enum { OTHERS_US = 1000000 /* so long somebody counts as asking, too */ };

bool service_has_room (const service_t *self)
{
    const uint64_t held = self->connections != NULL ? self->connections->memory_bytes : 0;
    return held + trees_bytes () <= self->settings.numbers[SETTING_MEMORY_BYTES_MAX];
}

link_t *service_link (const service_t *self, const char *ns)
{
    for (size_t i = 0; i < self->links_count; i++)
        if (strcmp (link_ns (self->links[i]), ns) == 0)
            return self->links[i];
    return NULL;
}

void service_note (service_t *self, const principal_t *principal)
{
    const uint64_t who = (uint64_t) (uintptr_t) principal;
    if (self->asked_last != 0 && self->asked_last != who)
        self->others_us = clock_us (CLOCK_MONOTONIC);
    self->asked_last = who;
}

/* us in a second. */
static uint64_t time_of (const service_t *self)
{
    return self->settings.numbers[SETTING_PRINCIPAL_TIME] * 1000;
}

void service_spend (const service_t *self, principal_t *principal, double us)
{
    rate_spend (&principal->time, time_of (self), us, clock_us (CLOCK_MONOTONIC));
}

uint64_t service_wait_ms (const service_t *self, const principal_t *principal)
{
    const int64_t now_us = clock_us (CLOCK_MONOTONIC);
    if (self->others_us == 0 || now_us - self->others_us > OTHERS_US)
        return 0;
    return rate_debt_ms (&principal->time, time_of (self), time_of (self) / 2, now_us);
}

service_t *service_of (const exchange_t *exchange)
{
    return exchange->service;
}
