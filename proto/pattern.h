/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Regular expressions that are looked for together, in one pass over a text.
 *
 * An expression is the operator's, the text may be an enemy's. So there is no backtracking: a text
 * costs at most its bytes times the states of all expressions, and those are bounded. What is asked
 * for is not one match, but which bytes belong to any: so the longest counts, and all that overlap
 * are one cover.
 *
 * Syntax, as of POSIX extended expressions: literals, `.` (any byte), [a-z] [^a-z] [[:alpha:]],
 * ( ) |, * + ? {m} {m,} {m,n}; \d \w \s and their opposites \D \W \S, \t \n \r, \xHH, and a
 * backslash before any punctuation. (?i) at the beginning: the case of ASCII letters does not
 * count. No anchors, no references, nothing lazy: each is refused with its name. */
#ifndef TASKMQ_PROTO_PATTERN_H
#define TASKMQ_PROTO_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PATTERN_BYTES_MAX = 1024,  /* of one expression */
    PATTERN_REPEAT_MAX = 1000, /* in {m,n} */
    PATTERN_DEPTH_MAX = 32,    /* groups inside each other */
    PATTERN_STATES_MAX = 4096, /* of all together: a byte or a choice is one, counted ones repeat */
    PATTERNS_MAX = 128,
    PATTERN_ERROR_SIZE = 160,
    /* Of one text: about half a second. A text of 1 MiB stays below it while at most 128 states are
     * alive at once; ordinary expressions have fewer than ten. */
    PATTERN_STEPS_MAX = 128 * 1024 * 1024
};

typedef struct patterns patterns_t;

/* Bytes from..to (exclusive) that matches cover; which: the pattern of the match that begins first,
 * and of those the longest. */
typedef struct pattern_cover {
    size_t from;
    size_t to;
    unsigned which; /* in the order in which they were added, from 0 */
} pattern_cover_t;

/* NULL: memory is exhausted. */
patterns_t *patterns_new (void);
void patterns_free (patterns_t **self_p);
/* False with a sentence in `error`; nothing was added. An expression that matches the empty text is
 * refused, too. */
bool patterns_add (patterns_t *self, const char *expression, char error[PATTERN_ERROR_SIZE]);
size_t patterns_count (const patterns_t *self);

/* All covers in a text, in order, apart from each other. They live until the next call. False: more
 * than PATTERN_STEPS_MAX, or memory is exhausted; then nothing is known. One thread at a time. */
bool patterns_find (patterns_t *self, const void *text, size_t length,
                    const pattern_cover_t **covers, size_t *count);

#endif
