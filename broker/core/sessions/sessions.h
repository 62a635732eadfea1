/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tasks of a session, or of a namespace, share. */
#ifndef TASKMQ_CORE_SESSIONS_H
#define TASKMQ_CORE_SESSIONS_H

#include "core/tasks/tasks.h"

typedef struct sessions {
    base_t *base;
    tasks_t *tasks;
} sessions_t;

void sessions_init (sessions_t *self, base_t *base, tasks_t *tasks);

#endif
