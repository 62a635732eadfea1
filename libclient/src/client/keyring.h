/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The keys of a client: its own pair, and those by which it knows the broker.
 *
 * The file of the own key is read anew for each connection, so that a program that runs for long
 * follows when the key is changed. When the broker has announced its next key both are tried, and a
 * profile that the client may write remembers it.
 *
 * Only the thread that drives the client calls in here, except keyring_open and keyring_close. */
#ifndef TASKMQ_CLIENT_KEYRING_H
#define TASKMQ_CLIENT_KEYRING_H

#include "base/rights.h"
#include "client/places.h"
#include "client/transport.h"
#include "keys.h"

typedef struct keyring {
    char *file; /* of the own key; NULL: it was given, or there is none */
    bool has_own;
    key_secret_t secret;
    key_public_t own;
    bool has_server; /* for endpoints that do not name theirs */
    key_public_t server;
    bool far_only;        /* … and only for those that need one */
    bool in_profile;      /* … it is the profile's, which learns when it changes */
    bool has_next;        /* the broker announced that this key … */
    key_public_t next_of; /* … of it … */
    key_public_t next;    /* … will become this one */
    bool try_next;
    char profile[4096];
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* the profile's namespace, or empty */
    unsigned silences;                /* handshakes in a row that ended without a word */
} keyring_t;

/* Gathers the keys from options, environment and profile. TMQ_INVALID with a text for one that
 * cannot be used; an endpoint to another machine without the broker's key is one. */
int keyring_open (keyring_t *out, const places_t *places, const tmq_client_options_t *options,
                  tmq_error_t *error);
void keyring_close (keyring_t *self);

enum { KEYRING_URI_SIZE = PLACES_URI_BYTES_MAX + KEY_TEXT_SIZE + 16 };
/* The place as another client takes it: with the broker's key, if it has one. */
void keyring_uri (const keyring_t *self, const place_t *place, char out[KEYRING_URI_SIZE]);
/* Whether the connection to that place is by CURVE, and with which keys; the caller wipes *out.
 * False with the reason if it cannot be made. */
bool keyring_use (keyring_t *self, const place_t *place, curve_t *out, bool *is_curve,
                  absence_t *why);
/* The key in the file is no longer the one that was used. */
bool keyring_changed (keyring_t *self, const key_public_t *used);
/* A handshake ended without a word; true from the third in a row on. Next time the broker's other
 * key is tried, if there is one. */
bool keyring_silence (keyring_t *self);
/* The broker has welcomed us on a connection by CURVE, and said these things. */
void keyring_welcome (keyring_t *self, const key_public_t *server, const core_rights_t *rights);

#endif
