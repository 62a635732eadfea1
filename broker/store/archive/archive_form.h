/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A segment of the archive, byte for byte, as docs/ARCHIVE.md tells it: batches as they stand in
 * the journal, behind a header that says which, and a trailer once there are no more to come. It
 * touches no file and trusts no byte. */
#ifndef TASKMQ_STORE_ARCHIVE_FORM_H
#define TASKMQ_STORE_ARCHIVE_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/journal/form.h"

enum {
    ARCHIVE_FORM_VERSION = 1,
    ARCHIVE_HEADER_BYTES = 72,
    ARCHIVE_TRAILER_BYTES = 32,
    ARCHIVE_NAME_SIZE = 80
};

/* Where a segment belongs. */
typedef struct archive_header {
    uint64_t generation;
    uint64_t epoch;    /* of all its batches */
    uint64_t previous; /* batch of that epoch in front of the first one; 0: it begins the epoch */
    /* The newest batch of all before this epoch; both 0: nobody knew it. */
    uint64_t base_epoch;
    uint64_t base_batch;
    int64_t made_ms; /* wall */
} archive_header_t;

/* GENERATION-EPOCH-FIRST.seg, while it is written .part: a name sorts as its batches do. */
void archive_name (char out[ARCHIVE_NAME_SIZE], const archive_header_t *header, bool open);
/* What a name says: generation, epoch and previous. False: it is no segment's. */
bool archive_name_read (const char *name, archive_header_t *out, bool *open);

void archive_pack_header (uint8_t to[ARCHIVE_HEADER_BYTES], const archive_header_t *header);

/* The sum that goes through a segment: begun with that of its header, then over each frame (the
 * length and the batch). */
uint64_t archive_sum_begin (const uint8_t header[ARCHIVE_HEADER_BYTES]);
uint64_t archive_sum_add (uint64_t sum, const uint8_t *frame, size_t bytes);
void archive_pack_trailer (uint8_t to[ARCHIVE_TRAILER_BYTES], uint64_t batches, uint64_t last,
                           uint64_t sum);
/* The last batch, which may be damaged as all of it may. False: it is no trailer. */
bool archive_trailer_last (uint64_t *out, const uint8_t from[ARCHIVE_TRAILER_BYTES]);

/* What a reader has to know of a batch, without unpacking it. */
typedef struct archive_peek {
    uint64_t generation;
    uint64_t epoch;
    uint64_t no;
    uint64_t previous;
    int64_t wall_ms;
} archive_peek_t;

/* False: the batch is not whole. */
bool archive_peek (archive_peek_t *out, const uint8_t *body, size_t bytes);
/* The hash of each blob that tasks name since this batch (TMQ_BLOB_HASH_BYTES, lent). The batch is
 * whole; false: it is not one. */
typedef void archive_blob_t (void *context, const uint8_t *hash);
bool archive_blobs (const uint8_t *body, size_t bytes, archive_blob_t *each, void *context);

/* Reading a segment that is in memory. */
typedef struct archive_reading {
    const uint8_t *bytes;
    size_t length;
    size_t at; /* behind the batches that were read: up to here it is whole */
    uint64_t sum;
    uint64_t batches;
    archive_header_t header;
    archive_peek_t last; /* the batch read last; no 0: none was */
} archive_reading_t;

/* Everything but WHOLE: nothing of it can be read. */
form_found_t archive_read_begin (archive_reading_t *out, const uint8_t *bytes, size_t length);

typedef enum archive_step {
    ARCHIVE_BATCH,
    ARCHIVE_ENDED, /* by its trailer, with nothing behind it */
    ARCHIVE_TORN,  /* the file ends without one, … */
    ARCHIVE_WRONG  /* … or has something else, at `at` */
} archive_step_t;
/* The next batch, lent; `last` tells of it. */
archive_step_t archive_read_next (archive_reading_t *self, const uint8_t **body, size_t *bytes);

/* Of a segment that was not closed. A loss of power takes what was not synced, and leaves zeros in
 * its place, or a file that ends; that is a torn end and no damage. */

/* All of it, the header too, or it is too short for one. */
bool archive_is_empty (const uint8_t *bytes, size_t length);
/* The reading stopped at what is torn. False: it is damaged, for whole batches stand behind it, and
 * no page is missing in between. */
bool archive_read_is_torn (const archive_reading_t *self);

#endif
