/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Of what all connections share, what one holder takes. A principal is one, and all who brought no
 * good token are another one together: so nobody takes what is for the others.
 *
 * It only counts; who charges it knows its bound. It lives as long as somebody refers to it, for
 * an answer may still be owed to somebody whose token has gone. */
#ifndef TASKMQ_GATEWAY_BASE_ACCOUNT_H
#define TASKMQ_GATEWAY_BASE_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "base/line.h"

/* What is counted, beside memory. */
typedef enum hold {
    HOLD_CONNECTIONS,
    HOLD_UPLOADS, /* payloads under way, … */
    HOLD_SPOOLED, /* … and their bytes on the disk */
    HOLD_STREAMS,
    HOLD_FILTERS,  /* that streams of events have */
    HOLD_CATCHING, /* streams of events that catch up */
    HOLD_POLLS,    /* long polls of many tasks, … */
    HOLD_WAITED,   /* … and the tasks that they wait for */
    HOLD_ENDED,    /* sessions of MCP that were ended, … */
    HOLD_LEVELS,   /* … and those that asked for a log */
    HOLD_CANCELS   /* that are kept for a broker that is away */
} hold_t;
enum { HOLDS = HOLD_CANCELS + 1 };

typedef struct account {
    uint64_t bytes; /* of memory */
    uint64_t held[HOLDS];
    uint64_t kept; /* while it is reckoned what would become free: what it would keep of it */
    line_t begins; /* of uploads: one of them at a time asks the broker for its place */
    size_t references;
} account_t;

/* NULL when memory is exhausted. */
account_t *account_new (void);
account_t *account_retain (account_t *self);
void account_release (account_t *self); /* accepts NULL */

#endif
