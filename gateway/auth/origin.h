/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Is a request meant for this gateway? A page of a stranger may make its reader's browser send
 * requests to this machine (by a name that it lets point here), but cannot choose what Host and
 * Origin say. */
#ifndef TASKMQ_GATEWAY_AUTH_ORIGIN_H
#define TASKMQ_GATEWAY_AUTH_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

enum { NAMES_MAX = 32 };

/* Names or origins of the configuration; texts are borrowed. */
typedef struct names {
    const char *list[NAMES_MAX];
    size_t count;
} names_t;
bool names_have (const names_t *self, const char *text);

/* host: the value of Host. True for a loopback address or name, and for a name of hosts, with any
 * port. */
bool origin_host_is_good (const char *host, const names_t *hosts);
/* origin: the value of Origin. True if it is that of host, or one of origins. */
bool origin_is_good (const char *origin, const char *host, const names_t *origins);

#endif
