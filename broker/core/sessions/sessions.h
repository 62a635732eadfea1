/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tasks of a session, or of a namespace, share. */
#ifndef TASKMQ_CORE_SESSIONS_H
#define TASKMQ_CORE_SESSIONS_H

#include "core/reads/reads.h"
#include "core/tasks/session.h"

typedef struct sessions {
    base_t *base;
    tasks_t *tasks;
    reads_t *reads;
    session_t *emptied; /* whose values and items go now (leaving.c); NULL: of none */
    unsigned emptying;  /* … of this kind, by its number in leaving.c */
    bool reading;       /* a page of them is being read */
    buf_t *after;       /* … behind this key; NULL: from the first */
    uint64_t need;      /* … once this batch is written */
} sessions_t;

void sessions_init (sessions_t *self, base_t *base, tasks_t *tasks, reads_t *reads);
void sessions_reset (sessions_t *self);

#endif
