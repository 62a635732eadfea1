/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Pieces: what is committed and in no segment yet, as files in DATA/archiving, in the order of
 * their numbers. Each has the header of a segment and whole batches. Blobs that they name wait
 * beside them, by a second name, so that nothing removes them.
 *
 * One thread, but where it says otherwise. Functions return false with errno. */
#ifndef TASKMQ_STORE_ARCHIVE_SPOOL_H
#define TASKMQ_STORE_ARCHIVE_SPOOL_H

#include <stdatomic.h>

#include "store/archive/archive_files.h"

#define ARCHIVE_SPOOL "archiving"

enum {
    SPOOL_NAME_SIZE = 32,
    SPOOL_PIECE_BYTES = 4 * 1024 * 1024 /* a piece is worth being carried */
};

typedef struct archive_spool {
    char directory[4096]; /* DATA/archiving */
    char blobs[4096];     /* DATA/blobs */
    archive_header_t header;
    int fd;          /* of the newest piece, which grows; -1: there is none */
    uint64_t serial; /* of it */
    uint64_t piece_bytes;
    atomic_uint_fast64_t bytes; /* of all of them */
} archive_spool_t;

bool spool_open (archive_spool_t *self, const char *data);
void spool_close (archive_spool_t *self);
/* Begins a piece of these. */
bool spool_begin (archive_spool_t *self, const archive_header_t *header);
/* Appends whole frames. What fails leaves a piece with a torn end, and none that grows. */
bool spool_put (archive_spool_t *self, const uint8_t *frames, size_t bytes);
/* The piece that grows is on the disk, with its name. */
bool spool_sync (archive_spool_t *self);
/* Ends the piece, if there is something in it, and begins the next one. */
bool spool_cut (archive_spool_t *self);
/* Removes all of them, and the blobs. */
void spool_give_up (archive_spool_t *self);

/* By the carrier: those before this number. An array of the heap, in order. */
bool spool_list (const archive_spool_t *self, uint64_t before, uint64_t **out, size_t *count);
void spool_name (char out[SPOOL_NAME_SIZE], uint64_t serial);
/* One that was carried, of so many bytes. Any thread. */
void spool_remove (archive_spool_t *self, uint64_t serial, uint64_t bytes);

#endif
