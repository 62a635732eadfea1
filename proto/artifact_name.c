/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "artifact_name.h"

#include <stdbool.h>
#include <string.h>

#include "ids.h"
#include "taskmq_types.h"

#define STRINGIFIED(number) #number
#define AS_TEXT(number) STRINGIFIED (number)
#define NAME_BYTES_MAX 128
_Static_assert(NAME_BYTES_MAX == TMQ_ARTIFACT_NAME_BYTES_MAX, "the text tells the limit");

/* U+0000 to U+001F, U+007F to U+009F. */
static bool has_control (const char *name)
{
    for (const unsigned char *at = (const unsigned char *) name; *at != '\0'; at++)
        if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
            return true;
    return false;
}

const char *artifact_name_flaw (const char *name)
{
    size_t length = name == NULL ? 0 : strlen (name);
    if (length == 0)
        return "must not be empty";
    if (length > TMQ_ARTIFACT_NAME_BYTES_MAX)
        return "has more than " AS_TEXT (NAME_BYTES_MAX) " bytes";
    if (!utf8_is_valid (name, length))
        return "must be UTF-8";
    if (name[0] == '.')
        return "must not begin with a dot";
    if (strchr (name, '/') != NULL)
        return "must not have a '/': it is the name of a file, not a path";
    return has_control (name) ? "must not have control characters" : NULL;
}
