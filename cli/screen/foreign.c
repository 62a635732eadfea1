/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/foreign.h"

#include <stdbool.h>
#include <string.h>

/* What jansson has room for in any case: less than 2^63, and than 10^(64 + 99). */
enum { INTEGER_BYTES_MAX = 18, REAL_BYTES_MAX = 64, EXPONENT_DIGITS_MAX = 2 };

typedef struct text {
    const char *at;
    const char *end;
} text_t;

/* A string, from quote to quote. */
static void put_string (bytes_t *out, text_t *text)
{
    static const char NUL[] = {'\\', 'u', '0', '0', '0', '0'};
    const char *from = text->at++;
    while (text->at < text->end && *text->at != '"')
        text->at += *text->at == '\\' && text->end - text->at > 1 ? 2 : 1;
    text->at += text->at < text->end;
    const bool key = text->at < text->end && *text->at == ':';
    while (from < text->at) {
        if (key && (size_t) (text->at - from) > sizeof NUL && memcmp (from, NUL, sizeof NUL) == 0)
            bytes_append_byte (out, '\\');
        else if (*from == '\\')
            bytes_append_byte (out, (uint8_t) *from++);
        bytes_append_byte (out, (uint8_t) *from++);
    }
}

static bool fits (const char *number, size_t length)
{
    const char *exponent = memchr (number, 'e', length);
    if (!exponent)
        exponent = memchr (number, 'E', length);
    if (!exponent && !memchr (number, '.', length))
        return length <= INTEGER_BYTES_MAX;
    const size_t digits = exponent ? (size_t) (number + length - exponent) - 1 : 0;
    return length <= REAL_BYTES_MAX && digits <= EXPONENT_DIGITS_MAX;
}

static bool is_of_number (char byte)
{
    return byte != '\0' && strchr ("+-.0123456789eE", byte);
}

static void put_number (bytes_t *out, text_t *text)
{
    const char *from = text->at;
    while (text->at < text->end && is_of_number (*text->at))
        text->at++;
    const size_t length = (size_t) (text->at - from);
    const bool quoted = !fits (from, length);
    if (quoted)
        bytes_append_byte (out, '"');
    bytes_append (out, from, length);
    if (quoted)
        bytes_append_byte (out, '"');
}

json_t *foreign_read (const bytes_t *json, size_t flags)
{
    bytes_t out = BYTES_INIT;
    text_t text = {(const char *) json->data, (const char *) json->data + json->length};
    while (text.at < text.end) {
        if (*text.at == '"')
            put_string (&out, &text);
        else if (*text.at == '-' || (*text.at >= '0' && *text.at <= '9'))
            put_number (&out, &text);
        else
            bytes_append_byte (&out, (uint8_t) *text.at++);
    }
    json_t *value = out.failed ? NULL
                               : json_loadb ((const char *) out.data, out.length,
                                             flags | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    bytes_free (&out);
    return value;
}
