/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The distance of Damerau and Levenshtein (optimal string alignment) over three rows. */
#include "nearest.h"

#include <string.h>

enum { LENGTH_MAX = 63, EDITS_MAX = 2, BEGINNING_MIN = 3 };

static size_t least (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Words longer than LENGTH_MAX are near to nothing. */
static size_t distance (const char *a, const char *b)
{
    size_t rows[3][LENGTH_MAX + 1];
    size_t a_length = strlen (a);
    size_t b_length = strlen (b);
    if (a_length > LENGTH_MAX || b_length > LENGTH_MAX)
        return LENGTH_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        const size_t *second = rows[(i + 1) % 3]; /* two rows above */
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = a[i - 1] != b[j - 1];
            row[j] = least (least (above[j] + 1, row[j - 1] + 1), above[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least (row[j], second[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

/* The only one that begins with the word, if that says enough. */
static const char *only_with_beginning (const char *word, const char *const *candidates,
                                        size_t count)
{
    const size_t length = strlen (word);
    const char *found = NULL;
    for (size_t i = 0; i < count && length >= BEGINNING_MIN; i++) {
        if (strncmp (word, candidates[i], length) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = candidates[i];
    }
    return found;
}

const char *nearest_of (const char *word, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    const size_t too_far = least (EDITS_MAX, (strlen (word) + 1) / 3) + 1;
    size_t best = too_far;
    for (size_t i = 0; i < count; i++) {
        size_t edits = distance (word, candidates[i]);
        if (edits < best) {
            best = edits;
            nearest = candidates[i];
        }
    }
    return best < too_far ? nearest : only_with_beginning (word, candidates, count);
}
