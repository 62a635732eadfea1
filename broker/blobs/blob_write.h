/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* How the bytes of an upload come to the disk. Those of a large one go past the page cache
 * (O_DIRECT) where the file system takes that: filling the cache with a gigabyte that nobody reads
 * soon costs more time than all else that is done with it, and pushes out what others read. The
 * rest goes through the cache, and the disk begins with it every BLOB_WRITE_BACK_BYTES: so the sync
 * at the end never has much to do, and the journal never waits for long. Not thread-safe. */
#ifndef TASKMQ_BLOBS_BLOB_WRITE_H
#define TASKMQ_BLOBS_BLOB_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLOB_WRITE_BACK_BYTES = 8 * 1024 * 1024,  /* that come before the disk has to begin with them */
    BLOB_DIRECT_BYTES = BLOB_WRITE_BACK_BYTES /* a file that becomes larger is large */
};

typedef struct blob_writer {
    uint8_t *piece; /* aligned as a disk wants it */
} blob_writer_t;

void blob_writer_init (blob_writer_t *self);
void blob_writer_clear (blob_writer_t *self);

/* How far the writing of a file is. */
typedef struct blob_sent {
    uint64_t sent;    /* up to here the disk was asked to write, … */
    uint64_t written; /* … and up to here it has */
    bool refused;     /* O_DIRECT: by the file system; the next file asks again */
} blob_sent_t;

/* All of the bytes, of a file that becomes so large. 0 or an errno: some of them may be there then.
 */
int blob_write (const blob_writer_t *self, blob_sent_t *sent, int fd, const uint8_t *bytes,
                size_t length, uint64_t at, uint64_t file_bytes);

/* The file has bytes up to the end now. 0 or an errno: it is told once, and no later sync would say
 * it. */
int blob_write_back (blob_sent_t *self, int fd, uint64_t end);

#endif
