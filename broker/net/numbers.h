/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers that ZeroMQ gives to the peers of a ROUTER, and peers who take one of their own.
 *
 * A peer may choose its routing id. ZeroMQ gives the others a zero byte and the next number of 32
 * bits, and an assertion ends the process when somebody has that already. So a chosen id is
 * refused, and a number that is still to come is looked for: we connect to our own socket, which
 * tells what the next number is, and try whether anybody answers to those after it. One thread,
 * the socket's. */
#ifndef TASKMQ_NET_NUMBERS_H
#define TASKMQ_NET_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Numbers behind the next one that are tried: more than newcomers come between two questions,
     * but not those that newcomers may have got while the answer was under way. */
    NUMBERS_AHEAD_FIRST = 512,
    NUMBERS_AHEAD = 4096,
    NUMBERS_ID_BYTES = 5
};

typedef struct numbers numbers_t;

/* router: a ROUTER with ZMQ_ROUTER_MANDATORY that nobody can connect to yet; not owned. NULL:
 * ZeroMQ refuses. */
numbers_t *numbers_new (void *context, void *router);
void numbers_free (numbers_t **self); /* accepts a NULL object; before the router is closed */

typedef enum numbers_verdict {
    NUMBERS_GIVEN,   /* ZeroMQ gave it */
    NUMBERS_UNSURE,  /* it is newer than what is known: numbers_is_given, after the next answer */
    NUMBERS_CLAIMED, /* the peer chose it */
} numbers_verdict_t;
numbers_verdict_t numbers_judge (const numbers_t *self, const void *id, size_t bytes);
/* Of an id of which the judge was not sure. */
bool numbers_is_given (const numbers_t *self, const void *id);

/* Asks for the next number, unless the last question has no answer yet. True when it was asked:
 * what was given until now will be known by the answer, which is a message. */
bool numbers_ask (numbers_t *self);
/* The message of nobody with this routing id and first frame was the answer. */
bool numbers_answered (numbers_t *self, const void *id, size_t id_bytes, const void *frame,
                       size_t frame_bytes);
/* After an answer: tries the numbers to come. Who has one of them is a suspect, because ZeroMQ may
 * have given it since. Who was one at an earlier question, and still has no number that was given,
 * chose it: true, and *id. */
bool numbers_squatted (numbers_t *self, uint8_t id[NUMBERS_ID_BYTES]);
/* The next question decides on a suspect. */
bool numbers_suspects (const numbers_t *self);

#endif
