/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/seats.h"

#include <stddef.h>

void seat_take (seat_t *self, seats_t *seats, account_t *account, seat_fn *fn, void *context)
{
    self->seats = seats;
    self->account = account_retain (account);
    self->fn = fn;
    self->context = context;
    self->next = NULL;
    self->previous = seats->last;
    *(seats->last != NULL ? &seats->last->next : &seats->first) = self;
    seats->last = self;
    seats->count++;
    account->held[seats->hold]++;
}

void seat_leave (seat_t *self)
{
    seats_t *seats = self->seats;
    if (seats == NULL)
        return;
    *(self->previous != NULL ? &self->previous->next : &seats->first) = self->next;
    *(self->next != NULL ? &self->next->previous : &seats->last) = self->previous;
    seats->count--;
    self->account->held[seats->hold]--;
    account_release (self->account);
    *self = (seat_t){.seats = NULL};
}

seat_t *seats_find (const seats_t *self, hold_t by, const account_t *account, uint64_t more)
{
    seat_t *found = NULL;
    uint64_t most = account->held[by] + more;
    for (seat_t *at = self->first; at != NULL; at = at->next)
        if (!at->stays && at->account != account && at->account->held[by] > most) {
            found = at;
            most = at->account->held[by];
        }
    return found;
}

uint64_t seats_room (const seats_t *self, hold_t by, const account_t *account, uint64_t more)
{
    uint64_t room = 0;
    for (const seat_t *at = self->first; at != NULL; at = at->next)
        at->account->kept = at->account->held[by];
    for (const seat_t *at = self->first; at != NULL; at = at->next)
        if (!at->stays && at->account != account && at->account->kept > account->held[by] + more) {
            at->account->kept -= at->holds;
            room += at->holds;
        }
    return room;
}

bool seats_make_room (seats_t *self, hold_t by, const account_t *account, uint64_t more,
                      const char *why)
{
    const uint64_t before = self->count;
    const seat_t *found = seats_find (self, by, account, more);
    if (found == NULL)
        return false;
    found->fn (found->context, why);
    if (self->count >= before)
        return false;
    self->displaced++;
    return true;
}
