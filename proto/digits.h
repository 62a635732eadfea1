/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Decimal digits by pairs: lines of the export are half of them, and printf takes ten times as
 * long. */
#ifndef TASKMQ_PROTO_DIGITS_H
#define TASKMQ_PROTO_DIGITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* of a number of 64 bits */

extern const char DIGITS_PAIRS[201]; /* "00" to "99" */

/* value: 0..99 */
static inline char *digits_put_pair (char *at, unsigned value)
{
    memcpy (at, DIGITS_PAIRS + (size_t) 2 * value, 2);
    return at + 2;
}

/* Writes the number where DIGITS_MAX bytes are free, without a NUL; returns the place behind it. */
char *digits_put (char *at, uint64_t value);

#endif
