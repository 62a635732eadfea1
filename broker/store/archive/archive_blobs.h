/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Blobs of an archive: blobs/ab/cdef… in its directory, as in the data's own (broker/blobs), and
 * those that wait to be carried: archiving/blobs/abcdef…, second names of the data's files. */
#ifndef TASKMQ_STORE_ARCHIVE_BLOBS_H
#define TASKMQ_STORE_ARCHIVE_BLOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

#define ARCHIVE_BLOBS "blobs"

enum {
    ARCHIVE_HEX_SIZE = 65,
    ARCHIVE_UNREAD_MAX = 64 /* that are remembered; the others are read again each time */
};

/* The spooler's: a blob that a batch names waits from now on. One that the data has no more is
 * passed over; the carrier says so. */
void archive_blob_keep (const char *blobs, const char *spool, const uint8_t *hash);
/* All that wait are given up. */
void archive_blobs_forget (const char *spool);

typedef struct archive_blobs_report {
    uint64_t carried;
    uint64_t damaged;               /* or gone: they are left out */
    char example[ARCHIVE_HEX_SIZE]; /* one of these */
    uint64_t unreadable;            /* they wait still */
    int error;                      /* 0: all of them were known to be, … */
    char unread[ARCHIVE_HEX_SIZE];  /* … or why this one, which was tried, cannot be read */
} archive_blobs_report_t;

/* Those that could not be read: they are passed over until it is time to try them again. */
typedef struct archive_unread {
    uint8_t hashes[ARCHIVE_UNREAD_MAX][TMQ_BLOB_HASH_BYTES];
    size_t count;
} archive_unread_t;

/* The carrier's: brings all that wait into the archive, each compared with its hash and on the disk
 * under its name; then they wait no more. One that the disk does not give is no damage: it waits
 * for another try, and others go on. False with errno: the archive fails. */
bool archive_blobs_carry (const char *spool, const char *directory, archive_unread_t *unread,
                          archive_blobs_report_t *out);
/* Removes those that no batch named since a time of the wall's clock. */
void archive_blobs_expire (const char *directory, int64_t before_ms);
/* Copies one of the archive to a path, which must not be there. False with errno; ENOENT: the
 * archive does not have it; EBADMSG: it is damaged; *read_ok false: it could not be read. */
bool archive_blob_fetch (const char *directory, const uint8_t *hash, const char *path,
                         bool *read_ok);

#endif
