/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A growing byte buffer, and protobuf's wire format appended to it piece by piece.
 *
 * Failure: when memory is exhausted the buffer remembers it and takes no more; the maker looks at
 * `failed` once, at the end. So the client library can turn it into an error and the broker into an
 * abort.
 *
 * The append functions follow proto3: a zero or an empty value is left out. */
#ifndef TASKMQ_PROTO_BYTES_H
#define TASKMQ_PROTO_BYTES_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct bytes {
    uint8_t *data; /* NULL while nothing was appended; not NUL-terminated */
    size_t length;
    size_t capacity;
    bool failed; /* memory was exhausted: the contents are incomplete */
} bytes_t;
#define BYTES_INIT                                                                                 \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

void bytes_free (bytes_t *self);  /* frees the memory and makes the buffer empty */
void bytes_clear (bytes_t *self); /* makes it empty, keeps the memory, forgets a failure */
/* Grows the buffer: bytes_reserve when there is not enough room. */
uint8_t *bytes_grow (bytes_t *self, size_t size);
/* Room for size more bytes at the end, which the caller counts (length += …); NULL on failure. This
 * and the next two are inline: every message is written by them, some bytes at a time. */
static inline uint8_t *bytes_reserve (bytes_t *self, size_t size)
{
    if (self->data == NULL || self->failed || size > self->capacity - self->length)
        return bytes_grow (self, size);
    return self->data + self->length;
}
static inline void bytes_append_byte (bytes_t *self, uint8_t byte)
{
    uint8_t *room = bytes_reserve (self, 1);
    if (room == NULL)
        return;
    *room = byte;
    self->length++;
}
static inline void bytes_append (bytes_t *self, const void *data, size_t size)
{
    uint8_t *room = bytes_reserve (self, size);
    if (room == NULL || size == 0)
        return;
    memcpy (room, data, size);
    self->length += size;
}
void bytes_append_text (bytes_t *self, const char *text);
/* As printf, whatever the length. */
__attribute__ ((format (printf, 2, 3))) void bytes_append_format (bytes_t *self, const char *format,
                                                                  ...);
/* Puts a NUL behind the contents without counting it. The text, or NULL on failure. */
const char *bytes_text (bytes_t *self);

/* protobuf. */

void bytes_append_varint (bytes_t *self, uint64_t value);
/* One element of a repeated bytes or message field, or a present message: also when empty. */
void bytes_append_element (bytes_t *self, uint32_t field, const void *data, size_t size);
/* A field of type uint32, uint64 or bool, whatever its value. */
void bytes_append_number (bytes_t *self, uint32_t field, uint64_t value);
/* uint32, uint64 and bool fields. This and the next two are inline because most fields of most
 * messages have nothing to say, and most numbers are small. */
static inline void bytes_append_uint (bytes_t *self, uint32_t field, uint64_t value)
{
    if (value == 0)
        return;
    uint8_t *room = field < 16 && value < 0x80 ? bytes_reserve (self, 2) : NULL;
    if (room == NULL) {
        bytes_append_number (self, field, value);
        return;
    }
    room[0] = (uint8_t) (field << 3);
    room[1] = (uint8_t) value;
    self->length += 2;
}
/* bytes fields, and whole submessages that are packed already. */
static inline void bytes_append_blob (bytes_t *self, uint32_t field, const void *data, size_t size)
{
    if (size == 0)
        return;
    uint8_t *room = field < 16 && size < 0x80 ? bytes_reserve (self, size + 2) : NULL;
    if (room == NULL) {
        bytes_append_element (self, field, data, size);
        return;
    }
    room[0] = (uint8_t) (field << 3 | 2);
    room[1] = (uint8_t) size;
    memcpy (room + 2, data, size);
    self->length += size + 2;
}
/* string fields; NULL counts as empty. */
static inline void bytes_append_string (bytes_t *self, uint32_t field, const char *text)
{
    if (text != NULL && text[0] != '\0')
        bytes_append_blob (self, field, text, strlen (text));
}
/* double fields. */
void bytes_append_double (bytes_t *self, uint32_t field, double value);
/* sint32 and sint64 fields. */
void bytes_append_sint (bytes_t *self, uint32_t field, int64_t value);
/* Packs a message as a submessage of that field, without a temporary. */
void bytes_append_message (bytes_t *self, uint32_t field, const ProtobufCMessage *message);
/* Packs a message without a tag: the whole of an envelope. */
void bytes_append_packed (bytes_t *self, const ProtobufCMessage *message);

/* A submessage whose fields are appended one by one: what is appended between the two calls is its
 * contents. May be nested; close in the reverse order. */
typedef size_t bytes_mark_t;
bytes_mark_t bytes_open (bytes_t *self, uint32_t field);
void bytes_close (bytes_t *self, bytes_mark_t mark);

#endif
