/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker says of leases that it holds. */
#ifndef TASKMQ_CORE_REPORT_H
#define TASKMQ_CORE_REPORT_H

#include "core/requests/requests.h"

/* The state of a listed or renewed lease; one that is held gets a fresh term. *out: its task, or
 * NULL when it is not held. */
tmq_code_t report_refresh (requests_t *self, link_t *link, const worker_t *worker,
                           const Taskmq__Lease *lease, task_t **out);
/* The task that a report is about, which stands in working or input_required; NULL when it was
 * answered: another attempt took over, or the task was cancelled meanwhile. */
task_t *report_begin (call_t *call, const Taskmq__Lease *lease);
/* Number of the newest answer to a question that the holder has not taken; 0: none. task may be
 * NULL. */
uint32_t report_news (const requests_t *self, const task_t *task);
/* The lease was given to the link's principal: beside its secret that is what a report needs.
 * Without a policy the secret is enough. */
bool report_is_of (const link_t *link, const char *holder);
/* … and it may still work in the task's queue; answers when not. task: leased. */
bool report_is_denied (call_t *call, const task_t *task);
/* How old the stored sign of life of a lease may become before a renewal leaves another one. */
int64_t report_mark_ms (const engine_config_t *config);
/* The worker has begun with it. */
void report_started (requests_t *self, task_t *task);

#endif
