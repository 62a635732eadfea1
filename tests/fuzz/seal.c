/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sealed texts. An input is opened as it is: nothing that the key did not make is taken. It is
 * sealed as contents, and comes back; and a changed copy of that text, by the input's own bytes, is
 * refused. */
#include "auth/seal.h"

#include "fuzz.h"

static const uint8_t secret[SEAL_KEY_BYTES] = "a key that no corpus knows, 32 b";

static void try_changed (const seal_t *seal, bytes_t *text, const uint8_t *data, size_t size)
{
    bytes_t back = BYTES_INIT;
    const size_t at = data[0] % text->length;
    const uint8_t before = text->data[at];
    text->data[at] = data[size - 1];
    const seal_state_t state = seal_open (seal, &back, SEAL_CURSOR, (const char *) text->data, 0);
    HOLDS ((state == SEAL_GOOD) == (text->data[at] == before));
    text->data[at] = before;
    bytes_free (&back);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    seal_t seal;
    bytes_t text = BYTES_INIT, back = BYTES_INIT;
    char *given = fuzz_text (data, size);
    seal_init (&seal, secret);
    HOLDS (seal_open (&seal, &back, SEAL_CURSOR, given, 0) == SEAL_FOREIGN && back.length == 0);
    free (given);
    const int sealed = seal_close (&seal, &text, SEAL_CURSOR, data, size, 10);
    HOLDS (sealed == (size <= SEAL_CONTENTS_MAX));
    if (sealed) {
        const char *ours = bytes_text (&text);
        HOLDS (seal_open (&seal, &back, SEAL_COOKIE, ours, 0) == SEAL_FOREIGN);
        HOLDS (seal_open (&seal, &back, SEAL_CURSOR, ours, 10) == SEAL_EXPIRED);
        HOLDS (seal_open (&seal, &back, SEAL_CURSOR, ours, 9) == SEAL_GOOD);
        HOLDS (back.length == size && (size == 0 || memcmp (back.data, data, size) == 0));
        if (size > 0)
            try_changed (&seal, &text, data, size);
    }
    bytes_free (&text);
    bytes_free (&back);
    return 0;
}
