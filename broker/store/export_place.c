/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/export_place.h"

static void leave_block (export_place_t *self)
{
    buf_drop (self->list);
    self->list = NULL;
    number_map_clear (&self->superseded);
}

void export_place_clear (export_place_t *self)
{
    leave_block (self);
    self->next_pos = 0;
}

void export_place_begin (export_place_t *self, uint64_t after_pos)
{
    self->gap = false;
    if (self->next_pos == after_pos + 1)
        return;
    export_place_clear (self);
    self->next_pos = after_pos + 1;
}

/* Saves looking for the rows of events that another event of the block follows. */
static void mark_superseded (export_place_t *self)
{
    event_walk_t walk = self->events;
    packed_event_t event;
    while (event_walk_next (&walk, &event))
        if (event.previous_seq >= self->first_seq)
            number_map_put (&self->superseded, event.previous_seq, NULL);
}

void export_place_enter (export_place_t *self, int64_t ns, uint64_t first_seq, uint64_t first_pos,
                         uint64_t count, const void *list, size_t list_bytes)
{
    self->ns = ns;
    self->first_seq = first_seq;
    self->first_pos = first_pos;
    self->gap = self->gap || first_pos > self->next_pos;
    self->end_pos = first_pos + count;
    self->list = buf_new (list, list_bytes);
    self->events = event_walk (buf_bytes (self->list), buf_length (self->list));
    mark_superseded (self);
}

static export_step_t end_block (export_place_t *self)
{
    bool damaged = self->events.damaged;
    leave_block (self);
    self->next_pos = self->end_pos;
    return damaged ? EXPORT_DAMAGED : EXPORT_LEFT;
}

export_step_t export_place_next (export_place_t *self, packed_event_t *out, uint64_t *pos)
{
    if (!event_walk_next (&self->events, out))
        return end_block (self);
    *pos = self->first_pos + (out->seq - self->first_seq);
    if (*pos < self->next_pos)
        return EXPORT_PASSED;
    self->next_pos = *pos + 1;
    bool passed = out->task_id == NULL || number_map_get (&self->superseded, out->seq) != NULL;
    return passed ? EXPORT_PASSED : EXPORT_EVENT;
}
