/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who works here, out of messages. */
#ifndef TASKMQ_CLIENT_ROSTER_H
#define TASKMQ_CLIENT_ROSTER_H

#include "base/answers.h"
#include "taskmq.pb-c.h"

/* The reply has a WorkerPage or a WorkerInfo. NULL when memory is exhausted. */
tmq_worker_list_t *core_workers_record (const Taskmq__Reply *reply);

#endif
