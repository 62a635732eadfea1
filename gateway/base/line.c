/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/line.h"

/* Puts one into the line itself, behind `previous`; NULL: in front. */
static void stand (line_t *line, turn_t *self, turn_t *previous)
{
    self->ahead = NULL;
    self->previous = previous;
    self->next = previous != NULL ? previous->next : line->first;
    *(self->next != NULL ? &self->next->previous : &line->last) = self;
    *(previous != NULL ? &previous->next : &line->first) = self;
}

static void take_out (turn_t *self)
{
    line_t *line = self->line;
    *(self->next != NULL ? &self->next->previous : &line->last) = self->previous;
    *(self->previous != NULL ? &self->previous->next : &line->first) = self->next;
}

/* Whoever stands behind it takes its place in the line, or the last one when it had its turn. */
static void leave (turn_t *self, bool had)
{
    line_t *line = self->line;
    turn_t *heir = self->behind;
    turn_t *place = self->previous;
    if (self->ahead != NULL) {
        self->ahead->behind = heir;
        if (heir != NULL)
            heir->ahead = self->ahead;
    } else {
        take_out (self);
        if (heir != NULL)
            stand (line, heir, had ? line->last : place);
    }
    self->next = self->previous = self->behind = self->ahead = NULL;
}

static void wait_for_it (turn_t *self)
{
    line_t *line = self->line;
    turn_t *at = line->first;
    self->state = TURN_WAITS;
    self->behind = NULL;
    while (at != NULL && at->owner != self->owner)
        at = at->next;
    if (at == NULL) {
        stand (line, self, line->last);
        return;
    }
    while (at->behind != NULL)
        at = at->behind;
    at->behind = self;
    self->ahead = at;
    self->next = self->previous = NULL;
}

static void have (turn_t *self)
{
    self->state = TURN_HAD;
    self->line->taken++;
    self->fn (self->context);
}

void turn_take (turn_t *self, line_t *line, const void *owner, turn_fn *fn, void *context)
{
    self->line = line;
    self->owner = owner;
    self->fn = fn;
    self->context = context;
    if (line->taken < line->most) {
        have (self);
        return;
    }
    wait_for_it (self);
}

void turn_give (turn_t *self)
{
    line_t *line = self->line;
    const turn_state_t state = self->state;
    self->state = TURN_NONE;
    if (state == TURN_WAITS)
        leave (self, false);
    if (state != TURN_HAD)
        return;
    line->taken--;
    turn_t *next = line->first;
    if (next == NULL)
        return;
    leave (next, true);
    have (next);
}
