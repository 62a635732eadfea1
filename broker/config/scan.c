/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "config/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

enum { INDENT = 4, DEPTH_MAX = 1 };

typedef struct at {
    scan_t *scan;
    size_t capacity;
    unsigned line;
} at_t;

__attribute__ ((format (printf, 2, 3))) static bool wrong (at_t *at, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (at->scan->error, SCAN_ERROR_SIZE, format, arguments);
    va_end (arguments);
    at->scan->wrong_line = at->line;
    return false;
}

static bool is_name (char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr ("_-./$@&+", c) != NULL);
}

/* Only what a person can see, except for spaces; bytes of UTF-8 may stand in paths. */
static bool check_bytes (at_t *at, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char) text[i];
        if (c == '\t')
            return wrong (at, "a tab in column %zu: use spaces, four for each level", i + 1);
        if (c < ' ' || c == 0x7f)
            return wrong (at, "a control byte (0x%02x) in column %zu", c, i + 1);
    }
    return true;
}

/* Behind the value only a comment may stand. A quoted value ends with its quote. */
static bool check_value (at_t *at, const char *text, size_t length)
{
    if (length > 0 && text[0] == '#')
        return wrong (at, "the value is missing: \"\" is an empty one");
    if (length == 0)
        return true;
    if (text[0] != '"' && text[0] != '\'') {
        const char *comment = memchr (text, '#', length);
        return comment == NULL || comment[-1] == ' ' ||
               wrong (at, "a value with # stands in quotes; a comment stands behind a space");
    }
    const char *end = memchr (text + 1, text[0], length - 1);
    if (end == NULL)
        return wrong (at, "the quote %c is not closed", text[0]);
    for (end++; end < text + length && *end != '#'; end++) {
        if (*end != ' ')
            return wrong (at, "something stands behind the closing quote");
    }
    return true;
}

/* "name" of a section, "name = value" of a key. */
static bool check_shape (at_t *at, unsigned depth, const char *text, size_t length)
{
    size_t name = 0;
    while (name < length && is_name (text[name]))
        name++;
    if (name == 0 && length > 0 && text[0] == '[')
        return wrong (at, "a section stands without brackets, its keys below it with four spaces");
    if (name == 0)
        return wrong (at, "a name must stand here: letters, digits and _");
    size_t next = name;
    while (next < length && text[next] == ' ')
        next++;
    bool has_value = next < length && text[next] == '=';
    if (next < length && !has_value && text[next] != '#')
        return wrong (at, "= must stand behind %.*s", (int) (name < 60 ? name : 60), text);
    if (depth == 0 && has_value)
        return wrong (at,
                      "%.*s is no section: keys stand below a section, indented by four "
                      "spaces",
                      (int) (name < 60 ? name : 60), text);
    if (depth > 0 && !has_value)
        return wrong (at, "%.*s has no value: = is missing", (int) (name < 60 ? name : 60), text);
    for (next++; next < length && text[next] == ' ';)
        next++;
    return !has_value || check_value (at, text + next, length - next);
}

static bool add_line (at_t *at, unsigned depth)
{
    scan_t *scan = at->scan;
    if (scan->count == SCAN_LINES_MAX)
        return wrong (at, "more than %d sections and keys", SCAN_LINES_MAX);
    if (depth > 0 && scan->count == 0)
        return wrong (at, "a key without a section: the name of the section stands above it");
    if (scan->count == at->capacity)
        scan->lines =
            memory_grow (scan->lines, &at->capacity, scan->count + 1, sizeof (scan_line_t));
    scan->lines[scan->count++] = (scan_line_t){at->line, depth};
    return true;
}

static bool take_line (at_t *at, char *text, size_t length)
{
    size_t spaces = 0;
    if (length > 0 && text[length - 1] == '\r')
        text[--length] = ' ';
    if (length > SCAN_LINE_BYTES_MAX)
        return wrong (at, "the line is longer than %d bytes", SCAN_LINE_BYTES_MAX);
    if (!check_bytes (at, text, length))
        return false;
    while (spaces < length && text[spaces] == ' ')
        spaces++;
    if (spaces == length || text[spaces] == '#') {
        memset (text, ' ', length);
        return true;
    }
    if (spaces % INDENT != 0)
        return wrong (at, "%zu spaces: a key of a section is indented by four spaces", spaces);
    if (spaces / INDENT > DEPTH_MAX)
        return wrong (at, "too deep: a key stands below its section, indented by four spaces");
    unsigned depth = (unsigned) (spaces / INDENT);
    return add_line (at, depth) && check_shape (at, depth, text + spaces, length - spaces);
}

bool scan_text (scan_t *out, char *text, size_t bytes)
{
    at_t at = {.scan = out};
    *out = (scan_t){0};
    while (bytes > 0) {
        char *end = memchr (text, '\n', bytes);
        size_t length = end != NULL ? (size_t) (end - text) : bytes;
        at.line++;
        if (!take_line (&at, text, length))
            return false;
        length += end != NULL ? 1 : 0;
        text += length;
        bytes -= length;
    }
    return true;
}

void scan_free (scan_t *self)
{
    free (self->lines);
    *self = (scan_t){0};
}
