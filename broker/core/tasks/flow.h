/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the log of an attempt goes on: how far it is, and how fast it and the turns may grow. Made
 * with the first piece or turn, so a task without them has none. */
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
    bucket_t turns;             /* … of turns, … */
    bucket_t artifacts;         /* … of artifacts */
    uint64_t end[FLOW_STREAMS]; /* where each ends; TMQ_LOG_OUT first */
} flow_t;

/* The one that stands there, made when there is none. A new attempt begins two new streams; the
 * rates are the task's. */
flow_t *flow_at (flow_t **place, struct task *task, uint32_t attempt);
void flow_free (flow_t *self); /* accepts NULL */

#endif
