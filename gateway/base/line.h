/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A line of those who want a turn, of which so many are had at a time. Owners have theirs one after
 * the other, and of one owner who came first is next: so nobody waits for all that another one
 * wants.
 *
 * A turn lies in what wants it, and is zero before. One thread. */
#ifndef TASKMQ_GATEWAY_BASE_LINE_H
#define TASKMQ_GATEWAY_BASE_LINE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct turn turn_t;
typedef void turn_fn (void *context);

typedef struct line {
    size_t most;   /* turns that are had at a time */
    size_t taken;  /* … now */
    turn_t *first; /* of each owner that waits, its first one */
    turn_t *last;
} line_t;

typedef enum turn_state { TURN_NONE, TURN_WAITS, TURN_HAD } turn_state_t;

struct turn {
    turn_state_t state;
    line_t *line;
    const void *owner; /* never followed */
    turn_t *next;
    turn_t *previous;
    turn_t *behind; /* of the same owner */
    turn_t *ahead;  /* NULL: it stands in the line itself */
    turn_fn *fn;
    void *context;
};

/* fn is called when it is its turn: at once, or by who gives one back. It has none, and does not
 * wait for one. */
void turn_take (turn_t *self, line_t *line, const void *owner, turn_fn *fn, void *context);
/* Gives it back, or leaves the line; whoever is next has it when the call returns. Nothing happens
 * to one that is not had. */
void turn_give (turn_t *self);

#endif
