/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Texts of keys and invitations: what is taken has one text only, and errors say something. */
#include "keys.h"

#include "fuzz.h"

static void try_public (const char *text)
{
    key_public_t key;
    key_public_t again;
    char back[KEY_TEXT_SIZE];
    char error[KEY_ERROR_SIZE] = "";
    if (!key_parse_public (&key, text, error)) {
        HOLDS (error[0] != '\0');
        return;
    }
    key_text_public (back, &key);
    HOLDS (key_parse_public (&again, back, NULL) && key_public_equal (&key, &again));
}

static void try_secret (const char *text)
{
    key_secret_t key;
    key_secret_t again;
    key_public_t public_key;
    char back[KEY_TEXT_SIZE];
    char error[KEY_ERROR_SIZE] = "";
    if (!key_import (&key, text, error)) {
        HOLDS (error[0] != '\0' && !key_parse_secret (&key, text, NULL));
        return;
    }
    key_text_secret (back, &key);
    key_public_of (&public_key, &key);
    HOLDS (key_parse_secret (&again, back, NULL));
    HOLDS (memcmp (again.bytes, key.bytes, sizeof (key.bytes)) == 0);
}

static void try_join (const char *text)
{
    join_t join;
    join_t again;
    char back[JOIN_TEXT_SIZE];
    char error[KEY_ERROR_SIZE] = "";
    if (!join_parse (&join, text, error)) {
        HOLDS (error[0] != '\0');
        return;
    }
    join_text (back, &join);
    HOLDS (join_parse (&again, back, NULL) && strcmp (again.place, join.place) == 0);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char *text = fuzz_text (data, size);
    try_public (text);
    try_secret (text);
    try_join (text);
    free (text);
    return 0;
}
