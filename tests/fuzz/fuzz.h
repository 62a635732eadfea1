/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Fuzz targets: one function over bytes that somebody outside may choose.
 *
 * The same file is a program of libFuzzer (./dev fuzz) and, with replay.c, a test that runs over
 * the corpus beside it. What must hold is held by HOLDS, in every build. */
#ifndef TASKMQ_TESTS_FUZZ_H
#define TASKMQ_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The target's own. Returns 0. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

#define HOLDS(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf (stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);        \
            abort ();                                                                              \
        }                                                                                          \
    } while (0)

/* A piece of the input in memory of its own length, so that a byte beyond it is noticed. NULL for
 * none. To be freed. */
static inline void *fuzz_copy (const uint8_t *data, size_t size)
{
    void *copy = malloc (size);
    if (size > 0 && copy != NULL)
        memcpy (copy, data, size);
    return copy;
}

/* The same with a NUL behind it; it ends at the first NUL of the input. */
static inline char *fuzz_text (const uint8_t *data, size_t size)
{
    char *text = malloc (size + 1);
    if (text == NULL)
        abort ();
    if (size > 0)
        memcpy (text, data, size);
    text[size] = '\0';
    return text;
}

/* Two bytes of length, then so many bytes: takes them off the input. False at its end. */
static inline int fuzz_piece (const uint8_t **data, size_t *size, const uint8_t **piece,
                              size_t *piece_size)
{
    if (*size < 2)
        return 0;
    size_t wanted = (size_t) (*data)[0] << 8 | (*data)[1];
    *data += 2;
    *size -= 2;
    *piece = *data;
    *piece_size = wanted < *size ? wanted : *size;
    *data += *piece_size;
    *size -= *piece_size;
    return 1;
}

#endif
