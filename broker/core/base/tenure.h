/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a broker may do while its store is out of reach, and once somebody else may own it (A100,
 * A101).
 *
 * Pure: the store's words and the time are arguments, all in ms of one monotonic clock. Whoever
 * drives the engine asks it once a round, and before each output. */
#ifndef TASKMQ_CORE_TENURE_H
#define TASKMQ_CORE_TENURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tenure {
    unsigned planted_bug;
    int64_t patience_ms;    /* a store that is away for no longer is waited for as a slow one is */
    int64_t valid_until;    /* as the store said last; INT64_MAX: for ever */
    bool away;              /* nothing is read, and nothing new is taken */
    bool shut;              /* nobody is told anything, and no deadline is judged */
    int64_t away_since;     /* … of either */
    int64_t unjudged_since; /* 0: deadlines are judged */
} tenure_t;

/* What a look changed. */
typedef enum tenure_news {
    TENURE_SAME,
    TENURE_AWAY, /* the store is out of reach … */
    TENURE_BACK  /* … and may be used again */
} tenure_news_t;

void tenure_init (tenure_t *self, int64_t patience_ms, unsigned planted_bug);
/* away_ms, valid_until: as store_away_ms and store_valid_until say. */
tenure_news_t tenure_look (tenure_t *self, int64_t now_ms, int64_t away_ms, int64_t valid_until);
/* Before the first output of a round: the monotonic clock stands while the machine sleeps, and only
 * the store counts that. */
void tenure_hear (tenure_t *self, int64_t valid_until);
/* A read found the store out of reach: true if that is news. */
bool tenure_missed (tenure_t *self, int64_t now_ms);
/* What is computed by now may leave. Without a lease the clock need not be asked. */
bool tenure_has_end (const tenure_t *self);
bool tenure_may_tell (const tenure_t *self, int64_t now_ms);
/* Deadlines may be judged at now_ms. *stood_ms: for how long they were not, before, which counts
 * as a pause (A20). */
bool tenure_may_judge (tenure_t *self, int64_t now_ms, int64_t *stood_ms);
/* Of the lease; 0: it is over, or has none. */
int64_t tenure_left_ms (const tenure_t *self, int64_t now_ms);

#endif
