/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "store/archive/archive_form.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/data/row.h"
#include "store/checksum.h"
#include "store/journal/journal_codec.h"
#include "taskmq_types.h"

enum {
    MAGIC_BYTES = 8,
    NUMBERS_AT = 16, /* behind magic, version and the header's length */
    NUMBERS = 6,
    HEADER_SUM = ARCHIVE_HEADER_BYTES - CHECKSUM_BYTES,
    TRAILER_MAGIC = 0x65716d74, /* "tmqe" */
    TRAILER_SUM = ARCHIVE_TRAILER_BYTES - CHECKSUM_BYTES
};

static const uint8_t MAGIC[MAGIC_BYTES] = {'t', 'm', 'q', 'a', 'r', 'c', '\r', '\n'};

static void put_32 (uint8_t *to, uint32_t number)
{
    number = htole32 (number);
    memcpy (to, &number, sizeof (number));
}

static void put_64 (uint8_t *to, uint64_t number)
{
    number = htole64 (number);
    memcpy (to, &number, sizeof (number));
}

static uint32_t get_32 (const uint8_t *from)
{
    uint32_t number;
    memcpy (&number, from, sizeof (number));
    return le32toh (number);
}

static uint64_t get_64 (const uint8_t *from)
{
    uint64_t number;
    memcpy (&number, from, sizeof (number));
    return le64toh (number);
}

/* Names. */

static const char *ending (bool open)
{
    return open ? ".part" : ".seg";
}

void archive_name (char out[ARCHIVE_NAME_SIZE], const archive_header_t *header, bool open)
{
    snprintf (out, ARCHIVE_NAME_SIZE, "%016" PRIx64 "-%010" PRIu64 "-%014" PRIu64 "%s",
              header->generation, header->epoch, header->previous + 1, ending (open));
}

bool archive_name_read (const char *name, archive_header_t *out, bool *open)
{
    char again[ARCHIVE_NAME_SIZE];
    uint64_t first = 0;
    *out = (archive_header_t){0};
    if (sscanf (name, "%16" SCNx64 "-%20" SCNu64 "-%20" SCNu64, &out->generation, &out->epoch,
                &first) != 3 ||
        first == 0)
        return false;
    out->previous = first - 1;
    const char *dot = strrchr (name, '.');
    *open = dot != NULL && strcmp (dot, ending (true)) == 0;
    archive_name (again, out, *open);
    return strcmp (name, again) == 0;
}

/* Packing. */

void archive_pack_header (uint8_t to[ARCHIVE_HEADER_BYTES], const archive_header_t *header)
{
    const uint64_t numbers[NUMBERS] = {header->generation, header->epoch,
                                       header->previous,   header->base_epoch,
                                       header->base_batch, (uint64_t) header->made_ms};
    memcpy (to, MAGIC, MAGIC_BYTES);
    put_32 (to + MAGIC_BYTES, ARCHIVE_FORM_VERSION);
    put_32 (to + MAGIC_BYTES + 4, ARCHIVE_HEADER_BYTES);
    for (size_t i = 0; i < NUMBERS; i++)
        put_64 (to + NUMBERS_AT + i * 8, numbers[i]);
    checksum_put (to + HEADER_SUM, checksum_add (0, to, HEADER_SUM));
}

uint64_t archive_sum_begin (const uint8_t header[ARCHIVE_HEADER_BYTES])
{
    return checksum_get (header + HEADER_SUM);
}

uint64_t archive_sum_add (uint64_t sum, const uint8_t *frame, size_t bytes)
{
    return checksum_add (sum, frame, bytes);
}

void archive_pack_trailer (uint8_t to[ARCHIVE_TRAILER_BYTES], uint64_t batches, uint64_t last,
                           uint64_t sum)
{
    put_32 (to, 0); /* where the length of a batch would stand */
    put_32 (to + 4, TRAILER_MAGIC);
    put_64 (to + 8, batches);
    put_64 (to + 16, last);
    checksum_put (to + TRAILER_SUM, checksum_add (sum, to, TRAILER_SUM));
}

bool archive_trailer_last (uint64_t *out, const uint8_t from[ARCHIVE_TRAILER_BYTES])
{
    *out = get_64 (from + 16);
    return get_32 (from) == 0 && get_32 (from + 4) == TRAILER_MAGIC;
}

/* Looking into a batch: protobuf, field by field. */

typedef struct field {
    uint32_t number;
    uint64_t value; /* of a number */
    const uint8_t *bytes;
    size_t length; /* of bytes; NULL: it is none */
} field_t;

typedef struct walk {
    const uint8_t *at;
    const uint8_t *end;
} walk_t;

static bool get_varint (walk_t *walk, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && walk->at < walk->end; shift += 7) {
        uint8_t byte = *walk->at++;
        *out |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* False: at its end, or damaged; *good tells. */
static bool next_field (walk_t *walk, field_t *out, bool *good)
{
    enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
    uint64_t tag;
    *out = (field_t){0};
    *good = walk->at == walk->end;
    if (*good || !get_varint (walk, &tag))
        return false;
    out->number = (uint32_t) (tag >> 3);
    uint64_t length = 0;
    switch (tag & 7) {
    case VARINT: return get_varint (walk, &out->value);
    case FIXED64: length = 8; break;
    case FIXED32: length = 4; break;
    case BYTES:
        if (!get_varint (walk, &length))
            return false;
        break;
    default: return false;
    }
    if (length > (uint64_t) (walk->end - walk->at))
        return false;
    out->bytes = walk->at;
    out->length = (size_t) length;
    walk->at += length;
    return true;
}

enum { BATCH_GENERATION = 2, BATCH_EPOCH, BATCH_NO, BATCH_PREVIOUS, BATCH_WALL_MS };
enum { BATCH_ROWS = 11, ROW_KIND = 1, ROW_KEY = 2, ROW_GONE = 4 };

/* The numbers stand in front of all else. */
static void read_numbers (archive_peek_t *out, const uint8_t *body, size_t bytes)
{
    *out = (archive_peek_t){0};
    walk_t walk = {body, body + bytes};
    field_t field;
    bool good;
    while (next_field (&walk, &field, &good) && field.number <= BATCH_WALL_MS) {
        switch (field.number) {
        case BATCH_GENERATION: out->generation = field.value; break;
        case BATCH_EPOCH: out->epoch = field.value; break;
        case BATCH_NO: out->no = field.value; break;
        case BATCH_PREVIOUS: out->previous = field.value; break;
        case BATCH_WALL_MS: out->wall_ms = (int64_t) field.value; break;
        default: break;
        }
    }
}

bool archive_peek (archive_peek_t *out, const uint8_t *body, size_t bytes)
{
    *out = (archive_peek_t){0};
    if (!journal_is_whole (body, bytes))
        return false;
    read_numbers (out, body, bytes);
    return out->no != 0;
}

static bool look_at_row (const field_t *row, archive_blob_t *each, void *context)
{
    walk_t walk = {row->bytes, row->bytes + row->length};
    field_t field;
    bool good;
    uint64_t kind = 0;
    bool gone = false;
    const uint8_t *key = NULL;
    while (next_field (&walk, &field, &good)) {
        if (field.number == ROW_KIND)
            kind = field.value;
        else if (field.number == ROW_GONE)
            gone = field.value != 0;
        else if (field.number == ROW_KEY && field.length == TMQ_BLOB_HASH_BYTES)
            key = field.bytes;
    }
    if (kind == ROW_KIND_BLOB && !gone && key != NULL)
        each (context, key);
    return good;
}

bool archive_blobs (const uint8_t *body, size_t bytes, archive_blob_t *each, void *context)
{
    walk_t walk = {body, body + bytes};
    field_t field;
    bool good;
    while (next_field (&walk, &field, &good))
        if (field.number == BATCH_ROWS && field.bytes != NULL &&
            !look_at_row (&field, each, context))
            return false;
    return good;
}

/* Reading. */

form_found_t archive_read_begin (archive_reading_t *out, const uint8_t *bytes, size_t length)
{
    *out = (archive_reading_t){.bytes = bytes, .length = length};
    if (length < MAGIC_BYTES || memcmp (bytes, MAGIC, MAGIC_BYTES) != 0)
        return FORM_NONE;
    if (length < ARCHIVE_HEADER_BYTES ||
        checksum_get (bytes + HEADER_SUM) != checksum_add (0, bytes, HEADER_SUM))
        return FORM_DAMAGED;
    if (get_32 (bytes + MAGIC_BYTES) > ARCHIVE_FORM_VERSION)
        return FORM_NEWER;
    uint64_t numbers[NUMBERS];
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = get_64 (bytes + NUMBERS_AT + i * 8);
    out->header = (archive_header_t){numbers[0], numbers[1], numbers[2],
                                     numbers[3], numbers[4], (int64_t) numbers[5]};
    out->sum = archive_sum_begin (bytes);
    out->at = ARCHIVE_HEADER_BYTES;
    return FORM_WHOLE;
}

static archive_step_t read_trailer (archive_reading_t *self)
{
    const uint8_t *from = self->bytes + self->at;
    size_t left = self->length - self->at;
    if (left < ARCHIVE_TRAILER_BYTES)
        return ARCHIVE_TORN;
    if (left > ARCHIVE_TRAILER_BYTES || get_32 (from + 4) != TRAILER_MAGIC ||
        get_64 (from + 8) != self->batches ||
        checksum_get (from + TRAILER_SUM) != checksum_add (self->sum, from, TRAILER_SUM))
        return ARCHIVE_WRONG;
    return ARCHIVE_ENDED;
}

archive_step_t archive_read_next (archive_reading_t *self, const uint8_t **body, size_t *bytes)
{
    const uint8_t *from = self->bytes + self->at;
    size_t left = self->length - self->at;
    archive_peek_t peek;
    if (left < FORM_LENGTH_BYTES)
        return ARCHIVE_TORN;
    uint32_t length = form_get_length (from);
    if (length == 0)
        return read_trailer (self);
    if (length > left - FORM_LENGTH_BYTES)
        return ARCHIVE_TORN;
    *body = from + FORM_LENGTH_BYTES;
    *bytes = length;
    if (!archive_peek (&peek, *body, length) || peek.generation != self->header.generation ||
        peek.epoch != self->header.epoch || peek.no <= self->last.no)
        return ARCHIVE_WRONG;
    self->last = peek;
    self->batches++;
    self->sum = archive_sum_add (self->sum, from, FORM_LENGTH_BYTES + length);
    self->at += FORM_LENGTH_BYTES + length;
    return ARCHIVE_BATCH;
}

/* Torn ends. */

enum { PAGE_BYTES = 4096, PAGE_END_BYTES = 64 };

static bool is_zero (const uint8_t *bytes, size_t length)
{
    return length == 0 || (bytes[0] == 0 && memcmp (bytes, bytes + 1, length - 1) == 0);
}

bool archive_is_empty (const uint8_t *bytes, size_t length)
{
    return length < ARCHIVE_HEADER_BYTES || is_zero (bytes, ARCHIVE_HEADER_BYTES);
}

/* A whole batch of the segment at this place. Its numbers come first: a sum of what is no batch
 * would cost too much at each place. */
static bool is_batch_at (const archive_reading_t *self, size_t at)
{
    const uint8_t *from = self->bytes + at;
    size_t left = self->length - at;
    archive_peek_t peek;
    if (left <= FORM_LENGTH_BYTES)
        return false;
    uint32_t length = form_get_length (from);
    if (length == 0 || length > left - FORM_LENGTH_BYTES)
        return false;
    read_numbers (&peek, from + FORM_LENGTH_BYTES, length);
    return peek.generation == self->header.generation && peek.epoch == self->header.epoch &&
           peek.no > self->last.no && journal_is_whole (from + FORM_LENGTH_BYTES, length);
}

/* Zeros up to the end of a page: what was to come there never did. */
static bool misses_page (const archive_reading_t *self, size_t until)
{
    for (size_t end = (self->at / PAGE_BYTES + 1) * PAGE_BYTES; end <= until; end += PAGE_BYTES) {
        size_t from = end - PAGE_END_BYTES > self->at ? end - PAGE_END_BYTES : self->at;
        if (is_zero (self->bytes + from, end - from))
            return true;
    }
    return false;
}

bool archive_read_is_torn (const archive_reading_t *self)
{
    for (size_t at = self->at + 1; at < self->length; at++)
        if (is_batch_at (self, at))
            return misses_page (self, at);
    return true;
}
