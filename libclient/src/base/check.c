/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "base/check.h"

#include <string.h>

#include "base/errors.h"
#include "ids.h"

int core_check_text (const char *text, const char *field, size_t bytes_max, tmq_error_t *error)
{
    size_t length = text == NULL ? 0 : strlen (text);
    if (length > bytes_max)
        return core_error (error, TMQ_TOO_LARGE, "%s: %zu bytes, at most %zu are allowed", field,
                           length, bytes_max);
    if (length > 0 && !utf8_is_valid (text, length))
        return core_error (error, TMQ_INVALID, "%s: not UTF-8", field);
    return TMQ_OK;
}

int core_check_name (const char *name, const char *field, bool required, tmq_error_t *error)
{
    bool given = name != NULL && name[0] != '\0';
    if (given ? name_is_valid (name) : !required)
        return TMQ_OK;
    return core_error (error, TMQ_INVALID, "%s: must match [A-Za-z0-9._-]{1,%d}", field,
                       TMQ_NAME_LENGTH_MAX);
}

int core_check_owner (const char *owner, tmq_error_t *error)
{
    int code = core_check_name (owner, "owner", true, error);
    if (code == TMQ_OK && strlen (owner) > TMQ_BEHALF_BYTES_MAX)
        return core_error (error, TMQ_TOO_LARGE, "owner: %zu bytes, at most %d", strlen (owner),
                           TMQ_BEHALF_BYTES_MAX);
    return code;
}
