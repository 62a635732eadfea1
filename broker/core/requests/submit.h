/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that are accepted otherwise than by a submit. */
#ifndef TASKMQ_CORE_SUBMIT_H
#define TASKMQ_CORE_SUBMIT_H

#include "core/requests/requests.h"
#include "core/tasks/schedule.h"

/* The task of an instant, in the name of the schedule's owner, whose rights and quotas were judged.
 * NULL, and why: the broker has no room for it now. */
task_t *submit_scheduled (requests_t *self, const schedule_t *schedule, const tmq_id_t *id,
                          char *why, size_t why_size);

#endif
