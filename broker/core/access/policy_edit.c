/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The access file's text with one line changed. */
#include <string.h>

#include "core/access/policy.h"
#include "core/base/memory.h"

static size_t line_length (const char *at, const char *end)
{
    const char *found = memchr (at, '\n', (size_t) (end - at));
    return found == NULL ? (size_t) (end - at) : (size_t) (found - at) + 1;
}

/* The line's first word is this name. */
static bool is_line_of (const char *at, size_t length, const char *name)
{
    size_t blank = 0;
    while (blank < length && (at[blank] == ' ' || at[blank] == '\t'))
        blank++;
    size_t name_length = strlen (name);
    if (length - blank < name_length || memcmp (at + blank, name, name_length) != 0)
        return false;
    size_t behind = blank + name_length;
    return behind == length || strchr (" \t\r\n#", at[behind]) != NULL;
}

char *policy_text_put (const char *text, size_t bytes, const char *name, const char *line,
                       size_t *out_bytes)
{
    size_t line_bytes = line == NULL ? 0 : strlen (line);
    char *out = memory_alloc (bytes + line_bytes + 2);
    size_t length = 0;
    const char *end = text + bytes;
    bool put = line == NULL;
    for (const char *at = text; at < end;) {
        size_t here = line_length (at, end);
        bool mine = is_line_of (at, here, name);
        if (!mine) {
            memcpy (out + length, at, here);
            length += here;
        } else if (!put) {
            memcpy (out + length, line, line_bytes);
            length += line_bytes;
            out[length++] = '\n';
            put = true;
        }
        at += here;
    }
    if (!put) {
        if (length > 0 && out[length - 1] != '\n')
            out[length++] = '\n';
        memcpy (out + length, line, line_bytes);
        length += line_bytes;
        out[length++] = '\n';
    }
    *out_bytes = length;
    return out;
}
