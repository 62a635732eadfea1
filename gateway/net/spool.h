/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Files for what is larger than the gateway holds in memory, on its way through. They have no name:
 * whatever ends the process, nothing is left of them.
 *
 * One thread does what a disk can make wait: writing, reading, hashing, closing. The loop never
 * does. Of a file one thing is under way at a time. All functions are the loop's thread's. */
#ifndef TASKMQ_GATEWAY_NET_SPOOL_H
#define TASKMQ_GATEWAY_NET_SPOOL_H

#include "bytes.h"
#include "net/loop.h"

enum { SPOOL_HASH_BYTES = 32 };

typedef struct spool spool_t;
typedef struct spool_file spool_file_t;

/* What became of it: an errno, or 0. data: what was read; borrowed. The function may begin the next
 * thing, or close the file. */
typedef void spool_fn (void *context, int error, const bytes_t *data);

/* NULL with errno. The directory has to be there when a file is written to first. A file that would
 * exceed the process's limit is an error then (EFBIG): SIGXFSZ is ignored from now on. */
spool_t *spool_new (loop_t *loop, const char *directory);
/* Its files are closed before. Waits for what is under way. Accepts a NULL object. */
void spool_free (spool_t **self);

/* An empty one, NULL when memory is exhausted. */
spool_file_t *spool_open (spool_t *self);
/* What is under way is not told any more. Accepts a NULL object. */
void spool_close (spool_file_t **self);
/* Appends; *data is taken, and empty then. */
void spool_write (spool_file_t *self, bytes_t *data, spool_fn *fn, void *context);
/* Reads all of these bytes; EIO if they are not there. */
void spool_read (spool_file_t *self, uint64_t offset, size_t length, spool_fn *fn, void *context);
/* BLAKE2b-256 of all that was written. Nothing is under way, and nothing is written afterwards. */
void spool_hash (spool_file_t *self, uint8_t hash[SPOOL_HASH_BYTES]);

#endif
