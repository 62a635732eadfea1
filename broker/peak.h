/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The largest value of the last minute, or of a little more: of this half of a minute and the two
 * before it. Nothing is kept but one number for each. */
#ifndef TASKMQ_BROKER_PEAK_H
#define TASKMQ_BROKER_PEAK_H

#include <stdint.h>

enum { PEAK_PART_MS = 30 * 1000, PEAK_PARTS = 3 };

/* All zero at first. Values are not negative; time is that of a clock that only rises. */
typedef struct peak {
    int64_t part; /* number of the newest part of time */
    int64_t most[PEAK_PARTS];
} peak_t;

void peak_add (peak_t *self, int64_t mono_ms, int64_t value);
/* 0: none. */
int64_t peak_get (const peak_t *self, int64_t mono_ms);

#endif
