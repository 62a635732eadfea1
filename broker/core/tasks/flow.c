/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/flow.h"

#include <stdlib.h>

#include "core/base/memory.h"

flow_t *flow_new (struct task *task, uint32_t attempt)
{
    flow_t *self = memory_zero (1, sizeof (*self));
    self->task = task;
    self->attempt = attempt;
    return self;
}

void flow_begin (flow_t *self, uint32_t attempt)
{
    self->attempt = attempt;
    for (size_t i = 0; i < FLOW_STREAMS; i++)
        self->end[i] = 0;
}

void flow_free (flow_t *self)
{
    if (self == NULL)
        return;
    list_remove (&self->flowed);
    free (self);
}
