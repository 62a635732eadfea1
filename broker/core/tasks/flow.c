/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/flow.h"

#include <stdlib.h>

#include "core/base/memory.h"

flow_t *flow_at (flow_t **place, struct task *task, uint32_t attempt)
{
    if (*place == NULL) {
        *place = memory_zero (1, sizeof (**place));
        (*place)->task = task;
    }
    flow_t *self = *place;
    for (size_t i = 0; self->attempt != attempt && i < FLOW_STREAMS; i++)
        self->end[i] = 0;
    self->attempt = attempt;
    return self;
}

void flow_free (flow_t *self)
{
    if (self == NULL)
        return;
    list_remove (&self->flowed);
    free (self);
}
