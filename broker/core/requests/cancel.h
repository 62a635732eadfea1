/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The end of a task by somebody who does not want it any more. */
#ifndef TASKMQ_CORE_CANCEL_H
#define TASKMQ_CORE_CANCEL_H

#include "core/requests/requests.h"
#include "core/tasks/change.h"

/* A task that has not ended; its worker is told. cause->message may be empty, not NULL. */
void cancel_task (requests_t *self, task_t *task, const cause_t *cause);
/* Tells a worker to stop. code: 0 when the task was cancelled, which it is to acknowledge; else the
 * error with which the attempt ended already. */
void cancel_tell (requests_t *self, const worker_t *worker, const tmq_id_t *id, uint32_t attempt,
                  const char *message, int32_t code);

#endif
