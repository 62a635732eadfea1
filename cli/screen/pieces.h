/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Parts of a JSON text, found without taking it apart: numbers keep their digits, objects their
 * order. The text is valid and without white space, as json_write_raw makes it. */
#ifndef TASKCTL_PIECES_H
#define TASKCTL_PIECES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct piece {
    const char *at;
    size_t length;
} piece_t;

/* The value of the member of that key; false if the object has none, or is no object. */
bool piece_member (piece_t *out, piece_t object, const char *key, size_t length);
/* The element behind *at, which is NULL for the first one; false: there is none, or it is no
 * array. */
bool piece_next (piece_t *out, piece_t array, const char **at);
/* The same of an object: key is a string with its quotes. */
bool piece_next_member (piece_t *key, piece_t *value, piece_t object, const char **at);

#endif
