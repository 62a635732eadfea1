/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "wire.h"

#include <string.h>

bool wire_read_long_varint (uint64_t *out, const uint8_t **at, const uint8_t *end)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

void wire_copy_text (char *out, size_t size, const wire_field_t *field)
{
    if (field->bytes == NULL || field->length >= size)
        return;
    memcpy (out, field->bytes, field->length);
    out[field->length] = '\0';
}
