/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions of the page. A browser's EventSource and its links cannot say a token, so the page
 * exchanges it for a cookie: a sealed text with the hash of the token, its own id and its end.
 *
 * Nothing is kept for a session. It is good while its token is: a token that is removed ends its
 * sessions at the next reload. Only sessions that were ended, and tickets that were used, are
 * remembered: the last SESSIONS_ENDED_MAX of them, and of one token SESSIONS_ENDED_OWN_MAX, so that
 * fewer than eight tokens together make no other one's good again; until the process ends. */
#ifndef TASKMQ_GATEWAY_AUTH_SESSION_H
#define TASKMQ_GATEWAY_AUTH_SESSION_H

#include "auth/seal.h"
#include "auth/tokens.h"

enum {
    SESSION_ID_BYTES = 16,
    SESSIONS_ENDED_MAX = 1024,
    SESSIONS_ENDED_OWN_MAX = 128,
    SESSION_COOKIE_SIZE = 40,     /* its name: with __Host- and eight digits */
    SESSION_TICKET_MS = 60 * 1000 /* a link to the page is good for so long, and once */
};
/* Stands before a ticket where a token would be. */
#define SESSION_TICKET_PREFIX "tmqt_"

typedef struct session_ended {
    uint8_t id[SESSION_ID_BYTES];
    uint8_t hash[TOKEN_HASH_BYTES]; /* of its token */
    uint64_t number;                /* counted from 1; 0: none */
} session_ended_t;

typedef struct sessions {
    const seal_t *seal;
    bool secure; /* it is reached by https alone */
    char cookie[SESSION_COOKIE_SIZE];
    session_ended_t ended[SESSIONS_ENDED_MAX];
    uint64_t ended_count; /* ever */
} sessions_t;

/* seal is borrowed. Browsers keep cookies by the name of a machine, whatever the port: the name of
 * the cookie has eight digits that follow from the key, so that two gateways do not share one. */
void sessions_init (sessions_t *out, const seal_t *seal, bool secure);

/* Appends a sealed text that stands for the token with that hash. */
void session_make (const sessions_t *self, bytes_t *out, seal_purpose_t purpose,
                   const uint8_t hash[TOKEN_HASH_BYTES], int64_t expires_ms);
/* Whose it is; NULL: nobody's, its time is over, it was ended, or its token is gone. */
principal_t *session_find (const sessions_t *self, const tokens_t *tokens, seal_purpose_t purpose,
                           const char *text, int64_t now_ms);
/* It is good no more. Of a text that is no good it does nothing. */
void session_end (sessions_t *self, seal_purpose_t purpose, const char *text, int64_t now_ms);

/* The value of our cookie in the field Cookie, into out; false: it has none, or several. */
bool session_cookie (const sessions_t *self, const char *field, char out[SEAL_TEXT_MAX + 1]);
/* The field Set-Cookie. text "": the browser forgets it. */
void session_set_cookie (const sessions_t *self, bytes_t *out, const char *text, int64_t age_ms);

#endif
