/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "config/retain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"

enum { PART_SIZE = 32 };

static bool wrong (char why[UNITS_ERROR_SIZE], const char *text)
{
    snprintf (why, UNITS_ERROR_SIZE, "%s", text);
    return false;
}

static bool take_age (int64_t *out, const char *value, char why[UNITS_ERROR_SIZE])
{
    if (!duration_parse (out, value, why))
        return false;
    return (*out > 0 && *out <= TMQ_TTL_MS_MAX) || wrong (why, "an age is 1ms to 87660h");
}

static bool take_count (uint64_t *out, const char *value, char why[UNITS_ERROR_SIZE])
{
    char *end;
    *out = *value >= '0' && *value <= '9' ? strtoull (value, &end, 10) : 0;
    return (*out > 0 && *end == '\0' && *out <= TMQ_RETAIN_COUNT_MAX) ||
           wrong (why, "a number is 1 to 1000000000");
}

static bool take_bytes (uint64_t *out, const char *value, char why[UNITS_ERROR_SIZE])
{
    if (!size_parse (out, value, why))
        return false;
    return (*out > 0 && *out <= (uint64_t) 1 << 40) || wrong (why, "bytes are 1B to 1024G");
}

/* No part may be 0, so one that is not was there before. */
static bool is_first (bool unset, char why[UNITS_ERROR_SIZE])
{
    return unset || wrong (why, "each part may stand once");
}

static bool take_part (retention_t *out, const char *name, const char *value,
                       char why[UNITS_ERROR_SIZE])
{
    if (strcmp (name, "max_age") == 0)
        return is_first (out->max_age_ms == 0, why) && take_age (&out->max_age_ms, value, why);
    if (strcmp (name, "max_count") == 0)
        return is_first (out->max_count == 0, why) && take_count (&out->max_count, value, why);
    if (strcmp (name, "max_bytes") == 0)
        return is_first (out->max_bytes == 0, why) && take_bytes (&out->max_bytes, value, why);
    if (strcmp (name, "keep_failed") == 0)
        return is_first (out->keep_failed_ms == 0, why) &&
               take_age (&out->keep_failed_ms, value, why);
    if (strcmp (name, "min_keep") == 0)
        return is_first (out->min_keep == 0, why) && take_count (&out->min_keep, value, why);
    return wrong (why, "a rule has max_age, max_count, max_bytes, keep_failed and min_keep");
}

/* "max_age:30d,min_keep:10" */
static bool take_rule (retention_t *out, const char *text, char why[UNITS_ERROR_SIZE])
{
    for (bool more = true; more; text++) {
        char part[PART_SIZE];
        size_t length = strcspn (text, ",");
        if (length >= sizeof (part))
            return wrong (why, "a part is like max_age:30d");
        memcpy (part, text, length);
        part[length] = '\0';
        char *value = strchr (part, ':');
        if (value == NULL)
            return wrong (why, "a part is like max_age:30d");
        *value++ = '\0';
        if (!take_part (out, part, value, why))
            return false;
        text += length;
        more = *text == ',';
    }
    return true;
}

bool retain_parse (retention_of_t *out, const char *text, char why[UNITS_ERROR_SIZE])
{
    size_t length = strcspn (text, "=");
    *out = (retention_of_t){.ns = ""};
    if (text[length] != '=' || text[length + 1] == '\0' || length > TMQ_NAME_LENGTH_MAX)
        return wrong (why, "must be NAMESPACE=max_age:30d,… or NAMESPACE=none");
    memcpy (out->ns, text, length);
    if (!name_is_valid (out->ns))
        return wrong (why, "it does not begin with the name of a namespace");
    text += length + 1;
    if (strcmp (text, "none") == 0)
        return true;
    if (!take_rule (&out->rule, text, why))
        return false;
    const char *contradiction = retention_contradiction (&out->rule);
    return contradiction == NULL || wrong (why, contradiction);
}
