/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "parts/part.h"

void core_part_init (core_part_t *self, tmq_op_t op, bool notify, void *user)
{
    self->notify = notify;
    self->ready.embedded = true;
    self->ready.completion.op = op;
    self->ready.completion.user = user;
}

void core_parts_add (core_parts_t *all, core_part_t *self, void *owner)
{
    self->owner = owner;
    self->next = all->first;
    if (self->next != NULL)
        self->next->previous = self;
    all->first = self;
}

void core_parts_remove (core_parts_t *all, core_part_t *self)
{
    core_part_t **at = &all->woken;
    while (*at != NULL && *at != self)
        at = &(*at)->next_woken;
    if (*at != NULL)
        *at = self->next_woken;
    if (self->previous != NULL)
        self->previous->next = self->next;
    else
        all->first = self->next;
    if (self->next != NULL)
        self->next->previous = self->previous;
    core_answers_withdraw (all->answers, &self->ready);
}

void core_parts_wake (core_parts_t *all, core_part_t *self)
{
    if (!self->woken) {
        self->woken = true;
        self->next_woken = all->woken;
        all->woken = self;
    }
    if (self->notify && !self->ready.queued) {
        self->ready.queued = true;
        core_answers_push (all->answers, &self->ready);
    }
}

bool core_parts_woken (core_parts_t *all, void **owner)
{
    core_part_t *self = all->woken;
    if (self == NULL)
        return false;
    all->woken = self->next_woken;
    self->woken = false;
    *owner = self->owner;
    return true;
}
