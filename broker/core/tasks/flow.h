/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the log of an attempt goes on: how far it is, and how fast it may grow. Made with the first
 * piece, so a task without a log has none. */
#ifndef TASKMQ_CORE_FLOW_H
#define TASKMQ_CORE_FLOW_H

#include "core/base/bucket.h"
#include "core/tasks/task.h"

enum { FLOW_STREAMS = 2 };

typedef struct flow {
    task_t *task;
    node_t flowed; /* in the list of those that went on */
    uint32_t attempt;
    bucket_t rate;              /* of bytes, both streams together */
    uint64_t end[FLOW_STREAMS]; /* where each ends; TMQ_LOG_OUT first */
} flow_t;

/* Of the present attempt. The task has a detail. */
flow_t *flow_of (task_t *task);
void flow_free (flow_t *self); /* accepts NULL */

#endif
