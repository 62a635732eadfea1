/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "rest/input.h"

#include <stdio.h>
#include <string.h>

#include "json.h"

static const char WHITE[] = " \t\r\n";

static size_t skip_white (slice_t text, size_t at)
{
    while (at < text.length && memchr (WHITE, text.text[at], sizeof WHITE - 1) != NULL)
        at++;
    return at;
}

/* The end of the string that begins at. */
static size_t skip_string (slice_t text, size_t at)
{
    for (at++; at < text.length && text.text[at] != '"'; at++)
        if (text.text[at] == '\\')
            at++;
    return at < text.length ? at + 1 : text.length;
}

/* The end of the value that begins at; of a valid text. *deepest (may be NULL) is how deep it
 * goes. */
static size_t skip_value (slice_t text, size_t at, size_t *deepest)
{
    size_t depth = 0;
    do {
        const char byte = text.text[at];
        if (byte == '"') {
            at = skip_string (text, at);
            continue;
        }
        if (byte == '{' || byte == '[')
            depth++;
        else if ((byte == '}' || byte == ']') && depth > 0)
            depth--;
        if (deepest != NULL && depth > *deepest)
            *deepest = depth;
        at++;
    } while (at < text.length &&
             (depth > 0 || (strchr (",]}", text.text[at]) == NULL &&
                            memchr (WHITE, text.text[at], sizeof WHITE - 1) == NULL)));
    return at;
}

/* Steps through the members of a valid object; *at is 0 before the first step. */
static bool next_member (slice_t object, size_t *at, slice_t *name, slice_t *value)
{
    if (*at == 0)
        *at = skip_white (object, 0);
    *at = skip_white (object, *at + 1);
    if (*at >= object.length || object.text[*at] != '"')
        return false;
    const size_t key = *at + 1;
    const size_t key_end = skip_string (object, *at);
    *name = (slice_t){object.text + key, key_end - 1 - key};
    const size_t begin = skip_white (object, skip_white (object, key_end) + 1);
    const size_t end = skip_value (object, begin, NULL);
    *value = (slice_t){object.text + begin, end - begin};
    *at = skip_white (object, end);
    return true;
}

/* NULL: good. Members are found again in the text by their names, so these stand as they are. */
static const char *find_flaw (slice_t text)
{
    size_t deepest = 0;
    size_t at = 0;
    slice_t name, value;
    if (!json_text_is_object (text.text, text.length))
        return "the body is no JSON object in UTF-8";
    skip_value (text, skip_white (text, 0), &deepest);
    if (deepest > INPUT_DEPTH_MAX)
        return "the body is nested deeper than 64";
    while (next_member (text, &at, &name, &value))
        if (memchr (name.text, '\\', name.length) != NULL)
            return "names of members are written without escapes";
    return NULL;
}

json_t *input_object (slice_t text, char error[INPUT_ERROR_SIZE])
{
    json_error_t flaw;
    const char *reason = find_flaw (text);
    if (reason != NULL) {
        snprintf (error, INPUT_ERROR_SIZE, "%s", reason);
        return NULL;
    }
    json_t *object =
        json_loadb (text.text, text.length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &flaw);
    if (object == NULL)
        snprintf (error, INPUT_ERROR_SIZE, "line %d, column %d: %.160s", flaw.line, flaw.column,
                  flaw.text);
    return object;
}

slice_t input_member (slice_t object, const char *name)
{
    size_t at = 0;
    slice_t key, value;
    while (next_member (object, &at, &key, &value))
        if (key.length == strlen (name) && memcmp (key.text, name, key.length) == 0)
            return value;
    return (slice_t){"", 0};
}

bool input_next (slice_t *at, slice_t *item)
{
    const size_t begin = skip_white (*at, 0);
    if (begin >= at->length || (at->text[begin] != '[' && at->text[begin] != ','))
        return false;
    const size_t first = skip_white (*at, begin + 1);
    if (first >= at->length || at->text[first] == ']')
        return false;
    const size_t end = skip_value (*at, first, NULL);
    *item = (slice_t){at->text + first, end - first};
    const size_t rest = skip_white (*at, end);
    *at = (slice_t){at->text + rest, at->length - rest};
    return true;
}
