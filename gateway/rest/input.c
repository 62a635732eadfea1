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

json_t *input_object (slice_t text, char error[INPUT_ERROR_SIZE])
{
    json_error_t flaw;
    size_t deepest = 0;
    if (!json_text_is_object (text.text, text.length)) {
        snprintf (error, INPUT_ERROR_SIZE, "the body is no JSON object in UTF-8");
        return NULL;
    }
    skip_value (text, skip_white (text, 0), &deepest);
    if (deepest > INPUT_DEPTH_MAX) {
        snprintf (error, INPUT_ERROR_SIZE, "the body is nested deeper than %d", INPUT_DEPTH_MAX);
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
    const size_t length = strlen (name);
    size_t at = skip_white (object, 0) + 1;
    for (at = skip_white (object, at); at < object.length && object.text[at] == '"';) {
        const size_t key = at + 1;
        at = skip_string (object, at);
        const bool is_it = at - key - 1 == length && memcmp (object.text + key, name, length) == 0;
        at = skip_white (object, skip_white (object, at) + 1);
        const size_t end = skip_value (object, at, NULL);
        if (is_it)
            return (slice_t){object.text + at, end - at};
        at = skip_white (object, skip_white (object, end) + 1);
    }
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
