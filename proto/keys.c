/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "keys.h"

#include <ctype.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHECK_BYTES = 4,
    JOIN_VERSION = 1,
    JOIN_FIXED_BYTES = 1 + KEY_BYTES + JOIN_SEED_BYTES,
    BODY_BYTES_MAX = JOIN_FIXED_BYTES + JOIN_PLACE_BYTES_MAX + CHECK_BYTES,
    HASH_BYTES = 32
};

static const char PUBLIC_PREFIX[] = "tmqpk_";
static const char SECRET_PREFIX[] = "tmqsk_";
static const char JOIN_PREFIX[] = "tmqjoin_";
static const char BASE32[] = "abcdefghijklmnopqrstuvwxyz234567";

static bool refuse (char error[KEY_ERROR_SIZE], const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static bool refuse (char error[KEY_ERROR_SIZE], const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list list;
    va_start (list, format);
    vsnprintf (error, KEY_ERROR_SIZE, format, list);
    va_end (list);
    return false;
}

/* Base32. */

static size_t base32_length (size_t bytes)
{
    return (bytes * 8 + 4) / 5;
}

static void base32_encode (char *out, const uint8_t *bytes, size_t count)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < count; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 5; held -= 5)
            *out++ = BASE32[bits >> (held - 5) & 31];
    }
    if (held > 0)
        *out++ = BASE32[bits << (5 - held) & 31];
    *out = '\0';
}

/* The value of a character, -1 for one that does not belong. */
static int base32_value (char character)
{
    const char *at = character != '\0' ? strchr (BASE32, character) : NULL;
    return at != NULL ? (int) (at - BASE32) : -1;
}

/* length characters that all belong. False if the bits behind the last whole byte are not 0. */
static bool base32_decode (uint8_t *out, const char *text, size_t length)
{
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < length; i++) {
        bits = bits << 5 | (uint32_t) base32_value (text[i]);
        held += 5;
        if (held >= 8) {
            held -= 8;
            *out++ = (uint8_t) (bits >> held);
        }
    }
    return (bits & ((1U << held) - 1)) == 0;
}

/* Texts: prefix, bytes, check. */

static void check_of (uint8_t out[CHECK_BYTES], const char *prefix, const uint8_t *bytes,
                      size_t count)
{
    crypto_generichash_state state;
    uint8_t hash[HASH_BYTES];
    crypto_generichash_init (&state, NULL, 0, sizeof hash);
    crypto_generichash_update (&state, (const uint8_t *) prefix, strlen (prefix));
    crypto_generichash_update (&state, bytes, count);
    crypto_generichash_final (&state, hash, sizeof hash);
    memcpy (out, hash, CHECK_BYTES);
    sodium_memzero (&state, sizeof state);
}

/* bytes has room for the check behind count. */
static void write_text (char *out, const char *prefix, uint8_t *bytes, size_t count)
{
    check_of (bytes + count, prefix, bytes, count);
    memcpy (out, prefix, strlen (prefix) + 1);
    base32_encode (out + strlen (prefix), bytes, count + CHECK_BYTES);
    sodium_memzero (bytes, count + CHECK_BYTES);
}

/* Decodes length characters, at most those of BODY_BYTES_MAX, and compares the check. */
static bool decode (uint8_t *out, const char *prefix, const char *body, size_t length)
{
    uint8_t check[CHECK_BYTES];
    const size_t count = length * 5 / 8 - CHECK_BYTES;
    if (!base32_decode (out, body, length))
        return false;
    check_of (check, prefix, out, count);
    return memcmp (check, out + count, CHECK_BYTES) == 0;
}

/* Which single character is wrong (counted from 0), or length if it is more than one. */
static size_t find_typo (const char *prefix, const char *body, size_t length)
{
    char copy[JOIN_TEXT_SIZE];
    uint8_t bytes[BODY_BYTES_MAX];
    size_t found = length;
    memcpy (copy, body, length);
    for (size_t at = 0; at < length && found == length; at++) {
        for (const char *other = BASE32; *other != '\0' && found == length; other++) {
            copy[at] = *other;
            if (decode (bytes, prefix, copy, length))
                found = at;
        }
        copy[at] = body[at];
    }
    sodium_memzero (copy, sizeof copy);
    sodium_memzero (bytes, sizeof bytes);
    return found;
}

static const char *kind_of (const char *prefix)
{
    return prefix == PUBLIC_PREFIX   ? "a public key"
           : prefix == SECRET_PREFIX ? "a secret key"
                                     : "an invitation";
}

static bool refuse_prefix (const char *wanted, const char *text, char error[KEY_ERROR_SIZE])
{
    const char *const prefixes[] = {PUBLIC_PREFIX, SECRET_PREFIX, JOIN_PREFIX};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp (text, prefixes[i], strlen (prefixes[i])) == 0)
            return refuse (error, "%s is needed (%s…), this is %s (%s…)", kind_of (wanted), wanted,
                           kind_of (prefixes[i]), prefixes[i]);
    return refuse (error, "%s begins with %s", kind_of (wanted), wanted);
}

static bool refuse_body (const char *prefix, const char *body, size_t length,
                         char error[KEY_ERROR_SIZE])
{
    if (error == NULL)
        return false; /* nobody reads where: to find it takes thousands of hashes */
    const size_t at = find_typo (prefix, body, length);
    if (at < length)
        return refuse (error, "%s with a typo: character %zu is wrong", kind_of (prefix),
                       strlen (prefix) + at + 1);
    return refuse (error, "%s with a typo: several characters are wrong or missing",
                   kind_of (prefix));
}

/* Reads the bytes before the check into out, which has room for it; *count of them. The length of
 * the text is between two numbers of bytes. */
static bool read_text (uint8_t *out, size_t *count, const char *prefix, const char *text,
                       size_t bytes_min, size_t bytes_max, char error[KEY_ERROR_SIZE])
{
    const size_t skip = strlen (prefix);
    if (strncmp (text, prefix, skip) != 0)
        return refuse_prefix (prefix, text, error);
    const char *body = text + skip;
    const size_t length = strlen (body);
    for (size_t i = 0; i < length && i < JOIN_TEXT_SIZE; i++)
        if (base32_value (body[i]) < 0)
            return refuse (error, "%s with a typo: character %zu is none of a-z and 2-7",
                           kind_of (prefix), skip + i + 1);
    if (length < base32_length (bytes_min + CHECK_BYTES) ||
        length > base32_length (bytes_max + CHECK_BYTES))
        return bytes_min == bytes_max
                   ? refuse (error, "%s has %zu characters, this text has %zu", kind_of (prefix),
                             skip + base32_length (bytes_min + CHECK_BYTES), skip + length)
                   : refuse (error, "%s that was cut: it has only %zu characters", kind_of (prefix),
                             skip + length);
    *count = length * 5 / 8 - CHECK_BYTES;
    if (base32_length (*count + CHECK_BYTES) != length || !decode (out, prefix, body, length))
        return refuse_body (prefix, body, length, error);
    return true;
}

/* Keys. */

void key_make (key_public_t *public_key, key_secret_t *secret)
{
    randombytes_buf (secret->bytes, KEY_BYTES);
    key_public_of (public_key, secret);
}

void key_public_of (key_public_t *out, const key_secret_t *secret)
{
    crypto_scalarmult_base (out->bytes, secret->bytes);
}

bool key_public_equal (const key_public_t *a, const key_public_t *b)
{
    return memcmp (a->bytes, b->bytes, KEY_BYTES) == 0;
}

static void text_of (char out[KEY_TEXT_SIZE], const char *prefix, const uint8_t key[KEY_BYTES])
{
    uint8_t bytes[KEY_BYTES + CHECK_BYTES];
    memcpy (bytes, key, KEY_BYTES);
    write_text (out, prefix, bytes, KEY_BYTES);
}

static bool parse (uint8_t key[KEY_BYTES], const char *prefix, const char *text,
                   char error[KEY_ERROR_SIZE])
{
    uint8_t bytes[KEY_BYTES + CHECK_BYTES];
    size_t count;
    const bool good = read_text (bytes, &count, prefix, text, KEY_BYTES, KEY_BYTES, error);
    if (good)
        memcpy (key, bytes, KEY_BYTES);
    sodium_memzero (bytes, sizeof bytes);
    return good;
}

void key_text_public (char out[KEY_TEXT_SIZE], const key_public_t *key)
{
    text_of (out, PUBLIC_PREFIX, key->bytes);
}

void key_text_secret (char out[KEY_TEXT_SIZE], const key_secret_t *key)
{
    text_of (out, SECRET_PREFIX, key->bytes);
}

bool key_parse_public (key_public_t *out, const char *text, char error[KEY_ERROR_SIZE])
{
    return parse (out->bytes, PUBLIC_PREFIX, text, error);
}

bool key_parse_secret (key_secret_t *out, const char *text, char error[KEY_ERROR_SIZE])
{
    return parse (out->bytes, SECRET_PREFIX, text, error);
}

/* Z85: five characters for four bytes. */

static const char Z85[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          ".-:+=^!/*?&<>()[]{}@%$#";

void key_z85 (char out[KEY_Z85_SIZE], const uint8_t key[KEY_BYTES])
{
    for (size_t i = 0; i < KEY_BYTES; i += 4) {
        uint32_t value = (uint32_t) key[i] << 24 | (uint32_t) key[i + 1] << 16 |
                         (uint32_t) key[i + 2] << 8 | key[i + 3];
        for (int digit = 4; digit >= 0; digit--, value /= 85)
            out[i / 4 * 5 + (size_t) digit] = Z85[value % 85];
    }
    out[KEY_Z85_LENGTH] = '\0';
}

/* Reads KEY_Z85_LENGTH characters. */
static bool read_z85 (uint8_t out[KEY_BYTES], const char *text)
{
    for (size_t i = 0; i < KEY_BYTES; i += 4) {
        uint64_t value = 0;
        for (size_t digit = 0; digit < 5; digit++) {
            const char character = text[i / 4 * 5 + digit];
            const char *at = character != '\0' ? strchr (Z85, character) : NULL;
            if (at == NULL)
                return false;
            value = value * 85 + (uint64_t) (at - Z85);
        }
        if (value > UINT32_MAX)
            return false;
        for (size_t byte = 0; byte < 4; byte++)
            out[i + byte] = (uint8_t) (value >> (24 - 8 * byte));
    }
    return true;
}

/* The value of `name = "…"` in a certificate: 40 characters of Z85. False if there is none. */
static bool read_certificate (uint8_t out[KEY_BYTES], const char *text, const char *name)
{
    const char *at = strstr (text, name);
    if (at == NULL)
        return false;
    at += strlen (name);
    at += strspn (at, " \t");
    if (*at++ != '=')
        return false;
    at += strspn (at, " \t");
    at += *at == '"'; /* no more: a key may begin with '=' */
    return strnlen (at, KEY_Z85_LENGTH) == KEY_Z85_LENGTH && read_z85 (out, at) &&
           strchr ("\" \t\r\n", at[KEY_Z85_LENGTH]) != NULL;
}

static bool import_certificate (key_secret_t *out, const char *text, char error[KEY_ERROR_SIZE])
{
    key_secret_t secret = {0};
    key_public_t stated = {0};
    key_public_t real;
    if (!read_certificate (secret.bytes, text, "secret-key")) {
        sodium_memzero (&secret, sizeof secret); /* it may hold the first half of one */
        return refuse (error, "the certificate has no secret-key: the file that ends with _secret "
                              "has it");
    }
    key_public_of (&real, &secret);
    const bool fits =
        !read_certificate (stated.bytes, text, "public-key") || key_public_equal (&stated, &real);
    if (fits)
        *out = secret;
    sodium_memzero (&secret, sizeof secret);
    return fits || refuse (error, "the certificate's public-key does not belong to its secret-key");
}

bool key_import (key_secret_t *out, const char *text, char error[KEY_ERROR_SIZE])
{
    key_secret_t secret;
    if (strstr (text, "-key") != NULL)
        return import_certificate (out, text, error);
    if (strlen (text) != KEY_Z85_LENGTH)
        return key_parse_secret (out, text, error);
    const bool good = read_z85 (secret.bytes, text);
    if (good)
        *out = secret;
    sodium_memzero (&secret, sizeof secret);
    return good || refuse (error, "40 characters, but not all of them are Z85");
}

/* Invitations. */

/* What may stand in HOST:PORT, IPv6 in brackets; who connects looks more closely. */
static bool one_is_good (const char *place, size_t length, char error[KEY_ERROR_SIZE])
{
    const char *colon = memrchr (place, ':', length);
    if (colon == NULL || colon == place)
        return refuse (error, "an address is HOST:PORT, at most %d characters",
                       JOIN_PLACE_BYTES_MAX);
    for (size_t i = 0; i < length; i++)
        if (!isalnum ((unsigned char) place[i]) &&
            (place[i] == '\0' || strchr ("._-:%[]", place[i]) == NULL))
            return refuse (error, "an address is HOST:PORT; character %zu belongs to neither",
                           i + 1);
    const size_t digits = length - (size_t) (colon + 1 - place);
    unsigned long port = 0;
    for (size_t i = 1; i <= digits && i <= 6; i++)
        port = isdigit ((unsigned char) colon[i]) ? port * 10 + (unsigned long) (colon[i] - '0')
                                                  : 65536 * 10;
    if (digits == 0 || port < 1 || port > 65535)
        return refuse (error, "an address is HOST:PORT, with a port from 1 to 65535");
    return true;
}

/* One, or those of several brokers of which one owns the tasks, with commas between. */
static bool place_is_good (const char *place, size_t length, char error[KEY_ERROR_SIZE])
{
    size_t count = 0;
    if (length > JOIN_PLACE_BYTES_MAX)
        return refuse (error, "an address is HOST:PORT; all have at most %d characters",
                       JOIN_PLACE_BYTES_MAX);
    for (size_t at = 0; at <= length; count++) {
        const char *comma = memchr (place + at, ',', length - at);
        const size_t end = comma == NULL ? length : (size_t) (comma - place);
        if (count == JOIN_PLACES_MAX)
            return refuse (error, "more than %d addresses HOST:PORT", JOIN_PLACES_MAX);
        if (!one_is_good (place + at, end - at, error))
            return false;
        at = end + 1;
    }
    return true;
}

bool join_place_check (const char *place, char error[KEY_ERROR_SIZE])
{
    return place_is_good (place, strlen (place), error);
}

bool join_make (join_t *out, const key_public_t *server, const char *place,
                char error[KEY_ERROR_SIZE])
{
    if (!join_place_check (place, error))
        return false;
    out->server = *server;
    randombytes_buf (out->seed, sizeof out->seed);
    snprintf (out->place, sizeof out->place, "%s", place);
    return true;
}

void join_text (char out[JOIN_TEXT_SIZE], const join_t *join)
{
    uint8_t bytes[BODY_BYTES_MAX] = {JOIN_VERSION};
    const size_t length = strnlen (join->place, JOIN_PLACE_BYTES_MAX);
    memcpy (bytes + 1, join->server.bytes, KEY_BYTES);
    memcpy (bytes + 1 + KEY_BYTES, join->seed, JOIN_SEED_BYTES);
    memcpy (bytes + JOIN_FIXED_BYTES, join->place, length);
    write_text (out, JOIN_PREFIX, bytes, JOIN_FIXED_BYTES + length);
}

bool join_parse (join_t *out, const char *text, char error[KEY_ERROR_SIZE])
{
    uint8_t bytes[BODY_BYTES_MAX] = {0};
    size_t count = 0;
    bool good = read_text (bytes, &count, JOIN_PREFIX, text, JOIN_FIXED_BYTES + 3,
                           BODY_BYTES_MAX - CHECK_BYTES, error);
    if (good && bytes[0] != JOIN_VERSION)
        good = refuse (error, "an invitation of version %d; this program knows version %d",
                       bytes[0], JOIN_VERSION);
    const char *place = (const char *) bytes + JOIN_FIXED_BYTES;
    good = good && place_is_good (place, count - JOIN_FIXED_BYTES, error);
    if (good) {
        memset (out, 0, sizeof *out);
        memcpy (out->server.bytes, bytes + 1, KEY_BYTES);
        memcpy (out->seed, bytes + 1 + KEY_BYTES, JOIN_SEED_BYTES);
        memcpy (out->place, place, count - JOIN_FIXED_BYTES);
    }
    sodium_memzero (bytes, sizeof bytes);
    return good;
}

void join_keys (key_public_t *public_key, key_secret_t *secret, const join_t *join)
{
    static const uint8_t personal[crypto_generichash_blake2b_PERSONALBYTES] = "taskmq invite 1";
    crypto_generichash_blake2b_salt_personal (secret->bytes, KEY_BYTES, join->seed, JOIN_SEED_BYTES,
                                              NULL, 0, NULL, personal);
    key_public_of (public_key, secret);
}
