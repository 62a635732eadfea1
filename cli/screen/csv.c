/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/csv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "screen/plain.h"

static bool needs_quotes (const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (strchr (",\"\n\r", text[i]))
            return true;
    return length > 0 && (*text == ' ' || text[length - 1] == ' ');
}

static void put_cell (FILE *stream, const char *text, size_t length)
{
    if (!needs_quotes (text, length)) {
        plain_text (stream, text, length);
        return;
    }
    fputc ('"', stream);
    while (length > 0) {
        const char *quote = memchr (text, '"', length);
        const size_t size = quote ? (size_t) (quote - text) : length;
        plain_text (stream, text, size);
        if (quote)
            fputs ("\"\"", stream);
        text += quote ? size + 1 : size;
        length -= quote ? size + 1 : size;
    }
    fputc ('"', stream);
}

/* What a program for tables would take as a formula, and carry out. */
static bool is_formula (const json_t *value)
{
    const char *text = json_string_value (value);
    return text && *text && strchr ("=+-@\t\r", *text);
}

static char *after_apostrophe (const json_t *value, size_t *length)
{
    *length = json_string_length (value) + 1;
    char *text = must_alloc (*length + 1);
    *text = '\'';
    memcpy (text + 1, json_string_value (value), *length);
    return text;
}

void csv_row (FILE *stream, const json_t *object)
{
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach ((json_t *) object, key, value)
    {
        size_t length;
        char *text =
            is_formula (value) ? after_apostrophe (value, &length) : plain_value (value, &length);
        if (!first)
            fputc (',', stream);
        put_cell (stream, text, length);
        free (text);
        first = false;
    }
    fputc ('\n', stream);
}

void csv_head (FILE *stream, const json_t *object)
{
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach ((json_t *) object, key, value)
    {
        if (!first)
            fputc (',', stream);
        put_cell (stream, key, strlen (key));
        first = false;
    }
    fputc ('\n', stream);
}
