/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A way to the broker without a broker: it notes what was started, and the test completes it. */
#ifndef TASKMQ_TESTS_FAKE_LINK_H
#define TASKMQ_TESTS_FAKE_LINK_H

#include "link/link.h"

typedef struct fake_link {
    const char *started; /* "submit"; NULL: nothing is under way */
    int refusal;         /* what starting gives */
    uint64_t forgotten;
    link_call_t call;
    /* Of the last submit. */
    char queue[80];
    char dedup_key[300];
    char principal[80]; /* the value of the last label */
    char payload[400];
    uint64_t ttl_ms;
} fake_link_t;

extern fake_link_t fake_link;

/* Completes what is under way. */
void fake_link_complete (tmq_completion_t *completion);

#endif
