/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What tells a repeat: the request ids of the newest changes of a task, in its Extra. */
#ifndef TASKMQ_CORE_MARKS_H
#define TASKMQ_CORE_MARKS_H

#include "core/reads/find.h"
#include "core/requests/requests.h"

enum { MARKS_KEPT = 8 }; /* of each kind; the oldest is forgotten */

typedef enum mark { MARK_REVIVED, MARK_SET, MARK_ADOPTED, MARK_ANSWERED } mark_t;

/* The request has changed this task already. */
bool mark_is_repeat (const call_t *call, const found_t *found, mark_t mark);
/* It changes the task; whoever calls has the task written. */
void mark_keep (call_t *call, task_t *task, mark_t mark);

#endif
