/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Names, directories and files, as the depot has them. Any thread. */
#ifndef TASKMQ_BLOBS_BLOB_FILES_H
#define TASKMQ_BLOBS_BLOB_FILES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "taskmq_types.h"

enum { BLOB_HEX_SIZE = 2 * TMQ_BLOB_HASH_BYTES + 1 };

void blob_hex (char out[BLOB_HEX_SIZE], const uint8_t *hash);
bool blob_hash_of_hex (uint8_t *out, const char *hex); /* false: it is no such name */

/* -1 with errno; AT_FDCWD as `at` is allowed. One that was made, with mode 0700, is on the disk
 * before anything is in it. */
int blob_directory_open (int at, const char *name);
int blob_directory_make (int at, const char *name);
DIR *blob_directory_list (int at, const char *name); /* NULL with errno */

/* It is a regular file, itself and no link to one. */
bool blob_file_find (int at, const char *name, struct stat *info);
int64_t blob_file_touched_ns (const struct stat *info);
/* Nobody touched it for so long, by the wall clock, which its time is of. */
bool blob_file_is_still (const struct stat *info, int64_t ms);

#endif
