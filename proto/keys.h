/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* CURVE keys and invitations, and the texts that people copy.
 *
 * A text is a prefix that says what it is, and base32 (RFC 4648, lower case, no padding) of the
 * bytes and of four bytes of check: the first of BLAKE2b-256 over the prefix and the bytes. So it
 * is one word for a double click, means nothing to a shell, and a mistyped character is noticed.
 *
 * Pure, except for the random numbers of key_make and join_make; any thread. Parsers write a text
 * for people into error, which may be NULL; out is then untouched. No error shows a secret. The
 * caller wipes what is secret (sodium_memzero) when it is done; the functions wipe their own. */
#ifndef TASKMQ_PROTO_KEYS_H
#define TASKMQ_PROTO_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEY_BYTES = 32,
    KEY_TEXT_LENGTH = 64, /* tmqpk_ or tmqsk_, then 58 characters for 32 + 4 bytes */
    KEY_TEXT_SIZE = KEY_TEXT_LENGTH + 1,
    KEY_Z85_LENGTH = 40,
    KEY_Z85_SIZE = KEY_Z85_LENGTH + 1,
    KEY_ERROR_SIZE = 200,
    JOIN_SEED_BYTES = 16,
    JOIN_PLACE_BYTES_MAX = 259, /* a host name of 253 bytes, a colon and a port; or several */
    JOIN_PLACES_MAX = 4,
    JOIN_TEXT_SIZE = 509 /* of an invitation with the longest place, and the NUL */
};

typedef struct key_public {
    uint8_t bytes[KEY_BYTES];
} key_public_t;
typedef struct key_secret {
    uint8_t bytes[KEY_BYTES];
} key_secret_t;

/* A new pair. */
void key_make (key_public_t *public_key, key_secret_t *secret);
/* The public key that belongs to a secret one. */
void key_public_of (key_public_t *out, const key_secret_t *secret);
bool key_public_equal (const key_public_t *a, const key_public_t *b);

/* "tmqpk_…" and "tmqsk_…". */
void key_text_public (char out[KEY_TEXT_SIZE], const key_public_t *key);
void key_text_secret (char out[KEY_TEXT_SIZE], const key_secret_t *key);
bool key_parse_public (key_public_t *out, const char *text, char error[KEY_ERROR_SIZE]);
bool key_parse_secret (key_secret_t *out, const char *text, char error[KEY_ERROR_SIZE]);

/* ZeroMQ's own form (RFC 32), for other clients. */
void key_z85 (char out[KEY_Z85_SIZE], const uint8_t key[KEY_BYTES]);
/* A secret from elsewhere: "tmqsk_…", 40 characters of Z85, or the text of a certificate as CZMQ's
 * zcert writes it, in which a public key has to fit the secret one. */
bool key_import (key_secret_t *out, const char *text, char error[KEY_ERROR_SIZE]);

/* What `taskctl invite` makes and `taskctl join` takes: where the broker is, which key it has, and
 * a secret that is good for getting a key of one's own. */
typedef struct join {
    key_public_t server;
    uint8_t seed[JOIN_SEED_BYTES];        /* secret */
    char place[JOIN_PLACE_BYTES_MAX + 1]; /* HOST:PORT, of several brokers with commas between */
} join_t;

/* The text is HOST:PORT, as an invitation may have it. */
bool join_place_check (const char *place, char error[KEY_ERROR_SIZE]);
/* An invitation with a new seed. False if place is no HOST:PORT. */
bool join_make (join_t *out, const key_public_t *server, const char *place,
                char error[KEY_ERROR_SIZE]);
/* "tmqjoin_…": a version (1), the server's key, the seed, the place, the check. */
void join_text (char out[JOIN_TEXT_SIZE], const join_t *join);
bool join_parse (join_t *out, const char *text, char error[KEY_ERROR_SIZE]);
/* The pair that the seed stands for: the secret is BLAKE2b-256 of the seed with the
 * personalisation "taskmq invite 1" (and a NUL). */
void join_keys (key_public_t *public_key, key_secret_t *secret, const join_t *join);

#endif
