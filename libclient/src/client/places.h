/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where the broker is: endpoints that were given or found, and whether somebody is there.
 *
 * Endpoints that stand in a broker's directory are read anew for each connection, because a broker
 * that was restarted may listen elsewhere. */
#ifndef TASKMQ_CLIENT_PLACES_H
#define TASKMQ_CLIENT_PLACES_H

#include "taskmq.h"

enum { PLACES_MAX = 64, PLACES_URI_BYTES_MAX = 255 };

typedef struct places {
    char **uris;
    size_t count;
    char *directory; /* of the broker, absolute; NULL: uris are used */
    bool named;      /* the directory was named, not found */
} places_t;

/* Why there is no connection. */
typedef struct absence {
    bool certain; /* nobody is there; else it may be worth waiting */
    char text[160];
    char hint[160];
} absence_t;

/* TMQ_INVALID with a text, unless uri is one of those that a client may connect to. */
int places_check (const char *uri, tmq_error_t *error);
/* From the options, else from the environment, else from the nearest .taskmq upward. */
int places_find (places_t *out, const tmq_client_options_t *options, tmq_error_t *error);
void places_free (places_t *self);
/* The endpoint for a connection; false with the reason if there is none. index: of uris. attempt
 * counts connections. */
bool places_uri (const places_t *self, size_t index, uint64_t attempt,
                 char out[PLACES_URI_BYTES_MAX + 1], absence_t *why);
/* Looks why a connection could not be made. May wait for 100 ms. */
void places_look (const places_t *self, const char *uri, absence_t *why);

#endif
