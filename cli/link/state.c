/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "link/state.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/exit.h"
#include "screen/output.h"
#include "screen/show.h"
#include "units.h"

static void lose (link_state_t *self, const tmq_completion_t *completion)
{
    if (self->lost_at_ms)
        return;
    self->lost_at_ms = mono_ms ();
    self->lost_wall_ms = wall_ms ();
    note (self->app, "taskctl: the broker is gone; %s", self->meanwhile);
    if (completion->error)
        detail (self->app, "%s", completion->error->text);
}

static void regain (link_state_t *self)
{
    char away[UNITS_TEXT_SIZE];
    if (!self->lost_at_ms)
        return;
    const uint64_t ms = mono_ms () - self->lost_at_ms;
    duration_format (away, (int64_t) (ms < 1000 ? ms : ms - ms % 1000));
    note (self->app, "taskctl: the broker is back after %s", away);
    self->lost_at_ms = 0;
}

bool link_state_take (link_state_t *self, const tmq_completion_t *completion)
{
    if (completion->op != TMQ_OP_LINK)
        return false;
    switch (completion->link) {
    case TMQ_LINK_UP:
    case TMQ_LINK_BACK: regain (self); break;
    case TMQ_LINK_LOST: lose (self, completion); break;
    case TMQ_LINK_REFUSED:
        self->refused = completion->code;
        if (completion->error)
            library_error (self->app, completion->error, NULL);
        break;
    }
    return true;
}

const char *link_state_text (char out[40], const link_state_t *self)
{
    char clock[CLOCK_TEXT_SIZE];
    if (self->lost_at_ms)
        snprintf (out, 40, "no broker since %s", clock_text (clock, self->lost_wall_ms));
    else
        snprintf (out, 40, "connected");
    return out;
}
