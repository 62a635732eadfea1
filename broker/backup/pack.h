/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The blobs of a data directory as one part of a backup: for each its hash, its length (8 bytes,
 * the highest first) and its bytes. Each is compared with its hash when it is unpacked. */
#ifndef TASKMQ_BACKUP_PACK_H
#define TASKMQ_BACKUP_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACK_HASH_BYTES = 32, PACK_HEAD_BYTES = PACK_HASH_BYTES + 8 };

typedef struct pack_blob {
    uint8_t hash[PACK_HASH_BYTES];
    uint64_t bytes;
} pack_blob_t;

/* Those that are there now: an array of the heap, NULL for none. False with errno. */
bool pack_list (const char *directory, pack_blob_t **out, size_t *count);
/* Bytes of a pack of them. */
uint64_t pack_bytes (const pack_blob_t *blobs, size_t count);
void pack_head (uint8_t out[PACK_HEAD_BYTES], const pack_blob_t *blob);
/* A descriptor to read it; -1 with errno. */
int pack_open (const char *directory, const pack_blob_t *blob);

/* Files that a pack becomes, below a directory that it makes. */
typedef struct unpack unpack_t;

unpack_t *unpack_new (int at, const char *name);
void unpack_free (unpack_t **self); /* accepts a NULL object */
/* The next bytes of the pack. NULL, or what is wrong; errno counts if that is empty. */
const char *unpack_add (unpack_t *self, const uint8_t *bytes, size_t length);
/* That was all of it, and it is on the disk. As unpack_add. */
const char *unpack_end (unpack_t *self);

/* Removes a directory of blobs with what is in it; what is none stays. */
void pack_remove (int at, const char *name);

#endif
