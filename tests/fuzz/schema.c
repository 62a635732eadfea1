/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Two bytes of length and a schema, then a value. Whatever it says of the value, it says it again,
 * and a value that is not taken has a flaw. */
#include "mcp/schema.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    char error[SCHEMA_ERROR_SIZE];
    const uint8_t *piece;
    size_t piece_size;
    if (!fuzz_piece (&data, &size, &piece, &piece_size))
        return 0;
    json_t *document = json_loadb ((const char *) piece, piece_size, JSON_DECODE_ANY, NULL);
    json_t *value = json_loadb ((const char *) data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    schema_t *schema = document != NULL ? schema_new (document, error) : NULL;
    HOLDS (document == NULL || schema != NULL || error[0] != '\0');
    if (schema != NULL && value != NULL) {
        bytes_t flaws = BYTES_INIT;
        const bool good = schema_takes (schema, value, &flaws);
        HOLDS (good == (flaws.length == 0));
        HOLDS (schema_takes (schema, value, NULL) == good);
        bytes_free (&flaws);
    }
    schema_free (&schema);
    json_decref (document);
    json_decref (value);
    return 0;
}
