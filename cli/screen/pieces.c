/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "screen/pieces.h"

#include <string.h>

/* Behind the string that begins here. */
static const char *skip_string (const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

/* Behind the value that begins here. */
static const char *skip_value (const char *at)
{
    size_t depth = 0;
    do {
        if (*at == '"') {
            at = skip_string (at);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
    } while (depth || (*at != ',' && *at != '}' && *at != ']'));
    return at;
}

bool piece_next_member (piece_t *key, piece_t *value, piece_t object, const char **at)
{
    if (object.length < 2 || *object.at != '{')
        return false;
    const char *from = *at ? *at + (**at == ',') : object.at + 1;
    if (*from != '"')
        return false;
    key->at = from;
    from = skip_string (from);
    key->length = (size_t) (from - key->at);
    value->at = from + 1; /* behind the colon */
    *at = skip_value (value->at);
    value->length = (size_t) (*at - value->at);
    return true;
}

bool piece_member (piece_t *out, piece_t object, const char *key, size_t length)
{
    const char *at = NULL;
    piece_t name;
    while (piece_next_member (&name, out, object, &at))
        if (name.length == length + 2 && strncmp (name.at + 1, key, length) == 0)
            return true;
    return false;
}

bool piece_next (piece_t *out, piece_t array, const char **at)
{
    if (array.length < 2 || *array.at != '[')
        return false;
    const char *from = *at ? *at + (**at == ',') : array.at + 1;
    if (*from == ']')
        return false;
    out->at = from;
    *at = skip_value (from);
    out->length = (size_t) (*at - from);
    return true;
}
