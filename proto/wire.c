/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "wire.h"

#include <endian.h>
#include <string.h>

/* The reverse of varint_groups in bytes.c. */
static uint64_t groups_joined (uint64_t groups)
{
    groups = (groups & 0x007f007f007f007f) | (groups & 0x7f007f007f007f00) >> 1;
    groups = (groups & 0x00003fff00003fff) | (groups & 0x3fff00003fff0000) >> 2;
    return (groups & 0x0fffffff) | (groups & 0x0fffffffull << 32) >> 4;
}

bool wire_read_long_varint (uint64_t *out, const uint8_t **at, const uint8_t *end)
{
    uint64_t groups;
    if (end - *at >= (ptrdiff_t) sizeof (groups)) {
        memcpy (&groups, *at, sizeof (groups));
        groups = le64toh (groups);
        uint64_t ends = ~groups & 0x8080808080808080; /* bytes that none of the number follows */
        if (ends != 0) {
            unsigned size = (unsigned) __builtin_ctzll (ends) / 8 + 1;
            *out = groups_joined (groups & UINT64_MAX >> (64 - 8 * size));
            *at += size;
            return true;
        }
    }
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
