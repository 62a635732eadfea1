/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The checker: one pass, no memory, as deep as JSON_DEPTH_MAX. */
#include "ids.h"
#include "json.h"
#include "json_plain.h"

#include <string.h>

typedef struct scan {
    const uint8_t *at;
    const uint8_t *end;
} scan_t;

static bool scan_value (scan_t *scan, unsigned depth);

static void skip_space (scan_t *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
        scan->at++;
}

static bool take (scan_t *scan, char wanted)
{
    if (scan->at == scan->end || *scan->at != (uint8_t) wanted)
        return false;
    scan->at++;
    return true;
}

static bool take_word (scan_t *scan, const char *word)
{
    size_t length = strlen (word);
    if ((size_t) (scan->end - scan->at) < length || memcmp (scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

/* At least one digit. */
static bool take_digits (scan_t *scan)
{
    const uint8_t *start = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return scan->at > start;
}

static bool scan_number (scan_t *scan)
{
    (void) take (scan, '-');
    if (!take (scan, '0') && !take_digits (scan))
        return false;
    if (take (scan, '.') && !take_digits (scan))
        return false;
    if (!take (scan, 'e') && !take (scan, 'E'))
        return true;
    (void) (take (scan, '+') || take (scan, '-'));
    return take_digits (scan);
}

/* Four hexadecimal digits. */
static bool take_code_unit (scan_t *scan, unsigned *unit)
{
    char digits[5] = {0};
    uint8_t bytes[2];
    if (scan->end - scan->at < 4)
        return false;
    memcpy (digits, scan->at, 4);
    if (!hex_decode (bytes, sizeof bytes, digits))
        return false;
    scan->at += 4;
    *unit = (unsigned) bytes[0] << 8 | bytes[1];
    return true;
}

/* Behind a backslash. */
static bool scan_escape (scan_t *scan)
{
    if (scan->at == scan->end)
        return false;
    if (*scan->at != 'u') {
        bool known = *scan->at != '\0' && strchr ("\"\\/bfnrt", *scan->at) != NULL;
        scan->at++;
        return known;
    }
    scan->at++;
    unsigned unit;
    if (!take_code_unit (scan, &unit))
        return false;
    if (unit < 0xd800 || unit > 0xdfff)
        return true;
    unsigned low;
    return unit < 0xdc00 && take (scan, '\\') && take (scan, 'u') && take_code_unit (scan, &low) &&
           low >= 0xdc00 && low <= 0xdfff;
}

static bool scan_string (scan_t *scan)
{
    if (!take (scan, '"'))
        return false;
    while (scan->at < scan->end) {
        scan->at += json_plain_length (scan->at, (size_t) (scan->end - scan->at));
        if (scan->at == scan->end)
            return false;
        if (take (scan, '"'))
            return true;
        if (take (scan, '\\')) {
            if (!scan_escape (scan))
                return false;
            continue;
        }
        size_t length =
            *scan->at < 0x20 ? 0 : utf8_character (scan->at, (size_t) (scan->end - scan->at));
        if (length == 0)
            return false;
        scan->at += length;
    }
    return false;
}

static bool scan_member (scan_t *scan, unsigned depth)
{
    skip_space (scan);
    if (!scan_string (scan))
        return false;
    skip_space (scan);
    return take (scan, ':') && scan_value (scan, depth);
}

/* Behind the opening bracket. */
static bool scan_elements (scan_t *scan, unsigned depth, bool object)
{
    const char close = object ? '}' : ']';
    if (depth > JSON_DEPTH_MAX)
        return false;
    skip_space (scan);
    if (take (scan, close))
        return true;
    do {
        if (!(object ? scan_member (scan, depth) : scan_value (scan, depth)))
            return false;
    } while (take (scan, ','));
    return take (scan, close);
}

/* A value with the white space around it. */
static bool scan_value (scan_t *scan, unsigned depth)
{
    skip_space (scan);
    if (scan->at == scan->end)
        return false;
    bool good;
    switch (*scan->at) {
    case '{':
    case '[':
        scan->at++;
        good = scan_elements (scan, depth + 1, scan->at[-1] == '{');
        break;
    case '"': good = scan_string (scan); break;
    case 't': good = take_word (scan, "true"); break;
    case 'f': good = take_word (scan, "false"); break;
    case 'n': good = take_word (scan, "null"); break;
    default: good = scan_number (scan); break;
    }
    skip_space (scan);
    return good;
}

bool json_text_is_valid (const void *text, size_t length)
{
    if (length == 0)
        return false;
    scan_t scan = {text, (const uint8_t *) text + length};
    return scan_value (&scan, 0) && scan.at == scan.end;
}

bool json_text_is_object (const void *text, size_t length)
{
    if (length == 0)
        return false;
    scan_t scan = {text, (const uint8_t *) text + length};
    skip_space (&scan);
    return scan.at < scan.end && *scan.at == '{' && json_text_is_valid (text, length);
}
