/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "auth/seal.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "keys.h"

enum {
    NONCE_BYTES = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG_BYTES = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    END_BYTES = 8,
    PLAIN_MAX = END_BYTES + SEAL_CONTENTS_MAX,
    SEALED_MAX = NONCE_BYTES + PLAIN_MAX + TAG_BYTES
};
_Static_assert(SEAL_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "of the cipher");
_Static_assert((int) SEAL_KEY_BYTES == (int) KEY_BYTES, "of the file");
_Static_assert(SEAL_TEXT_MAX == (SEALED_MAX * 8 + 5) / 6, "without padding");

/* What is authenticated beside the contents. */
static void write_purpose (uint8_t out[2], seal_purpose_t purpose)
{
    out[0] = 1; /* of the format */
    out[1] = (uint8_t) purpose;
}

static void write_end (uint8_t out[END_BYTES], int64_t ms)
{
    for (int i = 0; i < END_BYTES; i++)
        out[i] = (uint8_t) ((uint64_t) ms >> (56 - 8 * i));
}

static int64_t read_end (const uint8_t in[END_BYTES])
{
    uint64_t ms = 0;
    for (int i = 0; i < END_BYTES; i++)
        ms = ms << 8 | in[i];
    return (int64_t) ms;
}

/* The key. */

void seal_init (seal_t *out, const uint8_t secret[SEAL_KEY_BYTES])
{
    static const uint8_t person[crypto_generichash_blake2b_PERSONALBYTES] = "taskmq gateway ";
    crypto_generichash_blake2b_salt_personal (out->key, sizeof out->key, NULL, 0, secret,
                                              SEAL_KEY_BYTES, NULL, person);
}

static int make_file (const char *path, char error[KEY_FILE_ERROR_SIZE])
{
    static const char comment[] =
        "# Seals what taskmq-gateway hands out: sessions of the page and\n"
        "# of MCP, cursors. Without this file they all end.\n";
    char text[sizeof comment + KEY_TEXT_SIZE + 1];
    char line[KEY_TEXT_SIZE];
    key_secret_t secret;
    randombytes_buf (secret.bytes, sizeof secret.bytes);
    key_text_secret (line, &secret);
    const int length = snprintf (text, sizeof text, "%s%s\n", comment, line);
    const int code = secret_file_write (path, text, (size_t) length, false, error);
    sodium_memzero (&secret, sizeof secret);
    sodium_memzero (line, sizeof line);
    sodium_memzero (text, sizeof text);
    return code;
}

bool seal_read (seal_t *out, const char *path, char error[KEY_FILE_ERROR_SIZE])
{
    key_secret_t secret;
    int code = key_file_read (&secret, path, error);
    if (code == ENOENT) {
        code = make_file (path, error);
        /* Somebody else may have been quicker: theirs is as good. */
        if (code == 0 || code == EEXIST)
            code = key_file_read (&secret, path, error);
    }
    if (code != 0)
        return false;
    seal_init (out, secret.bytes);
    sodium_memzero (&secret, sizeof secret);
    return true;
}

void seal_wipe (seal_t *self)
{
    sodium_memzero (self, sizeof *self);
}

/* Closing and opening. */

bool seal_close (const seal_t *self, bytes_t *out, seal_purpose_t purpose, const void *contents,
                 size_t length, int64_t expires_ms)
{
    uint8_t plain[PLAIN_MAX], sealed[SEALED_MAX], with[2];
    char text[SEAL_TEXT_MAX + 1];
    unsigned long long tagged = 0;
    if (length > SEAL_CONTENTS_MAX)
        return false;
    write_purpose (with, purpose);
    write_end (plain, expires_ms);
    if (length > 0)
        memcpy (plain + END_BYTES, contents, length);
    randombytes_buf (sealed, NONCE_BYTES);
    crypto_aead_xchacha20poly1305_ietf_encrypt (sealed + NONCE_BYTES, &tagged, plain,
                                                END_BYTES + length, with, sizeof with, NULL, sealed,
                                                self->key);
    sodium_bin2base64 (text, sizeof text, sealed, NONCE_BYTES + (size_t) tagged,
                       sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    bytes_append_text (out, text);
    sodium_memzero (plain, sizeof plain);
    return true;
}

/* The decoder of libsodium takes 0xff for an underscore: then two texts would be one. */
static bool is_base64url (const char *text, size_t length)
{
    return strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
           length;
}

seal_state_t seal_open (const seal_t *self, bytes_t *out, seal_purpose_t purpose, const char *text,
                        int64_t now_ms)
{
    uint8_t plain[PLAIN_MAX], sealed[SEALED_MAX], with[2];
    unsigned long long length = 0;
    size_t got = 0;
    const size_t characters = text != NULL ? strlen (text) : 0;
    if (characters == 0 || characters > SEAL_TEXT_MAX || !is_base64url (text, characters) ||
        sodium_base642bin (sealed, sizeof sealed, text, characters, NULL, &got, NULL,
                           sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        got < NONCE_BYTES + END_BYTES + TAG_BYTES)
        return SEAL_FOREIGN;
    write_purpose (with, purpose);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt (plain, &length, NULL, sealed + NONCE_BYTES,
                                                    got - NONCE_BYTES, with, sizeof with, sealed,
                                                    self->key) != 0)
        return SEAL_FOREIGN;
    const int64_t end = read_end (plain);
    const bool over = end != 0 && end <= now_ms;
    if (!over)
        bytes_append (out, plain + END_BYTES, (size_t) length - END_BYTES);
    sodium_memzero (plain, sizeof plain);
    return over ? SEAL_EXPIRED : SEAL_GOOD;
}
