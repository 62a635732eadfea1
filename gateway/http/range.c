/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "http/range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const char *skip_spaces (const char *at)
{
    return at + strspn (at, " \t");
}

/* False: there are no digits. What is larger than any length is as large as can be. */
static bool take_number (const char **at, uint64_t *out)
{
    const char *digit = *at;
    uint64_t value = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        const uint64_t next = (uint64_t) (*digit - '0');
        value = value > (UINT64_MAX - next) / 10 ? UINT64_MAX : value * 10 + next;
    }
    const bool good = digit > *at;
    *at = digit;
    *out = value;
    return good;
}

/* The last bytes, so many of them. */
static range_kind_t take_suffix (uint64_t count, uint64_t total, uint64_t *first)
{
    if (count == 0)
        return RANGE_OUTSIDE;
    *first = count < total ? total - count : 0;
    return RANGE_PART;
}

range_kind_t range_read (const char *field, uint64_t total, uint64_t *first, uint64_t *end)
{
    uint64_t from, last = UINT64_MAX;
    *first = 0;
    *end = total;
    if (field == NULL || total == 0 || strncasecmp (field, "bytes=", 6) != 0)
        return RANGE_ALL;
    const char *at = skip_spaces (field + 6);
    const bool has_first = take_number (&at, &from);
    if (*at++ != '-')
        return RANGE_ALL;
    const bool has_last = take_number (&at, &last);
    if (*skip_spaces (at) != '\0' || (!has_first && !has_last))
        return RANGE_ALL;
    if (!has_first)
        return take_suffix (last, total, first);
    if (!has_last)
        last = UINT64_MAX;
    if (from > last)
        return RANGE_ALL;
    if (from >= total)
        return RANGE_OUTSIDE;
    *first = from;
    *end = last < total ? last + 1 : total;
    return RANGE_PART;
}
