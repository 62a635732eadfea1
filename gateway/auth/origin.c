/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool names_have (const names_t *self, const char *text)
{
    for (size_t i = 0; i < self->count; i++)
        if (strcasecmp (self->list[i], text) == 0)
            return true;
    return false;
}

/* The host without its port. False: it is none. */
static bool strip_port (char *out, size_t size, const char *host)
{
    const char *end = *host == '[' ? strchr (host, ']') : NULL;
    const char *colon = strchr (end != NULL ? end : host, ':');
    const size_t length = colon != NULL ? (size_t) (colon - host) : strlen (host);
    if (*host == '[' && (end == NULL || (end[1] != '\0' && end[1] != ':')))
        return false;
    if (colon != NULL && strspn (colon + 1, "0123456789") != strlen (colon + 1))
        return false;
    return length > 0 && (size_t) snprintf (out, size, "%.*s", (int) length, host) < size;
}

static bool is_loopback (const char *name)
{
    struct in_addr address;
    if (strcasecmp (name, "localhost") == 0 || strcmp (name, "[::1]") == 0)
        return true;
    return inet_pton (AF_INET, name, &address) == 1 && ntohl (address.s_addr) >> 24 == 127;
}

bool origin_host_is_good (const char *host, const names_t *hosts)
{
    char name[256];
    return strip_port (name, sizeof name, host) && (is_loopback (name) || names_have (hosts, name));
}

bool origin_is_good (const char *origin, const char *host, const names_t *origins)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp (origin, schemes[i], strlen (schemes[i])) == 0 &&
            strcasecmp (origin + strlen (schemes[i]), host) == 0)
            return true;
    return names_have (origins, origin);
}
