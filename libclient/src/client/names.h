/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Addresses of host names, for a thread that may not wait for a name server. */
#ifndef TASKMQ_CLIENT_NAMES_H
#define TASKMQ_CLIENT_NAMES_H

#include <netdb.h>
#include <stdbool.h>

enum { NAMES_HOST_BYTES_MAX = 255 };

/* Asks for the addresses of a host, and waits for up to wait_ms. False: there is no answer yet.
 * Else *failed is getaddrinfo's answer, and *out, if that is 0, is freed by freeaddrinfo. */
bool names_resolve (struct addrinfo **out, int *failed, const char *host, const char *port,
                    unsigned wait_ms);

#endif
