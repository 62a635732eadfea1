/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which files of blobs have the bytes of their hash, as far as they were summed. What is known of a
 * file is forgotten when it changes, also when it is only touched, and when SUMMED_MAX others were
 * summed behind it: then it is summed once more. Not thread-safe. */
#ifndef TASKMQ_BLOBS_SUMMED_H
#define TASKMQ_BLOBS_SUMMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "taskmq_types.h"

enum { SUMMED_MAX = 1024 };

typedef struct summed_file {
    uint8_t hash[TMQ_BLOB_HASH_BYTES];
    dev_t device;
    ino_t inode;
    struct timespec changed;
    bool good;
    bool told; /* the asker's; false at first */
} summed_file_t;

/* Zeroed is one without files. */
typedef struct summed {
    summed_file_t files[SUMMED_MAX];
    size_t count;
    size_t next; /* to be given up for another one */
} summed_t;

/* NULL: it is not known of this file. */
summed_file_t *summed_find (summed_t *self, const uint8_t *hash, const struct stat *file);
void summed_add (summed_t *self, const uint8_t *hash, const struct stat *file, bool good);
void summed_forget (summed_t *self, const uint8_t *hash);

#endif
