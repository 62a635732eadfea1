/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The journal's file, byte for byte, as docs/JOURNAL.md tells it: what the writer packs and every
 * reader unpacks. */
#ifndef TASKMQ_STORE_FORM_H
#define TASKMQ_STORE_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_FILE "journal.log"

enum {
    FORM_VERSION = 1,
    /* What a disk writes as one or tears: every commit begins with a block of its own, so that
     * nothing acknowledged is ever written again. */
    FORM_BLOCK_BYTES = 4096,
    FORM_SEGMENT_BYTES_MIN = 16 * 1024,
    FORM_SEGMENT_BYTES_MAX = 4 * 1024 * 1024,
    FORM_SEGMENTS_MIN = 4, /* of a file */
    FORM_HEADER_BYTES = 72,
    FORM_PART_BYTES = 96, /* of the header of a part; its content follows */
    FORM_LENGTH_BYTES = 4 /* before each batch of the content */
};

/* The first block of a segment. The second block of the file repeats the first, so that one of the
 * two is whole while the other is written. */
typedef struct form_header {
    uint64_t segment_bytes;
    uint64_t index;    /* of this segment */
    uint64_t segments; /* that the file has at least */
    uint64_t generation;
    uint64_t epoch;
    uint64_t salt; /* random, of this start: nobody who sends payloads can make a part */
} form_header_t;

/* A commit is one part, or several where a segment has no room for it. */
typedef struct form_part {
    uint64_t salt;
    uint64_t generation;
    uint64_t epoch;
    uint64_t serial;   /* counts the writes of this start; that of all parts of a commit */
    uint64_t first;    /* batch of the commit */
    uint64_t last;     /* … */
    uint64_t previous; /* the last batch of the commit before it, 0 for none */
    uint64_t written;  /* the tables had all up to it */
    uint32_t part;     /* from 0 */
    uint32_t parts;
    uint32_t batches;
    uint32_t bytes; /* of content in this part */
    bool unsynced;  /* commits of this start are not synced */
} form_part_t;

typedef enum form_found { FORM_NONE, FORM_DAMAGED, FORM_NEWER, FORM_WHOLE } form_found_t;

/* FORM_HEADER_BYTES; the rest of the block is zero. */
void form_pack_header (uint8_t *to, const form_header_t *header);
/* NONE: the bytes are not ours. */
form_found_t form_unpack_header (form_header_t *out, const uint8_t *from);

/* Fills FORM_PART_BYTES before the content, which stands there already: the sum is over both. */
void form_pack_part (uint8_t *to, const form_part_t *part);
/* room: bytes that may be read. NONE: no part begins here, or not one with this salt. */
form_found_t form_unpack_part (form_part_t *out, const uint8_t *from, size_t room, uint64_t salt);

/* What a part takes of a segment, in whole blocks. */
uint64_t form_part_room (uint64_t content_bytes);
/* Where the first part of a segment may stand in it. */
uint64_t form_first_part (uint64_t segment);

void form_put_length (uint8_t to[FORM_LENGTH_BYTES], uint32_t length);
uint32_t form_get_length (const uint8_t from[FORM_LENGTH_BYTES]);

#endif
