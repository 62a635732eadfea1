/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What taskctl knows about the broker's counters. */
#ifndef TASKCTL_EXPLAIN_H
#define TASKCTL_EXPLAIN_H

typedef enum counter_kind {
    COUNTER_UNKNOWN, /* a newer broker may count what this taskctl has never heard of */
    COUNTER_TOTAL,   /* since the start of the broker */
    COUNTER_GAUGE    /* what there is at the moment */
} counter_kind_t;

typedef struct explanation {
    const char *name;
    const char *meaning;
    const char *bad; /* "": no value is bad by itself */
    counter_kind_t kind;
} explanation_t;

/* Never NULL. */
const explanation_t *explain (const char *name);

#endif
