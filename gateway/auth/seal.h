/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the gateway hands out and takes back, so that it need not remember it: cookies, sessions,
 * cursors, the state of a question. Nobody can read or make such a text but who has gateway.key.
 *
 * A text is base64url, without padding, of a nonce (24 bytes) and of XChaCha20-Poly1305 over an
 * end (8 bytes, big endian, ms since the epoch; 0: never) and the contents. Its purpose is
 * authenticated with it: a text for one purpose is none for another. Changed in any character it is
 * none at all. The key is BLAKE2b-256 of the file's secret with the personalisation
 * "taskmq gateway " and a NUL.
 *
 * Contents say whose they are (seal knows no principals): who opens one compares. Losing the file
 * ends all that was handed out, and nothing else. Any thread: a seal_t
 * is not changed after it was read. */
#ifndef TASKMQ_GATEWAY_AUTH_SEAL_H
#define TASKMQ_GATEWAY_AUTH_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "key_file.h"

enum {
    SEAL_KEY_BYTES = 32,
    SEAL_CONTENTS_MAX = 4096, /* bytes that are sealed at a time */
    SEAL_TEXT_MAX = 5526      /* characters of the longest text: base64 of 24 + 8 + 4096 + 16 */
};

/* NAME, number (never another one: it is part of what is authenticated), what for. */
#define SEALS_MAP(X)                                                                               \
    X (COOKIE, 1, "the dashboard's session")                                                       \
    X (TICKET, 2, "the link that opens the dashboard once")                                        \
    X (MCP_SESSION, 3, "MCP-Session-Id")                                                           \
    X (MCP_STREAM, 4, "the id of an event of MCP")                                                 \
    X (MCP_STATE, 5, "requestState of MCP")                                                        \
    X (MCP_QUESTION, 6, "the id of a request to an MCP client")                                    \
    X (CURSOR, 7, "a page of a list")

typedef enum seal_purpose {
#define X(NAME, number, text) SEAL_##NAME = number,
    SEALS_MAP (X)
#undef X
} seal_purpose_t;

typedef enum seal_state {
    SEAL_GOOD,
    SEAL_FOREIGN, /* not of this key, not for this purpose, or changed */
    SEAL_EXPIRED  /* ours, and its end is over */
} seal_state_t;

typedef struct seal {
    uint8_t key[SEAL_KEY_BYTES];
} seal_t;

/* From a secret of 32 bytes. */
void seal_init (seal_t *out, const uint8_t secret[SEAL_KEY_BYTES]);
/* From the file; makes it (mode 0600) if there is none. False: it cannot be trusted, is no key, or
 * cannot be written; error names it. */
bool seal_read (seal_t *out, const char *path, char error[KEY_FILE_ERROR_SIZE]);
void seal_wipe (seal_t *self);

/* Appends the text for length bytes (up to SEAL_CONTENTS_MAX, else false). expires_ms: since the
 * epoch; 0: never. Exhausted memory is remembered by out. */
bool seal_close (const seal_t *self, bytes_t *out, seal_purpose_t purpose, const void *contents,
                 size_t length, int64_t expires_ms);
/* Appends the contents of a text to out, if SEAL_GOOD; else leaves out as it is. text may be any
 * bytes and NULL. now_ms: since the epoch. */
seal_state_t seal_open (const seal_t *self, bytes_t *out, seal_purpose_t purpose, const char *text,
                        int64_t now_ms);

#endif
