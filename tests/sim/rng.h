/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reproducible chance (splitmix64): the same seed gives the same run on every machine. */
#ifndef TASKMQ_SIM_RNG_H
#define TASKMQ_SIM_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng_t;

static inline uint64_t rng_next (rng_t *self)
{
    uint64_t z = (self->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0..n-1; 0 for n = 0. */
static inline uint32_t rng_below (rng_t *self, uint32_t n)
{
    return n == 0 ? 0 : (uint32_t) (rng_next (self) % n);
}

/* low..high, both included. */
static inline int64_t rng_between (rng_t *self, int64_t low, int64_t high)
{
    return low + (int64_t) (rng_next (self) % (uint64_t) (high - low + 1));
}

/* True in per_mille of 1,000 cases. */
static inline bool rng_chance (rng_t *self, uint32_t per_mille)
{
    return rng_below (self, 1000) < per_mille;
}

static inline void rng_fill (rng_t *self, void *bytes, size_t length)
{
    uint8_t *out = bytes;
    for (size_t i = 0; i < length; i++) {
        out[i] = (uint8_t) rng_next (self);
    }
}

#endif
