/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Principals whom a proxy names.
 *
 * A proxy that knows people otherwise (OAuth, client certificates) says who makes a request: by the
 * field Taskmq-Principal, "NAME", "NAME;roles=client,observer" or "NAME;roles=…;namespaces=a,b".
 * It is believed because it also shows a secret, by the field Taskmq-Proxy-Secret. Without roles it
 * is a client, without namespaces of the default one, as with new tokens. */
#ifndef TASKMQ_GATEWAY_AUTH_PROXIED_H
#define TASKMQ_GATEWAY_AUTH_PROXIED_H

#include "auth/tokens.h"

enum {
    PROXIED_MAX = 1000,     /* principals that are remembered, for their rates */
    PROXIED_TEXT_MAX = 800, /* characters of Taskmq-Principal */
    PROXY_SECRET_MIN = 16,  /* characters */
    PROXY_SECRET_MAX = 256
};

typedef struct proxied {
    bool on;                          /* there is a secret: */
    uint8_t secret[TOKEN_HASH_BYTES]; /* its hash */
    principal_t *list[PROXIED_MAX];
    size_t count;
} proxied_t;

/* Takes the secret: the only line of a file of mode 0600. False: error says why, and what was there
 * before stays. */
bool proxied_read (proxied_t *self, const char *path, char error[TOKENS_ERROR_SIZE]);
/* True if that is the secret. NULL is not. */
bool proxied_knows (const proxied_t *self, const char *secret);
/* Who that is, borrowed. NULL: *flaw (a sentence) tells why it is nobody; *flaw is NULL where there
 * is no room. Whoever has not made a request for longest is forgotten for a new one, unless all of
 * them have one under way. */
principal_t *proxied_find (proxied_t *self, const char *text, const char **flaw);
void proxied_clear (proxied_t *self);

#endif
