/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A start that waits for a database may be told to stop at any moment, also inside a call that does
 * not come back: libpq looks up names, a server stands still. Nothing is acknowledged then, so the
 * process may end where it is. So may one that reads its state again, and one that only closes the
 * store: what was acknowledged is in its journal. */
#ifndef TASKMQ_START_STOP_H
#define TASKMQ_START_STOP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "exits.h"

enum { START_STOP_MS = 1000 /* for the start to notice it by itself */ };

typedef struct start_stop {
    const char *text; /* of the log, when it ends there; NULL: it is a start */
    bool told;        /* the signal came before */
    int64_t ms;       /* in place of START_STOP_MS; 0: that */
    exits_t code;     /* it ends with: 0, as asked, or what had failed before */
    pthread_t thread;
    int end_fd;
    bool runs;
} start_stop_t;

/* Begins to watch: when SIGTERM or SIGINT, which are blocked, is pending for so long, the
 * process ends with the code. False: no thread or descriptor. One that watches already goes
 * on. */
bool start_stop_begin (start_stop_t *self);
/* From now on somebody else hears them. Also of one that did not begin; zeroed memory is such. */
void start_stop_end (start_stop_t *self);

#endif
