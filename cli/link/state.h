/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The state of the connection while a command goes on for long: a line when the broker goes away,
 * and one when it is back. */
#ifndef TASKCTL_STATE_H
#define TASKCTL_STATE_H

#include "line/app.h"

typedef struct link_state {
    const app_t *app;
    const char *meanwhile; /* what happens without a broker, for people */
    uint64_t lost_at_ms;   /* on the clock that never jumps; 0: the broker is there */
    uint64_t lost_wall_ms; /* the same for people */
    int refused;           /* the code by which the broker wants no more of us; 0: it does */
} link_state_t;

/* Takes a completion: true if it was one about the connection. */
bool link_state_take (link_state_t *self, const tmq_completion_t *completion);
/* "connected", or since when there is no broker. */
const char *link_state_text (char out[40], const link_state_t *self);

#endif
