/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Changes of tasks by name: retry, resume, set, purge, adopt. */
#ifndef TASKMQ_CORE_AGAIN_H
#define TASKMQ_CORE_AGAIN_H

#include "core/reads/find.h"
#include "core/requests/requests.h"

/* The task of what was found, in memory: one that has ended may have to come back. */
task_t *again_task (requests_t *self, found_t *found);

#endif
