/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Uploads that are not under way: nobody brings more of them just now, but their files are there,
 * and whoever begins one again goes on with it. Until then their bytes are room that others may
 * need, so it is known how many each uploader has, and which of them has stood still for longest.
 *
 * Names are those of the files in `uploads`; their first half says whose they are. */
#ifndef TASKMQ_BLOBS_PARKED_H
#define TASKMQ_BLOBS_PARKED_H

#include <stddef.h>
#include <stdint.h>

#include "blobs/blob_files.h"

enum {
    PARKED_MAX = 4096, /* there is room for so many: the depot removes the oldest for another one */
    PARKED_OWNER_LENGTH = TMQ_BLOB_HASH_BYTES /* of a name: half of its digits */
};

typedef struct parked_file {
    char name[BLOB_HEX_SIZE];
    uint64_t bytes;   /* that the file has */
    int64_t since_ms; /* mono; PARKED_UNKNOWN: since before this start */
} parked_file_t;

#define PARKED_UNKNOWN INT64_MIN

typedef struct parked {
    parked_file_t *files;
    size_t count;
    size_t capacity;
} parked_t;

void parked_init (parked_t *self);
void parked_clear (parked_t *self);
/* There is none of this name, and there are fewer than PARKED_MAX. */
void parked_add (parked_t *self, const char *name, uint64_t bytes, int64_t since_ms);
/* It is under way again, or gone. */
void parked_drop (parked_t *self, const char *name);
/* Bytes of the others of whose this name is. */
uint64_t parked_beside (const parked_t *self, const char *name);
/* The one that has stood still for longest, and for still_ms at least, of whose this name is, or
 * with NULL of all; NULL: there is none. Those of before this start count from the first such call
 * on, and are the oldest for a still_ms of 0. */
const parked_file_t *parked_oldest (parked_t *self, const char *name, int64_t mono_ms,
                                    int64_t still_ms);

#endif
