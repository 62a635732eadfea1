/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/session.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "ids.h"

/* What is sealed. */
typedef struct contents {
    uint8_t id[SESSION_ID_BYTES];
    uint8_t hash[TOKEN_HASH_BYTES];
} contents_t;

void sessions_init (sessions_t *out, const seal_t *seal, bool secure)
{
    static const char what[] = "cookie";
    uint8_t hash[crypto_generichash_BYTES_MIN];
    char digits[9];
    memset (out, 0, sizeof *out);
    out->seal = seal;
    out->secure = secure;
    crypto_generichash (hash, sizeof hash, (const uint8_t *) what, sizeof what, seal->key,
                        sizeof seal->key);
    hex_encode (digits, hash, 4);
    snprintf (out->cookie, sizeof out->cookie, "%stmq_session_%s", secure ? "__Host-" : "", digits);
}

void session_make (const sessions_t *self, bytes_t *out, seal_purpose_t purpose,
                   const uint8_t hash[TOKEN_HASH_BYTES], int64_t expires_ms)
{
    contents_t contents;
    randombytes_buf (contents.id, sizeof contents.id);
    memcpy (contents.hash, hash, sizeof contents.hash);
    seal_close (self->seal, out, purpose, &contents, sizeof contents, expires_ms);
}

static bool open_text (const sessions_t *self, contents_t *out, seal_purpose_t purpose,
                       const char *text, int64_t now_ms)
{
    bytes_t bytes = BYTES_INIT;
    const bool good = seal_open (self->seal, &bytes, purpose, text, now_ms) == SEAL_GOOD &&
                      !bytes.failed && bytes.length == sizeof *out;
    if (good)
        memcpy (out, bytes.data, sizeof *out);
    bytes_free (&bytes);
    return good;
}

static bool has_ended (const sessions_t *self, const uint8_t id[SESSION_ID_BYTES])
{
    for (size_t i = 0; i < SESSIONS_ENDED_MAX; i++)
        if (self->ended[i].number > 0 && memcmp (self->ended[i].id, id, SESSION_ID_BYTES) == 0)
            return true;
    return false;
}

principal_t *session_find (const sessions_t *self, const tokens_t *tokens, seal_purpose_t purpose,
                           const char *text, int64_t now_ms)
{
    contents_t contents;
    if (!open_text (self, &contents, purpose, text, now_ms) || has_ended (self, contents.id))
        return NULL;
    return tokens_find_hash (tokens, contents.hash, now_ms);
}

/* Whose place the next one of a token gets: the oldest of its own once it has its part, else that
 * of all, or an empty one. */
static session_ended_t *place_of (sessions_t *self, const uint8_t hash[TOKEN_HASH_BYTES])
{
    session_ended_t *oldest = &self->ended[0], *own = NULL;
    size_t count = 0;
    for (session_ended_t *at = self->ended; at < self->ended + SESSIONS_ENDED_MAX; at++) {
        if (at->number < oldest->number)
            oldest = at;
        if (at->number == 0 || memcmp (at->hash, hash, TOKEN_HASH_BYTES) != 0)
            continue;
        count++;
        if (own == NULL || at->number < own->number)
            own = at;
    }
    return count < SESSIONS_ENDED_OWN_MAX ? oldest : own;
}

void session_end (sessions_t *self, seal_purpose_t purpose, const char *text, int64_t now_ms)
{
    contents_t contents;
    if (!open_text (self, &contents, purpose, text, now_ms))
        return;
    session_ended_t *place = place_of (self, contents.hash);
    memcpy (place->id, contents.id, sizeof place->id);
    memcpy (place->hash, contents.hash, sizeof place->hash);
    place->number = ++self->ended_count;
}

/* The cookie. */

bool session_cookie (const sessions_t *self, const char *field, char out[SEAL_TEXT_MAX + 1])
{
    const size_t name = strlen (self->cookie);
    size_t found = 0;
    while (field != NULL && *field != '\0') {
        field += strspn (field, " \t;");
        const size_t length = strcspn (field, ";");
        if (strncmp (field, self->cookie, name) == 0 && field[name] == '=' &&
            length - name - 1 <= SEAL_TEXT_MAX) {
            memcpy (out, field + name + 1, length - name - 1);
            out[length - name - 1] = '\0';
            found++;
        }
        field += length;
    }
    return found == 1;
}

void session_set_cookie (const sessions_t *self, bytes_t *out, const char *text, int64_t age_ms)
{
    char rest[128];
    snprintf (rest, sizeof rest, "; Path=/; Max-Age=%" PRId64 "; HttpOnly; SameSite=Strict%s",
              age_ms / 1000, self->secure ? "; Secure" : "");
    bytes_append_text (out, self->cookie);
    bytes_append_byte (out, '=');
    bytes_append_text (out, text);
    bytes_append_text (out, rest);
}
