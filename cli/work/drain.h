/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* --drain of a worker: looks at its queues until nothing is left there that it could do. */
#ifndef TASKCTL_DRAIN_H
#define TASKCTL_DRAIN_H

#include "line/app.h"

typedef struct drain {
    app_t *app;
    bool on;             /* --drain */
    bool by_stats;       /* the broker's numbers are asked, not the tasks */
    bool counting;       /* a count is on its way */
    bool counting_left;  /* another one, for the bar */
    uint64_t left;       /* queued, by the newest of these */
    uint64_t left_at_ms; /* when the next of these is due */
    uint64_t look_at_ms; /* … and of the others */
    unsigned empty_seen; /* how many counts in a row were 0 while nothing came */
    unsigned unfit_seen; /* … or of tasks that others have to do */
} drain_t;

/* Asks what is due. busy: tasks run here, or wait to. */
void drain_look (drain_t *self, bool busy);
uint64_t drain_wakes_ms (const drain_t *self, bool busy); /* UINT64_MAX: an answer does */

bool drain_is_answer (const tmq_completion_t *answer);
/* True: nothing is left to do here. */
bool drain_take (drain_t *self, const tmq_completion_t *answer, bool busy);

#endif
