/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/plain.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ids.h"
#include "json.h"

static bool is_shown (uint32_t code)
{
    if (code < 0x7f)
        return code >= 0x20 || code == '\t' || code == '\n';
    return code >= 0xa0 && !json_text_is_hidden (code);
}

void plain_text (FILE *stream, const char *text, size_t length)
{
    const uint8_t *at = (const uint8_t *) text;
    while (length > 0) {
        const size_t known = utf8_character (at, length);
        const size_t size = known ? known : 1;
        if (known && is_shown (utf8_code (at, known))) {
            fwrite (at, 1, size, stream);
        } else {
            for (size_t i = 0; i < size; i++)
                fprintf (stream, "\\x%02x", at[i]);
        }
        at += size;
        length -= size;
    }
}

char *plain_value (const json_t *value, size_t *length)
{
    char *text;
    if (json_is_string (value)) {
        *length = json_string_length (value);
        text = must_alloc (*length + 1);
        memcpy (text, json_string_value (value), *length + 1);
        return text;
    }
    text =
        json_is_null (value) ? calloc (1, 1) : json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        text = must_grow (NULL, SIZE_MAX, 2); /* ends the program: memory ran out */
    *length = strlen (text);
    return text;
}
