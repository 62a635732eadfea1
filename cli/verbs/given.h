/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Bytes that a command takes from --data, --file or standard input. */
#ifndef TASKCTL_GIVEN_H
#define TASKCTL_GIVEN_H

#include "line/app.h"

typedef struct given {
    const char *bytes;
    size_t length;
    bool given; /* one of the three */
    char *owned;
} given_t;

/* operand: the place of "-" among the operands. what: "the payload", for the mistakes. 0 or an exit
 * code; to be cleared in any case. */
int given_read (given_t *out, const app_t *app, size_t operand, size_t bytes_max, const char *what);
/* The same; what is longer than that becomes a file: *file is its descriptor, to be closed, and
 * `length` its bytes; else -1. It is the one that was named, or a copy of what a stream has
 * given. */
int given_read_large (given_t *out, int *file, app_t *app, size_t operand, size_t bytes_max,
                      const char *what);
void given_clear (given_t *self);

#endif
