/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "http/target.h"

#include <stdlib.h>
#include <string.h>

#include "ids.h"

static int hex_value (char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Decodes the text in its place and ends it. plus: "+" is a space. */
static const char *decode (char *text, size_t length, bool plus)
{
    char *out = text;
    for (size_t i = 0; i < length; i++) {
        char byte = text[i];
        if (byte == '%') {
            const int high = i + 2 < length ? hex_value (text[i + 1]) : -1;
            const int low = i + 2 < length ? hex_value (text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return "a % in the target stands before two hexadecimal digits";
            byte = (char) (high * 16 + low);
            if ((unsigned char) byte < ' ' || byte == 0x7f)
                return "the target has an encoded control character";
            i += 2;
        } else if (byte == '+' && plus) {
            byte = ' ';
        }
        *out++ = byte;
    }
    *out = '\0';
    return utf8_is_valid (text, (size_t) (out - text)) ? NULL : "the target is no UTF-8";
}

static const char *add_segment (http_target_t *self, char *text, size_t length)
{
    /* As it stands some take it for a slash; encoded it is a byte of a name. */
    if (memchr (text, '\\', length) != NULL)
        return "the path has a backslash, which is written as %5C";
    const char *flaw = decode (text, length, false);
    if (flaw != NULL)
        return flaw;
    if (self->segments_count == TARGET_SEGMENTS_MAX)
        return "the path has too many segments";
    if (*text == '\0' || strcmp (text, ".") == 0 || strcmp (text, "..") == 0 ||
        strchr (text, '/') != NULL)
        return "the path has a segment that is empty, \".\", \"..\", or has a slash";
    self->segments[self->segments_count++] = text;
    return NULL;
}

static const char *parse_path (http_target_t *self, char *path)
{
    const char *flaw = NULL;
    if (*path != '/')
        return "the target does not begin with a slash";
    char *at = path + 1;
    if (*at == '\0')
        return NULL;
    for (bool more = true; more && flaw == NULL;) {
        const size_t length = strcspn (at, "/");
        char *next = at + length + 1;
        more = at[length] == '/';
        flaw = add_segment (self, at, length);
        at = next;
    }
    return flaw;
}

static const char *parse_query (http_target_t *self, char *query)
{
    while (*query != '\0') {
        const size_t length = strcspn (query, "&");
        char *next = query + length + (query[length] == '&');
        char *equals = memchr (query, '=', length);
        char *value = equals != NULL ? equals + 1 : query + length;
        const size_t name_length = equals != NULL ? (size_t) (equals - query) : length;
        const size_t value_length = (size_t) (query + length - value);
        if (name_length == 0)
            return "the query has a parameter without a name";
        if (self->parameters_count == TARGET_PARAMETERS_MAX)
            return "the query has too many parameters";
        const char *flaw = decode (value, value_length, true);
        if (flaw == NULL && equals != NULL)
            flaw = decode (query, name_length, true);
        else if (flaw == NULL)
            return "a parameter of the query is NAME=VALUE";
        if (flaw != NULL)
            return flaw;
        self->parameters[self->parameters_count++] = (http_parameter_t){query, value};
        query = next;
    }
    return NULL;
}

const char *http_target_parse (http_target_t *out, const char *target)
{
    memset (out, 0, sizeof *out);
    const size_t size = strlen (target) + 2;
    out->room = calloc (1, size);
    if (out->room == NULL)
        return "memory is exhausted";
    memcpy (out->room, target, size - 2);
    char *query = strchr (out->room, '?');
    if (query != NULL)
        *query++ = '\0';
    const char *flaw = parse_path (out, out->room);
    if (flaw == NULL && query != NULL)
        flaw = parse_query (out, query);
    if (flaw != NULL)
        http_target_clear (out);
    return flaw;
}

void http_target_clear (http_target_t *self)
{
    free (self->room);
    memset (self, 0, sizeof *self);
}

size_t http_target_count (const http_target_t *self, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < self->parameters_count; i++)
        count += strcmp (self->parameters[i].name, name) == 0;
    return count;
}

const char *http_target_parameter (const http_target_t *self, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < self->parameters_count; i++) {
        if (strcmp (self->parameters[i].name, name) != 0)
            continue;
        if (value != NULL)
            return NULL;
        value = self->parameters[i].value;
    }
    return value;
}
