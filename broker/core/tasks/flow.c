/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/flow.h"

#include <stdlib.h>

#include "core/base/memory.h"

/* A new attempt begins two new streams; the rate is the task's. */
flow_t *flow_of (task_t *task)
{
    flow_t *self = task->detail->flow;
    if (self == NULL) {
        self = task->detail->flow = memory_zero (1, sizeof (*self));
        self->task = task;
    }
    if (self->attempt != task->attempt) {
        self->attempt = task->attempt;
        self->end[0] = self->end[1] = 0;
    }
    return self;
}

void flow_free (flow_t *self)
{
    if (self == NULL)
        return;
    list_remove (&self->flowed);
    free (self);
}
