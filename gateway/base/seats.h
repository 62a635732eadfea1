/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Seats that all holders share, such as those of streams: so many for all.
 *
 * A bound for each holder does not keep a few of them from taking all. So when all seats are taken,
 * somebody who has fewer of them gets one of whoever has the most: the one that he took first.
 * Nobody gives way to somebody who would then have as much as he had, so two of them never push
 * each other out in turn. One thread. */
#ifndef TASKMQ_GATEWAY_BASE_SEATS_H
#define TASKMQ_GATEWAY_BASE_SEATS_H

#include <stdbool.h>

#include "base/account.h"

typedef struct seat seat_t;
/* It has to go, and leaves its seat before this returns. why: a sentence for its client. */
typedef void seat_fn (void *context, const char *why);

/* All zero, but for what it counts: nobody sits. */
typedef struct seats {
    hold_t hold; /* that a seat is one of */
    uint64_t count;
    uint64_t displaced; /* that had to give way, ever */
    seat_t *first;      /* the one that was taken first */
    seat_t *last;
} seats_t;

/* Lies in what sits on it; all zero: on none. */
struct seat {
    seats_t *seats;
    seat_t *next;
    seat_t *previous;
    account_t *account;
    uint64_t holds; /* of what else its account holds by it, such as bytes; 0: nothing */
    bool stays;     /* it gives way to nobody */
    seat_fn *fn;
    void *context;
};

void seat_take (seat_t *self, seats_t *seats, account_t *account, seat_fn *fn, void *context);
/* Nothing happens to one that is not taken. */
void seat_leave (seat_t *self);

/* Whose turn it is to go, for an account that is to hold so much more of `by`; NULL: nobody's. */
seat_t *seats_find (const seats_t *self, hold_t by, const account_t *account, uint64_t more);
/* What all of them would free whose turn it would be, one after the other, of what their seats
 * hold: is it too little, none of them goes in vain. */
uint64_t seats_room (const seats_t *self, hold_t by, const account_t *account, uint64_t more);
/* Lets that one go. False: there is none. */
bool seats_make_room (seats_t *self, hold_t by, const account_t *account, uint64_t more,
                      const char *why);

#endif
