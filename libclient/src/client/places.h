/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where the broker is: endpoints that were given or found, and whether somebody is there.
 *
 * Endpoints that stand in a broker's directory are read anew for each connection, because a broker
 * that was restarted may listen elsewhere. */
#ifndef TASKMQ_CLIENT_PLACES_H
#define TASKMQ_CLIENT_PLACES_H

#include "keys.h"
#include "taskmq.h"

enum {
    PLACES_FILE_MAX = 64, /* of a directory's file, where each door of one broker has a line */
    PLACES_URI_BYTES_MAX = 255,
    MECHANISM_BYTES = 20
};

/* An endpoint as ZeroMQ takes it, and what stood behind its '?'. */
typedef struct place {
    char uri[PLACES_URI_BYTES_MAX + 1];
    bool has_server_key;
    key_public_t server_key;
    bool insecure; /* to another machine without encryption, because somebody said so */
} place_t;

typedef struct places {
    place_t *list;
    size_t count;
    char *directory;    /* of the broker, absolute; NULL: the list is used */
    bool named;         /* the directory was named, not found */
    char told_by[256];  /* who said where, for people */
    char profile[4096]; /* the file that says the rest; empty: none */
    bool of_profile;    /* the endpoints are the profile's, and its server_key is theirs */
} places_t;

/* Why there is no connection. */
typedef struct absence {
    bool certain; /* nobody is there; else it may be worth waiting */
    char text[320];
    char hint[160];
} absence_t;

/* Reads "tcp://HOST:PORT" or "ipc://PATH", with "?server_key=tmqpk_…" or "?insecure" behind.
 * TMQ_INVALID with a text, unless it is one of those that a client may connect to. */
int places_parse (place_t *out, const char *uri, tmq_error_t *error);
/* The same address with the same words behind it. */
bool places_same (const place_t *one, const place_t *other);
/* True if a key can be used there, and (for another machine) if it must. */
bool places_is_tcp (const place_t *place);
bool places_is_far (const place_t *place);
/* What one more than TMQ_ENDPOINTS_MAX is answered: TMQ_INVALID. */
int places_too_many (const char *uri, tmq_error_t *error);
/* From the options, else from the environment, else from the nearest .taskmq upward, else from the
 * user's default profile, else the socket of the machine's broker. */
int places_find (places_t *out, const tmq_client_options_t *options, tmq_error_t *error);
void places_free (places_t *self);
/* The endpoint for a connection; false with the reason if there is none. index: of the list.
 * attempt counts connections since one was good: the first that a directory tells is the best. */
bool places_uri (const places_t *self, size_t index, uint64_t attempt, place_t *out,
                 absence_t *why);
/* Which mechanism ("NULL", "CURVE") the peer at a tcp address speaks; false if it cannot be told.
 * May wait for some times 100 ms. */
bool places_mechanism (const char *uri, char out[MECHANISM_BYTES + 1]);
/* Looks why a connection could not be made. May wait for 100 ms. */
void places_look (const places_t *self, const char *uri, absence_t *why);

#endif
