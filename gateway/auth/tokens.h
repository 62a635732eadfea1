/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tokens and whom they stand for.
 *
 * The file gateway.tokens has a line for each: name, roles, namespaces, BLAKE2b-256 of the token in
 * hexadecimal, and when it ends ("never", or a time). The token itself is shown once and kept
 * nowhere. The file has mode 0600; one that others may read is refused. */
#ifndef TASKMQ_GATEWAY_AUTH_TOKENS_H
#define TASKMQ_GATEWAY_AUTH_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/rate.h"
#include "base/account.h"
#include "taskmq_types.h"

enum {
    TOKENS_MAX = 1000,
    TOKEN_NAMESPACES_MAX = 8,
    TOKEN_HASH_BYTES = 32,
    TOKEN_SIZE = 48, /* tmq_ and 43 characters of base64url, and a NUL */
    TOKENS_ERROR_SIZE = 512
};

/* Who makes a request. Lives as long as somebody refers to it. */
typedef struct principal {
    char name[TMQ_NAME_LENGTH_MAX + 1];
    unsigned roles;
    char namespaces[TOKEN_NAMESPACES_MAX][TMQ_NAME_LENGTH_MAX + 1];
    size_t namespaces_count;
    uint8_t hash[TOKEN_HASH_BYTES];
    int64_t expires_ms; /* since the epoch; 0: never */
    bool proxied;       /* a proxy names it; it has no token */
    rate_t rate;        /* of requests */
    rate_t calls;       /* of tools */
    rate_t time;        /* of the loop, in us */
    uint64_t mean_us;   /* that a request takes of it */
    uint64_t requests;  /* under way */
    uint64_t looks;     /* of their listeners at tasks, under way */
    account_t *account; /* the memory of their bodies and answers */
    size_t references;
} principal_t;

/* A copy of its own, referred to once; NULL when memory is exhausted. */
principal_t *principal_new (const principal_t *from);
void principal_release (principal_t *self);
/* NULL: good; else what is wrong, a sentence. roles and namespaces: "a,b". */
const char *principal_fill (principal_t *out, const char *name, const char *roles,
                            const char *namespaces);
bool principal_has (const principal_t *self, const char *ns);

/* The one that the first start makes. */
#define FIRST_TOKEN "local"

typedef struct tokens {
    principal_t *list[TOKENS_MAX];
    size_t count;
} tokens_t;

/* The text of a file of at most 1 MiB that nobody else may read, to be freed. NULL: error says why;
 * it is empty when there is no file. */
char *private_file_load (const char *path, char error[TOKENS_ERROR_SIZE]);

/* A file that is not there is one without tokens. False, with *out empty: it is no good, error says
 * where. */
bool tokens_read (tokens_t *out, const char *path, char error[TOKENS_ERROR_SIZE]);
bool tokens_write (const tokens_t *self, const char *path, char error[TOKENS_ERROR_SIZE]);
/* Takes from the table before it what is to go on: how much of its rate each principal used. */
void tokens_inherit (tokens_t *self, const tokens_t *before);
void tokens_clear (tokens_t *self);
/* Adds a new token and tells it. False: error says why. namespaces: "a,b". */
bool tokens_add (tokens_t *self, char token[TOKEN_SIZE], const char *name, const char *roles,
                 const char *namespaces, int64_t expires_ms, char error[TOKENS_ERROR_SIZE]);
/* False: there is none of that name. */
bool tokens_remove (tokens_t *self, const char *name);
/* NULL: there is none of that name. */
const principal_t *tokens_name (const tokens_t *self, const char *name);
/* True if a token of the table still gives what that one gave. */
bool tokens_stand_by (const tokens_t *self, const principal_t *principal, int64_t now_ms);
/* Whose token that is; NULL: nobody's, or its time is over. */
principal_t *tokens_find_hash (const tokens_t *self, const uint8_t hash[TOKEN_HASH_BYTES],
                               int64_t now_ms);
principal_t *tokens_find (const tokens_t *self, const char *token, int64_t now_ms);

#endif
