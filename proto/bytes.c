/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "bytes.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

enum { BYTES_CAPACITY_MIN = 256, VARINT_BYTES_MAX = 10 };

void bytes_free (bytes_t *self)
{
    free (self->data);
    *self = (bytes_t) BYTES_INIT;
}

void bytes_clear (bytes_t *self)
{
    self->length = 0;
    self->failed = false;
}

uint8_t *bytes_grow (bytes_t *self, size_t size)
{
    if (self->failed)
        return NULL;
    if (self->data == NULL || size > self->capacity - self->length) {
        size_t wanted;
        if (__builtin_add_overflow (self->length, size, &wanted)) {
            self->failed = true;
            return NULL;
        }
        size_t capacity = self->capacity + self->capacity / 2;
        if (capacity < BYTES_CAPACITY_MIN)
            capacity = BYTES_CAPACITY_MIN;
        if (capacity < wanted)
            capacity = wanted;
        uint8_t *data = realloc (self->data, capacity);
        if (data == NULL) {
            self->failed = true;
            return NULL;
        }
        self->data = data;
        self->capacity = capacity;
    }
    return self->data + self->length;
}

void bytes_append_text (bytes_t *self, const char *text)
{
    bytes_append (self, text, strlen (text));
}

void bytes_append_format (bytes_t *self, const char *format, ...)
{
    va_list list;
    va_list again;
    va_start (list, format);
    va_copy (again, list);
    const int length = vsnprintf (NULL, 0, format, list);
    uint8_t *room = length < 0 ? NULL : bytes_reserve (self, (size_t) length + 1);
    if (room != NULL) {
        vsnprintf ((char *) room, (size_t) length + 1, format, again);
        self->length += (size_t) length;
    }
    self->failed = self->failed || length < 0;
    va_end (again);
    va_end (list);
}

const char *bytes_text (bytes_t *self)
{
    uint8_t *room = bytes_reserve (self, 1);
    if (room == NULL)
        return NULL;
    *room = '\0';
    return (const char *) self->data;
}

/* protobuf. */

/* Eight groups of seven bits, each in a byte of its own, the lowest first. Times are of six bytes,
 * so all groups are made at once and not one after the other. */
static uint64_t varint_groups (uint64_t value)
{
    value = (value & 0x0fffffff) | (value & 0x0fffffffull << 28) << 4;
    value = (value & 0x00003fff00003fff) | (value & 0x0fffc0000fffc000) << 2;
    return (value & 0x007f007f007f007f) | (value & 0x3f803f803f803f80) << 1;
}

/* Writes a varint and returns its size. */
static size_t varint_write (uint8_t *out, uint64_t value)
{
    size_t size = 0;
    while (value >= 0x80) {
        out[size++] = (uint8_t) (value | 0x80);
        value >>= 7;
    }
    out[size++] = (uint8_t) value;
    return size;
}

static size_t varint_size (uint64_t value)
{
    size_t size = 1;
    while (value >= 0x80) {
        size++;
        value >>= 7;
    }
    return size;
}

static uint64_t tag_of (uint32_t field, unsigned wire_type)
{
    return (uint64_t) field << 3 | wire_type;
}

/* Writes a varint where VARINT_BYTES_MAX bytes are free, and returns the place behind it. Most tags
 * and values are of one byte. */
static inline uint8_t *varint_put (uint8_t *at, uint64_t value)
{
    if (value < 0x80) {
        *at = (uint8_t) value;
        return at + 1;
    }
    if (value >> 56 != 0)
        return at + varint_write (at, value);
    uint64_t groups = varint_groups (value);
    unsigned last = (63 - (unsigned) __builtin_clzll (groups)) / 8;
    groups = htole64 (groups | (0x8080808080808080 & ((1ull << 8 * last) - 1)));
    memcpy (at, &groups, sizeof (groups));
    return at + last + 1;
}

void bytes_append_varint (bytes_t *self, uint64_t value)
{
    uint8_t *room = bytes_reserve (self, VARINT_BYTES_MAX);
    if (room != NULL)
        self->length += (size_t) (varint_put (room, value) - room);
}

void bytes_append_number (bytes_t *self, uint32_t field, uint64_t value)
{
    uint8_t *room = bytes_reserve (self, 2 * VARINT_BYTES_MAX);
    if (room == NULL)
        return;
    uint8_t *at = varint_put (room, tag_of (field, WIRE_VARINT));
    at = varint_put (at, value);
    self->length += (size_t) (at - room);
}

void bytes_append_sint (bytes_t *self, uint32_t field, int64_t value)
{
    uint64_t sign = value < 0 ? UINT64_MAX : 0;
    bytes_append_uint (self, field, (uint64_t) value << 1 ^ sign);
}

void bytes_append_double (bytes_t *self, uint32_t field, double value)
{
    uint64_t bits;
    memcpy (&bits, &value, sizeof bits);
    uint8_t *room = bits == 0 ? NULL : bytes_reserve (self, VARINT_BYTES_MAX + sizeof bits);
    if (room == NULL)
        return;
    uint8_t *at = varint_put (room, tag_of (field, WIRE_FIXED64));
    for (unsigned shift = 0; shift < 64; shift += 8)
        *at++ = (uint8_t) (bits >> shift);
    self->length += (size_t) (at - room);
}

void bytes_append_element (bytes_t *self, uint32_t field, const void *data, size_t size)
{
    if (size > SIZE_MAX - 2 * VARINT_BYTES_MAX) {
        self->failed = true;
        return;
    }
    uint8_t *room = bytes_reserve (self, 2 * VARINT_BYTES_MAX + size);
    if (room == NULL)
        return;
    uint8_t *at = varint_put (room, tag_of (field, WIRE_BYTES));
    at = varint_put (at, size);
    if (size > 0)
        memcpy (at, data, size);
    self->length += (size_t) (at - room) + size;
}

void bytes_append_message (bytes_t *self, uint32_t field, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size (message);
    bytes_append_varint (self, tag_of (field, WIRE_BYTES));
    bytes_append_varint (self, size);
    uint8_t *room = bytes_reserve (self, size);
    if (room != NULL)
        self->length += protobuf_c_message_pack (message, room);
}

void bytes_append_packed (bytes_t *self, const ProtobufCMessage *message)
{
    uint8_t *room = bytes_reserve (self, protobuf_c_message_get_packed_size (message));
    if (room != NULL)
        self->length += protobuf_c_message_pack (message, room);
}

bytes_mark_t bytes_open (bytes_t *self, uint32_t field)
{
    uint8_t *room = bytes_reserve (self, VARINT_BYTES_MAX + 1);
    if (room == NULL)
        return self->length;
    uint8_t *at = varint_put (room, tag_of (field, WIRE_BYTES));
    *at++ = 0;
    self->length += (size_t) (at - room);
    return self->length;
}

void bytes_close (bytes_t *self, bytes_mark_t mark)
{
    if (self->failed)
        return;
    /* One byte was kept for the length; a longer length moves the contents. */
    size_t size = self->length - mark;
    size_t extra = varint_size (size) - 1;
    if (extra > 0) {
        if (bytes_reserve (self, extra) == NULL)
            return;
        memmove (self->data + mark + extra, self->data + mark, size);
        self->length += extra;
    }
    varint_write (self->data + mark - 1, size);
}
