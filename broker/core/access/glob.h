/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Patterns of names: a name in which `*` stands for anything, also for nothing.
 *
 * Pure. Matching is linear in the name, whatever the pattern: one step of a bit-parallel automaton
 * for each character. */
#ifndef TASKMQ_CORE_GLOB_H
#define TASKMQ_CORE_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

enum { GLOB_LETTERS = 66 }; /* 65 that a name is made of, and all others */

typedef struct glob {
    char text[TMQ_NAME_LENGTH_MAX + 1]; /* of an exact one, or what all names begin with */
    uint8_t length;
    bool open;         /* `*` follows the text */
    uint64_t *letters; /* of any other pattern: at which places a letter may stand; NULL: none */
    uint64_t stays;    /* places that `*` stands at */
} glob_t;

/* False if it is no pattern: 1 to 64 characters of names and `*`. length: of the text. To be
 * cleared. */
bool glob_make (glob_t *out, const char *text, size_t length);
void glob_clear (glob_t *self);
/* name: a valid one. */
bool glob_takes (const glob_t *self, const char *name);
/* It takes every name. */
bool glob_is_open (const glob_t *self);

#endif
