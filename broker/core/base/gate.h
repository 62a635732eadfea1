/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What stands between a ready task and somebody who could take it. A gate is closed for any number
 * of reasons, each of which begins and ends alone; it is open when there is none. Who changes one
 * looks at what waits behind it. */
#ifndef TASKMQ_CORE_GATE_H
#define TASKMQ_CORE_GATE_H

#include <stdbool.h>

typedef enum gate_why {
    GATE_SILENT = 1 << 0,  /* heartbeats were missed */
    GATE_SUSPECT = 1 << 1, /* a lease ran out unreported */
    GATE_STALLED = 1 << 2, /* the transport refused a message */
    GATE_GONE = 1 << 3,    /* the connection is said to have ended */
    GATE_LOST = 1 << 4,    /* an answer could not leave: only a new hello helps */

    GATE_PAUSED = 1 << 5, /* by an operator */
    GATE_CAP = 1 << 6,    /* as many are running as may */
    GATE_RATE = 1 << 7,   /* as many have begun as may by now */
    GATE_DRAINED = 1 << 8 /* of a worker: somebody wants it to end */
} gate_why_t;

/* What ends as soon as the peer is heard. */
enum { GATE_UNHEARD = GATE_SILENT | GATE_SUSPECT | GATE_STALLED | GATE_GONE };

typedef struct gate {
    unsigned why; /* zeroed memory is an open gate */
} gate_t;

static inline bool gate_is_open (const gate_t *self)
{
    return self->why == 0;
}

/* Some of these reasons hold. */
static inline bool gate_is_closed (const gate_t *self, unsigned why)
{
    return (self->why & why) != 0;
}

static inline void gate_close (gate_t *self, unsigned why)
{
    self->why |= why;
}

/* These reasons are over; others may hold. */
static inline void gate_open (gate_t *self, unsigned why)
{
    self->why &= ~why;
}

#endif
