/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/rate.h"

#include <stdio.h>
#include <string.h>

static double used_now (const rate_t *self, uint64_t rate, int64_t now_us)
{
    const double refilled = (double) (now_us - self->at_us) * (double) rate / 1e6;
    return self->used > refilled ? self->used - refilled : 0;
}

void rate_spend (rate_t *self, uint64_t rate, double cost, int64_t now_us)
{
    const double used = used_now (self, rate, now_us) + cost;
    self->used = used > 0 ? used : 0;
    self->at_us = now_us;
}

uint64_t rate_debt_ms (const rate_t *self, uint64_t rate, uint64_t burst, int64_t now_us)
{
    const double debt = used_now (self, rate, now_us) - (double) burst;
    return debt > 0 ? (uint64_t) (debt * 1000 / (double) rate) + 1 : 0;
}

bool rate_take (rate_t *self, uint64_t rate, uint64_t burst, int64_t now_us, uint64_t *left,
                uint64_t *wait_ms)
{
    self->used = used_now (self, rate, now_us);
    self->at_us = now_us;
    const bool good = self->used + 1 <= (double) burst;
    if (good)
        self->used += 1;
    const double rest = (double) burst - self->used;
    *left = rest > 0 ? (uint64_t) rest : 0;
    *wait_ms = rest >= 1 ? 0 : (uint64_t) ((1 - rest) * 1000 / (double) rate) + 1;
    return good;
}

/* Addresses that fall into one place share it: a few are made to wait for another's fault, and none
 * escapes by having many. */
static failure_t *place_of (failures_t *self, const char *peer)
{
    uint32_t hash = 2166136261U;
    for (const char *at = peer; *at != '\0'; at++)
        hash = (hash ^ (uint8_t) *at) * 16777619U;
    return &self->places[hash % FAILURES_SIZE];
}

int64_t failures_wait_ms (failures_t *self, const char *peer, int64_t now_ms)
{
    const failure_t *place = place_of (self, peer);
    return place->until_ms > now_ms ? place->until_ms - now_ms : 0;
}

void failures_add (failures_t *self, const char *peer, uint64_t max, uint64_t pause_ms,
                   int64_t now_ms)
{
    failure_t *place = place_of (self, peer);
    snprintf (place->peer, sizeof place->peer, "%s", peer);
    if (++place->count < max)
        return;
    place->count = 0;
    place->until_ms = now_ms + (int64_t) pause_ms;
}

void failures_clear (failures_t *self, const char *peer)
{
    failure_t *place = place_of (self, peer);
    if (strcmp (place->peer, peer) == 0)
        memset (place, 0, sizeof *place);
}
