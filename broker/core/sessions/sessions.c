/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/sessions/sessions.h"

void sessions_init (sessions_t *self, base_t *base, tasks_t *tasks, reads_t *reads)
{
    *self = (sessions_t){.base = base, .tasks = tasks, .reads = reads};
}

void sessions_reset (sessions_t *self)
{
    buf_drop (self->after);
    sessions_init (self, self->base, self->tasks, self->reads);
}
