/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a backup says about itself: its last member, a text of lines "key value".
 *
 *     taskmq backup 1
 *     version 0.1.0
 *     made 2026-11-22T15:04:05.123Z
 *     generation 3ca2ee80d640c13f
 *     epoch 2
 *     batch 41
 *     newest 2026-11-22T15:04:05.001Z
 *     tasks 1000
 *     lacks 2
 *     part taskmq.db 409600 <BLAKE2b-256 of its bytes in hexadecimal>
 *
 * Because it comes last, a backup that was cut off has none. */
#ifndef TASKMQ_BACKUP_MANIFEST_H
#define TASKMQ_BACKUP_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MANIFEST_BYTES_MAX = 4096, MANIFEST_HASH_BYTES = 32, MANIFEST_VERSION_SIZE = 64 };
#define MANIFEST_NAME "MANIFEST"

/* X (NAME, file, at most so many bytes): what a backup may hold. */
#define MANIFEST_PART_MAP(X)                                                                       \
    X (TABLES, "taskmq.db", INT64_MAX)                                                             \
    X (ACCESS, "access", 16 * 1024 * 1024)                                                         \
    X (BLOBS, "blobs", INT64_MAX)                                                                  \
    X (SERVER_KEY, "server.key", 16 * 1024)

typedef enum manifest_part_name {
#define X(NAME, file, most) PART_##NAME,
    MANIFEST_PART_MAP (X)
#undef X
        PARTS
} manifest_part_name_t;

typedef struct manifest_part {
    bool there;
    uint64_t bytes;
    uint8_t hash[MANIFEST_HASH_BYTES];
} manifest_part_t;

typedef struct manifest {
    char version[MANIFEST_VERSION_SIZE]; /* of the broker */
    int64_t made_ms;
    uint64_t generation;
    uint64_t epoch;
    uint64_t batch;
    int64_t newest_ms; /* of the batch */
    uint64_t tasks;
    uint64_t lacks; /* blobs that tasks name: they were missing or damaged. 0: no such line */
    manifest_part_t parts[PARTS];
} manifest_t;

const char *manifest_file (manifest_part_name_t part);
uint64_t manifest_bytes_max (manifest_part_name_t part);
/* The part with this name; PARTS: none. */
manifest_part_name_t manifest_find (const char *file);

/* The length of the text. */
size_t manifest_write (const manifest_t *self, char out[MANIFEST_BYTES_MAX]);
/* False: it is none, or a later form. */
bool manifest_read (manifest_t *out, const char *text, size_t length);

#endif
