/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Plain files in a tar archive (POSIX ustar). Whatever else an archive may hold, links, devices,
 * directories, names with a path, is refused: nobody but us makes those that are read here. */
#ifndef TASKMQ_BACKUP_TAR_H
#define TASKMQ_BACKUP_TAR_H

#include <stdbool.h>
#include <stdint.h>

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_SIZE = 101 };

typedef struct tar_member {
    char name[TAR_NAME_SIZE]; /* without a slash */
    uint64_t bytes;
} tar_member_t;

/* The block before a member's bytes, which are filled up to whole blocks with zeroes. Behind the
 * last member come two blocks of zeroes. */
void tar_write (uint8_t block[TAR_BLOCK_BYTES], const tar_member_t *member, int64_t made_s);
/* Bytes from a member's end to the end of its last block. */
uint32_t tar_rest (uint64_t bytes);

typedef enum tar_found { TAR_MEMBER, TAR_END, TAR_REFUSED } tar_found_t;
/* REFUSED: *why is a constant text. */
tar_found_t tar_read (const uint8_t block[TAR_BLOCK_BYTES], tar_member_t *out, const char **why);

#endif
