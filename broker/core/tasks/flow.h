/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the log of an attempt goes on: how far it is, and how fast it may grow. Made with the first
 * piece, so a task without a log has none. */
#ifndef TASKMQ_CORE_FLOW_H
#define TASKMQ_CORE_FLOW_H

#include <stdint.h>

#include "core/base/bucket.h"
#include "core/base/list.h"

enum { FLOW_STREAMS = 2 };

typedef struct flow {
    struct task *task;
    node_t flowed; /* in the list of those that went on */
    uint32_t attempt;
    bucket_t rate;              /* of bytes, both streams together */
    uint64_t end[FLOW_STREAMS]; /* where each ends; TMQ_LOG_OUT first */
} flow_t;

flow_t *flow_new (struct task *task, uint32_t attempt);
/* A new attempt begins two new streams; the rate is the task's. */
void flow_begin (flow_t *self, uint32_t attempt);
void flow_free (flow_t *self); /* accepts NULL */

#endif
