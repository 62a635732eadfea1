/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Texts of keys and invitations: what is taken has one text only, and errors say something.
 *
 * An error says which character is wrong, which takes a thousand hashes: one input in 512 asks for
 * it. An input that begins with a zero is the bytes of an invitation: no fuzzer guesses the check
 * behind them, so it is put there. */
#include "keys.h"

#include <sodium.h>

#include "fuzz.h"

enum { CHECK_BYTES = 4, BYTES_MAX = 400, ONE_IN = 512 };

/* A buffer for the error, or NULL. */
static char *error_for (const uint8_t *data, size_t size, char error[KEY_ERROR_SIZE])
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    error[0] = '\0';
    return sum % ONE_IN == 0 ? error : NULL;
}

static void try_public (const char *text, char *error)
{
    key_public_t key;
    key_public_t again;
    char back[KEY_TEXT_SIZE];
    if (!key_parse_public (&key, text, error)) {
        HOLDS (error == NULL || error[0] != '\0');
        return;
    }
    key_text_public (back, &key);
    HOLDS (key_parse_public (&again, back, NULL) && key_public_equal (&key, &again));
}

static void try_secret (const char *text, char *error)
{
    key_secret_t key;
    key_secret_t again;
    key_public_t public_key;
    char back[KEY_TEXT_SIZE];
    if (!key_import (&key, text, error)) {
        HOLDS (error == NULL || error[0] != '\0');
        HOLDS (!key_parse_secret (&key, text, NULL));
        return;
    }
    key_text_secret (back, &key);
    key_public_of (&public_key, &key);
    HOLDS (key_parse_secret (&again, back, NULL));
    HOLDS (memcmp (again.bytes, key.bytes, sizeof (key.bytes)) == 0);
}

static void try_join (const char *text, char *error)
{
    join_t join;
    join_t again;
    char back[JOIN_TEXT_SIZE];
    if (!join_parse (&join, text, error)) {
        HOLDS (error == NULL || error[0] != '\0');
        return;
    }
    join_text (back, &join);
    HOLDS (join_parse (&again, back, NULL) && strcmp (again.place, join.place) == 0);
}

/* The text of the bytes, with the check that belongs to them. */
static void write_invitation (char *text, const uint8_t *data, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t bytes[8 + BYTES_MAX + CHECK_BYTES] = "tmqjoin_";
    uint8_t check[crypto_generichash_BYTES];
    memcpy (bytes + 8, data, size);
    crypto_generichash (check, sizeof (check), bytes, 8 + size, NULL, 0);
    memcpy (bytes + 8 + size, check, CHECK_BYTES);
    size_t bits = (size + CHECK_BYTES) * 8;
    strcpy (text, "tmqjoin_");
    text += 8;
    for (size_t bit = 0; bit < bits; bit += 5) {
        unsigned value = 0;
        for (size_t i = bit; i < bit + 5; i++)
            value = value << 1 | (i < bits ? bytes[8 + i / 8] >> (7 - i % 8) & 1u : 0u);
        *text++ = letters[value];
    }
    *text = '\0';
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char error[KEY_ERROR_SIZE];
    char *errors = error_for (data, size, error);
    if (size > 1 && size <= BYTES_MAX && data[0] == 0) {
        char invitation[8 + (BYTES_MAX + CHECK_BYTES) * 8 / 5 + 2];
        write_invitation (invitation, data + 1, size - 1);
        try_join (invitation, errors);
        return 0;
    }
    char *text = fuzz_text (data, size);
    try_public (text, errors);
    try_secret (text, errors);
    try_join (text, errors);
    free (text);
    return 0;
}
