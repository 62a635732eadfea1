/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* protobuf's wire format, read field by field without a copy. Writing it is in bytes.h.
 *
 * The bytes may be hostile or damaged: nothing beyond `end` is read, and false ends the walk.
 * Inline, because every message that arrives is read by it, and every event that is looked at. */
#ifndef TASKMQ_PROTO_WIRE_H
#define TASKMQ_PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5
} wire_type_t;

/* One field as it stands on the wire. */
typedef struct wire_field {
    uint32_t number;
    wire_type_t type;
    uint64_t value;       /* of WIRE_VARINT, else 0 */
    const uint8_t *bytes; /* of the others, borrowed from what is read; NULL for WIRE_VARINT */
    size_t length;        /* of bytes */
} wire_field_t;

/* A varint of more than one byte, or none at all. */
bool wire_read_long_varint (uint64_t *out, const uint8_t **at, const uint8_t *end);

/* Reads one varint and moves *at behind it. Most tags, lengths and values are of one byte. */
static inline bool wire_read_varint (uint64_t *out, const uint8_t **at, const uint8_t *end)
{
    if (*at == end || **at >= 0x80)
        return wire_read_long_varint (out, at, end);
    *out = *(*at)++;
    return true;
}

/* Reads one field and moves *at behind it. */
static inline bool wire_read_field (wire_field_t *out, const uint8_t **at, const uint8_t *end)
{
    uint64_t tag;
    uint64_t size = 0;
    if (!wire_read_varint (&tag, at, end) || tag > UINT32_MAX || tag >> 3 == 0)
        return false;
    out->number = (uint32_t) (tag >> 3);
    out->type = (wire_type_t) (tag & 7);
    out->value = 0;
    out->bytes = NULL;
    out->length = 0;
    switch (out->type) {
    case WIRE_VARINT: return wire_read_varint (&out->value, at, end);
    case WIRE_FIXED64: size = 8; break;
    case WIRE_FIXED32: size = 4; break;
    case WIRE_BYTES:
        if (!wire_read_varint (&size, at, end))
            return false;
        break;
    default: return false;
    }
    if (size > (size_t) (end - *at))
        return false;
    out->bytes = *at;
    out->length = (size_t) size;
    *at += size;
    return true;
}

/* The number of WIRE_FIXED64: little-endian, of 8 bytes. */
static inline double wire_double (const uint8_t *bytes)
{
    uint64_t bits = 0;
    double value;
    for (unsigned i = 0; i < 8; i++)
        bits |= (uint64_t) bytes[i] << 8 * i;
    memcpy (&value, &bits, sizeof value);
    return value;
}

/* Copies a text of at most size - 1 bytes; anything else leaves out as it is. */
void wire_copy_text (char *out, size_t size, const wire_field_t *field);

#endif
