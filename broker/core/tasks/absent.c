/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ids that need no look-up: a boundary in time and a Bloom filter of two generations. */
#include "core/tasks/absent.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "ids.h"

enum { LINE_BITS = 512 }; /* 64 bytes */

/* Where the n-th probe of an id looks: all in the same line of the cache, because a probe costs
 * what it costs to fetch its line. */
static uint32_t bit_of (uint32_t hash, unsigned probe)
{
    uint32_t line = hash % (GONE_BITS / LINE_BITS);
    uint64_t places = hash * UINT64_C (0x9e3779b97f4a7c15);
    return line * LINE_BITS + (uint32_t) (places >> (55 - 9 * probe)) % LINE_BITS;
}

static bool has (const left_id_t *gone, uint32_t hash)
{
    if (gone->count == 0)
        return false;
    for (unsigned probe = 0; probe < GONE_PROBES; probe++) {
        uint32_t bit = bit_of (hash, probe);
        if ((gone->bits[bit / 64] & UINT64_C (1) << (bit % 64)) == 0)
            return false;
    }
    return true;
}

void absent_boot (absent_t *self, int64_t newest_id_ms)
{
    if (newest_id_ms == 0)
        newest_id_ms = INT64_MAX;
    if (self->boundary_ms < newest_id_ms)
        self->boundary_ms = newest_id_ms;
    if (self->boundary_ms < self->accepted_ms)
        self->boundary_ms = self->accepted_ms;
}

void absent_free (absent_t *self)
{
    free (self->newer.bits);
    free (self->older.bits);
}

bool absent_surely (const absent_t *self, uint32_t hash, const tmq_id_t *id)
{
    return id_time_ms (id) > self->boundary_ms && !has (&self->newer, hash) &&
           !has (&self->older, hash);
}

void absent_accepted (absent_t *self, const tmq_id_t *id)
{
    int64_t made_ms = id_time_ms (id);
    if (made_ms > self->accepted_ms)
        self->accepted_ms = made_ms;
}

static void next_generation (absent_t *self)
{
    left_id_t oldest = self->older;
    if (self->boundary_ms < oldest.newest_ms)
        self->boundary_ms = oldest.newest_ms;
    self->older = self->newer;
    self->newer = (left_id_t){.bits = oldest.bits};
    if (oldest.bits != NULL)
        memset (oldest.bits, 0, GONE_BITS / 8);
}

void absent_left (absent_t *self, uint32_t hash, const tmq_id_t *id)
{
    if (self->newer.count == GONE_IDS_MAX)
        next_generation (self);
    left_id_t *gone = &self->newer;
    if (gone->bits == NULL)
        gone->bits = memory_zero (GONE_BITS / 64, sizeof (*gone->bits));
    for (unsigned probe = 0; probe < GONE_PROBES; probe++) {
        uint32_t bit = bit_of (hash, probe);
        gone->bits[bit / 64] |= UINT64_C (1) << (bit % 64);
    }
    gone->count++;
    int64_t made_ms = id_time_ms (id);
    if (made_ms > gone->newest_ms)
        gone->newest_ms = made_ms;
}
