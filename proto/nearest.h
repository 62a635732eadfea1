/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a mistyped word was probably meant to be. */
#ifndef TASKMQ_PROTO_NEAREST_H
#define TASKMQ_PROTO_NEAREST_H

#include <stddef.h>

/* The candidate with the fewest edits (letters added, dropped, changed or swapped) from word, or
 * NULL when none is near: one edit in a word of two to four letters, two in a longer one. */
const char *nearest_of (const char *word, const char *const *candidates, size_t count);

#endif
