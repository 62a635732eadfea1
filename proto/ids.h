/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Task ids, hexadecimal text, names and UTF-8: the smallest checks that every room needs.
 *
 * Pure: an id is made from a time and random bytes that the caller brings. Nothing allocates. */
#ifndef TASKMQ_PROTO_IDS_H
#define TASKMQ_PROTO_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

enum {
    ID_BYTES = 16,
    ID_TEXT_LENGTH = 36, /* 8-4-4-4-12 */
    ID_TEXT_SIZE = ID_TEXT_LENGTH + 1,
    ID_SUFFIX_LENGTH_MAX = 32, /* hexadecimal digits of a whole id */
    ID_SUFFIX_SIZE = ID_SUFFIX_LENGTH_MAX + 1,
    ID_RANDOM_BYTES = 10
};

/* Task ids. */

/* A UUIDv7 (RFC 9562): 48 bits of wall_ms (since the epoch, UTC), version, variant and 74 of the
 * 80 random bits. */
void id_make (tmq_id_t *out, int64_t wall_ms, const uint8_t random[ID_RANDOM_BYTES]);
/* Version 7 and the RFC's variant. */
bool id_is_v7 (const tmq_id_t *id);
/* The milliseconds since the epoch that a UUIDv7 begins with. */
int64_t id_time_ms (const tmq_id_t *id);
bool id_is_zero (const tmq_id_t *id);
bool id_equal (const tmq_id_t *a, const tmq_id_t *b);
/* Byte order, which for UUIDv7 is the order of making: <0, 0, >0. */
int id_compare (const tmq_id_t *a, const tmq_id_t *b);
/* Copies an id out of bytes on the wire; length must be 16, else false and out is untouched. */
bool id_from_bytes (tmq_id_t *out, const void *bytes, size_t length);
/* Lower case, with dashes and a NUL. */
void id_format (const tmq_id_t *id, char text[ID_TEXT_SIZE]);
/* Exactly 36 characters, dashes in their places, digits of either case; else false. */
bool id_parse (tmq_id_t *out, const char *text);

/* Brings an ending of an id to its form on the wire: dashes dropped, lower case, NUL-terminated.
 * False unless 6..32 hexadecimal digits remain. */
bool id_suffix_parse (char out[ID_SUFFIX_SIZE], const char *text);
/* True for 6..32 lower-case hexadecimal digits: the form on the wire. */
bool id_suffix_is_valid (const char *suffix);
/* suffix in its form on the wire. */
bool id_ends_with (const tmq_id_t *id, const char *suffix);

/* Hexadecimal. */

/* Writes 2 * length lower-case digits and a NUL. */
void hex_encode (char *out, const void *bytes, size_t length);
/* Reads exactly 2 * length digits of either case that end with a NUL; else false. */
bool hex_decode (void *out, size_t length, const char *text);

/* Text. */

/* [A-Za-z0-9._-]{1,64} (S14). */
bool name_is_valid (const char *text);
/* Well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong) without NUL. */
bool utf8_is_valid (const void *bytes, size_t length);
/* The first bytes of a text that are whole characters, at most max. */
size_t utf8_whole (const char *text, size_t length, size_t max);
/* Length in bytes of the well-formed character (NUL included) at bytes, 0 if there is none. */
size_t utf8_character (const uint8_t *bytes, size_t length);
/* The code point of a well-formed character of that length. */
uint32_t utf8_code (const uint8_t *character, size_t length);

#endif
