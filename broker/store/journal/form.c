/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/journal/form.h"

#include <endian.h>
#include <string.h>

#include "store/checksum.h"

enum {
    MAGIC_BYTES = 8,
    HEADER_SUM = FORM_HEADER_BYTES - CHECKSUM_BYTES,
    PART_MAGIC_BYTES = 4,
    PART_SUM = FORM_PART_BYTES - CHECKSUM_BYTES,
    PART_UNSYNCED = 1 /* of its flags */
};

static const uint8_t MAGIC[MAGIC_BYTES] = {'t', 'm', 'q', 'l', 'o', 'g', '\r', '\n'};
static const uint8_t PART_MAGIC[PART_MAGIC_BYTES] = {'t', 'm', 'q', 'p'};

static uint8_t *put_32 (uint8_t *to, uint32_t number)
{
    number = htole32 (number);
    memcpy (to, &number, sizeof (number));
    return to + sizeof (number);
}

static uint8_t *put_64 (uint8_t *to, uint64_t number)
{
    number = htole64 (number);
    memcpy (to, &number, sizeof (number));
    return to + sizeof (number);
}

static uint32_t get_32 (const uint8_t **from)
{
    uint32_t number;
    memcpy (&number, *from, sizeof (number));
    *from += sizeof (number);
    return le32toh (number);
}

static uint64_t get_64 (const uint8_t **from)
{
    uint64_t number;
    memcpy (&number, *from, sizeof (number));
    *from += sizeof (number);
    return le64toh (number);
}

void form_pack_header (uint8_t *to, const form_header_t *header)
{
    uint8_t *at = to + MAGIC_BYTES;
    memcpy (to, MAGIC, MAGIC_BYTES);
    at = put_32 (at, FORM_VERSION);
    at = put_32 (at, FORM_BLOCK_BYTES);
    at = put_64 (at, header->segment_bytes);
    at = put_64 (at, header->index);
    at = put_64 (at, header->segments);
    at = put_64 (at, header->generation);
    at = put_64 (at, header->epoch);
    at = put_64 (at, header->salt);
    put_64 (at, checksum_add (0, to, HEADER_SUM));
}

/* Every version has its magic, its number and its sum in these places. */
form_found_t form_unpack_header (form_header_t *out, const uint8_t *from)
{
    const uint8_t *at = from + MAGIC_BYTES;
    if (memcmp (from, MAGIC, MAGIC_BYTES) != 0)
        return FORM_NONE;
    if (checksum_get (from + HEADER_SUM) != checksum_add (0, from, HEADER_SUM))
        return FORM_DAMAGED;
    if (get_32 (&at) > FORM_VERSION)
        return FORM_NEWER;
    uint32_t block_bytes = get_32 (&at);
    out->segment_bytes = get_64 (&at);
    out->index = get_64 (&at);
    out->segments = get_64 (&at);
    out->generation = get_64 (&at);
    out->epoch = get_64 (&at);
    out->salt = get_64 (&at);
    bool good = block_bytes == FORM_BLOCK_BYTES && out->segment_bytes >= FORM_SEGMENT_BYTES_MIN &&
                out->segment_bytes <= FORM_SEGMENT_BYTES_MAX &&
                out->segment_bytes % FORM_BLOCK_BYTES == 0 && out->segments >= FORM_SEGMENTS_MIN;
    return good ? FORM_WHOLE : FORM_DAMAGED;
}

/* Of the header, then of the content, which lies behind the place of the sum. */
static uint64_t part_sum (const uint8_t *part, size_t content_bytes)
{
    return checksum_add (checksum_add (0, part, PART_SUM), part + FORM_PART_BYTES, content_bytes);
}

void form_pack_part (uint8_t *to, const form_part_t *part)
{
    uint8_t *at = to + PART_MAGIC_BYTES;
    memcpy (to, PART_MAGIC, PART_MAGIC_BYTES);
    at = put_32 (at, part->unsynced ? PART_UNSYNCED : 0);
    at = put_64 (at, part->salt);
    at = put_64 (at, part->generation);
    at = put_64 (at, part->epoch);
    at = put_64 (at, part->serial);
    at = put_64 (at, part->first);
    at = put_64 (at, part->last);
    at = put_64 (at, part->previous);
    at = put_64 (at, part->written);
    at = put_32 (at, part->part);
    at = put_32 (at, part->parts);
    at = put_32 (at, part->batches);
    at = put_32 (at, part->bytes);
    put_64 (at, part_sum (to, part->bytes));
}

form_found_t form_unpack_part (form_part_t *out, const uint8_t *from, size_t room, uint64_t salt)
{
    const uint8_t *at = from + PART_MAGIC_BYTES;
    if (room < FORM_PART_BYTES || memcmp (from, PART_MAGIC, PART_MAGIC_BYTES) != 0)
        return FORM_NONE;
    out->unsynced = (get_32 (&at) & PART_UNSYNCED) != 0;
    out->salt = get_64 (&at);
    out->generation = get_64 (&at);
    out->epoch = get_64 (&at);
    out->serial = get_64 (&at);
    out->first = get_64 (&at);
    out->last = get_64 (&at);
    out->previous = get_64 (&at);
    out->written = get_64 (&at);
    out->part = get_32 (&at);
    out->parts = get_32 (&at);
    out->batches = get_32 (&at);
    out->bytes = get_32 (&at);
    if (out->salt != salt)
        return FORM_NONE;
    if (out->bytes > room - FORM_PART_BYTES || get_64 (&at) != part_sum (from, out->bytes))
        return FORM_DAMAGED;
    return out->part < out->parts && out->first <= out->last ? FORM_WHOLE : FORM_DAMAGED;
}

uint64_t form_part_room (uint64_t content_bytes)
{
    uint64_t bytes = FORM_PART_BYTES + content_bytes;
    return (bytes + FORM_BLOCK_BYTES - 1) / FORM_BLOCK_BYTES * FORM_BLOCK_BYTES;
}

uint64_t form_first_part (uint64_t segment)
{
    return (segment == 0 ? 2 : 1) * (uint64_t) FORM_BLOCK_BYTES;
}

void form_put_length (uint8_t to[FORM_LENGTH_BYTES], uint32_t length)
{
    put_32 (to, length);
}

uint32_t form_get_length (const uint8_t from[FORM_LENGTH_BYTES])
{
    return get_32 (&from);
}
