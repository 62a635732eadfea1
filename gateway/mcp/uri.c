/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "mcp/uri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the parts of a reference end. An authority begins with "//". */
typedef struct parts {
    size_t scheme; /* with its ":"; 0: none */
    size_t authority;
    size_t path;
    size_t query;
} parts_t;

static bool is_scheme (const char *text, size_t length)
{
    static const char others[] = "0123456789+-.";
    for (size_t i = 0; i < length; i++) {
        const char small = (char) (text[i] | 32);
        if ((small < 'a' || small > 'z') && (i == 0 || strchr (others, text[i]) == NULL))
            return false;
    }
    return length > 0;
}

static parts_t take_apart (const char *text)
{
    parts_t parts = {0};
    const size_t end = strcspn (text, "#");
    const size_t colon = strcspn (text, ":/?#");
    if (text[colon] == ':' && is_scheme (text, colon))
        parts.scheme = colon + 1;
    parts.authority = parts.scheme;
    if (strncmp (text + parts.scheme, "//", 2) == 0)
        parts.authority += 2 + strcspn (text + parts.scheme + 2, "/?#");
    parts.path = parts.authority + strcspn (text + parts.authority, "?#");
    parts.query = end;
    return parts;
}

/* Removes "." and ".." from the path that begins at. */
static void remove_dots (char *path)
{
    char *out = path;
    for (const char *at = path; *at != '\0';) {
        const size_t length = strcspn (at + 1, "/") + 1; /* "/segment" */
        const bool last = at[length] == '\0';
        if (strncmp (at, "/..", length) == 0 && length == 3) {
            while (out > path && *--out != '/') {
            }
            if (last)
                *out++ = '/';
        } else if (strncmp (at, "/.", length) == 0 && length == 2) {
            if (last)
                *out++ = '/';
        } else {
            memmove (out, at, length);
            out += length;
        }
        at += length;
    }
    *out = '\0';
}

/* The path of the reference behind that of the base, up to its last slash. */
static void merge (char out[URI_SIZE], const char *base, const parts_t *of)
{
    size_t keep = of->path;
    while (keep > of->authority && base[keep - 1] != '/')
        keep--;
    const bool bare = keep == of->authority && of->authority > of->scheme;
    snprintf (out, URI_SIZE, "%.*s%s", (int) keep, base, bare ? "/" : "");
}

bool uri_resolve (char out[URI_SIZE], const char *base, const char *reference)
{
    const parts_t in = take_apart (reference);
    const parts_t of = take_apart (base);
    char query[URI_SIZE];
    if (strlen (base) + strlen (reference) + 2 > URI_SIZE)
        return false;
    if (in.scheme > 0) {
        snprintf (out, URI_SIZE, "%.*s", (int) in.query, reference);
        return true;
    }
    if (in.query == 0) {
        snprintf (out, URI_SIZE, "%.*s", (int) of.query, base);
        return true;
    }
    snprintf (query, sizeof query, "%.*s", (int) (in.query - in.path), reference + in.path);
    if (in.authority > 0 || reference[0] == '/')
        snprintf (out, URI_SIZE, "%.*s%.*s", (int) (in.authority > 0 ? of.scheme : of.authority),
                  base, (int) in.path, reference);
    else if (in.path == 0)
        snprintf (out, URI_SIZE, "%.*s", (int) of.path, base);
    else {
        merge (out, base, &of);
        snprintf (out + strlen (out), URI_SIZE - strlen (out), "%.*s", (int) in.path, reference);
    }
    char *path = out + take_apart (out).authority;
    if (*path == '/')
        remove_dots (path);
    snprintf (out + strlen (out), URI_SIZE - strlen (out), "%s", query);
    return true;
}

const char *uri_fragment (const char *reference)
{
    const char *hash = strchr (reference, '#');
    return hash != NULL ? hash + 1 : "";
}

static int digit (char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char *at =
        byte != '\0' ? strchr (digits, byte >= 'A' && byte <= 'F' ? byte | 32 : byte) : NULL;
    return at != NULL ? (int) (at - digits) : -1;
}

bool uri_decode (char *out, size_t size, const char *text)
{
    size_t length = 0;
    for (; *text != '\0' && length + 1 < size; text++, length++) {
        out[length] = *text;
        if (*text != '%')
            continue;
        const int high = digit (text[1]);
        const int low = high >= 0 ? digit (text[2]) : -1;
        if (low < 0 || high + low == 0)
            return false;
        out[length] = (char) (high << 4 | low);
        text += 2;
    }
    out[length] = '\0';
    return *text == '\0';
}
