/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How often something may happen. Time is brought by the caller. */
#ifndef TASKMQ_GATEWAY_AUTH_RATE_H
#define TASKMQ_GATEWAY_AUTH_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* A bucket of `burst` permits that fills by `rate` in a second. All zero: full. */
typedef struct rate {
    int64_t at_us;
    double used;
} rate_t;

/* Takes a permit; false: there is none. *left is what remains, *wait_ms when the next one comes. */
bool rate_take (rate_t *self, uint64_t rate, uint64_t burst, int64_t now_us, uint64_t *left,
                uint64_t *wait_ms);

/* Takes what something has cost (below 0: gives back), which may be more than there is. */
void rate_spend (rate_t *self, uint64_t rate, double cost, int64_t now_us);
/* When no more is taken than there is; 0: now. */
uint64_t rate_debt_ms (const rate_t *self, uint64_t rate, uint64_t burst, int64_t now_us);

/* Addresses that brought wrong tokens. */
enum { FAILURE_PEER_SIZE = 64, FAILURES_SIZE = 1024 };
typedef struct failure {
    char peer[FAILURE_PEER_SIZE];
    uint64_t count;
    int64_t until_ms; /* refused until then */
} failure_t;
typedef struct failures {
    failure_t places[FAILURES_SIZE];
} failures_t;

/* How long this address is to wait; 0: not at all. */
int64_t failures_wait_ms (failures_t *self, const char *peer, int64_t now_ms);
void failures_add (failures_t *self, const char *peer, uint64_t max, uint64_t pause_ms,
                   int64_t now_ms);
void failures_clear (failures_t *self, const char *peer);

#endif
