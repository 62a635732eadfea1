/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How a follower of the tables leaves the processor to the work. While batches are written back it
 * rests many times as long as it worked, and fewer times once it has lagged for long. Batches are
 * written back some times a second: so a look between two of them sees none, and what counts is
 * whether there was one within BUSY_MS. Pure: times are arguments. One thread. */
#ifndef TASKMQ_STORE_PACE_H
#define TASKMQ_STORE_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pace {
    int64_t share;      /* it rests so many times as long as it worked while others work, … */
    int64_t share_late; /* … or so many times when it has lagged for late_ms */
    int64_t late_ms;
    int64_t rest_ms_max;
    uint64_t written;   /* batch, at the last look … */
    int64_t busy_until; /* … and until when that counts as much going on */
    int64_t lags_since; /* 0: it does not */
} pace_t;

/* written: the newest batch that stands in the tables (store_written); now_ms: monotonic, as in
 * all that follow. The first look takes a batch that was there before for news. */
bool pace_others_work (pace_t *self, uint64_t written, int64_t now_ms);

/* After a page. more: another one follows, so it lags. */
void pace_lags (pace_t *self, bool more, int64_t now_ms);

/* How long to rest after so much work, in ms. */
int64_t pace_rest_ms (const pace_t *self, int64_t worked_us, int64_t now_ms);

#endif
