/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/line.h"

static void leave (turn_t *self)
{
    line_t *line = self->line;
    *(self->next != NULL ? &self->next->previous : &line->last) = self->previous;
    *(self->previous != NULL ? &self->previous->next : &line->first) = self->next;
    self->next = NULL;
    self->previous = NULL;
}

static void have (turn_t *self)
{
    self->state = TURN_HAD;
    self->line->taken++;
    self->fn (self->context);
}

void turn_take (turn_t *self, line_t *line, turn_fn *fn, void *context)
{
    self->line = line;
    self->fn = fn;
    self->context = context;
    if (line->taken < line->most) {
        have (self);
        return;
    }
    self->state = TURN_WAITS;
    self->next = NULL;
    self->previous = line->last;
    *(line->last != NULL ? &line->last->next : &line->first) = self;
    line->last = self;
}

void turn_give (turn_t *self)
{
    line_t *line = self->line;
    const turn_state_t state = self->state;
    self->state = TURN_NONE;
    if (state == TURN_WAITS)
        leave (self);
    if (state != TURN_HAD)
        return;
    line->taken--;
    turn_t *next = line->first;
    if (next == NULL)
        return;
    leave (next);
    have (next);
}
