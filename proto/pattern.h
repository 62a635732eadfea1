/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Regular expressions of PCRE2 that are looked for in a text, each everywhere.
 *
 * An expression is the operator's, the text may be an enemy's. PCRE2 goes back when it met a dead
 * end, so its work may grow much faster than the text. All of it is counted (auto-callouts), and
 * ends at a bound; so nothing here depends on a clock, and the same text always gives the same.
 *
 * Expressions are of UTF-8. A text need not be: where a byte is none, expressions see a NUL. */
#ifndef TASKMQ_PROTO_PATTERN_H
#define TASKMQ_PROTO_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PATTERN_BYTES_MAX = 1024, /* of one expression */
    PATTERN_DEPTH_MAX = 32,   /* groups inside each other */
    PATTERNS_MAX = 128,
    PATTERN_ERROR_SIZE = 256,
    PATTERN_COVERS_MAX = 65536, /* in one text */
    /* Steps: a place of an expression that is tried is PATTERN_TRY_STEPS, a byte that is gone over
     * in between is one. So many are about a fifth of a second, for all texts since
     * patterns_begin; and each text has some of its own, so that a dear one does not take them
     * from those behind it. */
    PATTERN_TRY_STEPS = 64,
    PATTERN_STEPS_MAX = 256 * 1024 * 1024,
    PATTERN_STEPS_OF_TEXT = 64 * 1024,
    PATTERN_STEPS_OF_BYTE = 64,
    /* PCRE2's own bounds, of one place at which a match may begin. */
    PATTERN_MATCH_LIMIT = 4 * 1024 * 1024, /* times it goes on from a place */
    PATTERN_DEPTH_LIMIT = 64 * 1024,       /* places it may go back to */
    PATTERN_HEAP_LIMIT_KIB = 16 * 1024     /* of memory for them */
};

typedef struct patterns patterns_t;

/* Bytes from..to (exclusive) that matches cover; which: the pattern of the match that begins first,
 * and of those the longest. */
typedef struct pattern_cover {
    uint32_t from;
    uint32_t to;
    uint32_t which; /* in the order in which they were added, from 0 */
} pattern_cover_t;

/* NULL: memory is exhausted. */
patterns_t *patterns_new (void);
void patterns_free (patterns_t **self_p);
/* False with a sentence in `error`; nothing was added. An expression that may match the empty text
 * is refused, too. */
bool patterns_add (patterns_t *self, const char *expression, char error[PATTERN_ERROR_SIZE]);
size_t patterns_count (const patterns_t *self);

/* The texts that follow have PATTERN_STEPS_MAX together. */
void patterns_begin (patterns_t *self);
/* All covers in a text, in order, apart from each other. They live until the next call. False: a
 * bound was met, or memory is exhausted; then nothing is known. One thread at a time. */
bool patterns_find (patterns_t *self, const void *text, size_t length,
                    const pattern_cover_t **covers, size_t *count);

#endif
