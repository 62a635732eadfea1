/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/cursor.h"

#include <stddef.h>
#include <string.h>

list_cursor_t cursor_make (int64_t number, const uint8_t digest[16])
{
    list_cursor_t cursor;
    for (size_t i = 0; i < sizeof (cursor.number); i++)
        cursor.number[i] = (uint8_t) ((uint64_t) number >> (56 - 8 * i));
    memcpy (cursor.digest, digest, sizeof (cursor.digest));
    return cursor;
}

int64_t cursor_number (const ProtobufCBinaryData *bytes, const uint8_t digest[16])
{
    list_cursor_t cursor;
    if (bytes->len != sizeof (cursor))
        return 0;
    memcpy (&cursor, bytes->data, sizeof (cursor));
    if (memcmp (cursor.digest, digest, sizeof (cursor.digest)) != 0)
        return 0;
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof (cursor.number); i++)
        number = number << 8 | cursor.number[i];
    return number > INT64_MAX ? 0 : (int64_t) number;
}
