/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The frames of a log's file (log_file.h): a piece of the stream each, behind a head of its own. */
#ifndef TASKMQ_LOGS_LOG_FRAME_H
#define TASKMQ_LOGS_LOG_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/log_piece.h"

enum { LOG_FRAME_HEAD_BYTES = 20 /* the most that stand before the bytes of a frame */ };

typedef struct log_frame {
    uint64_t at;     /* of its head in the file */
    uint64_t offset; /* of its bytes in the stream */
    uint32_t length;
    uint32_t sum; /* of its bytes, where the file has sums */
} log_frame_t;

/* Numbers, the smallest byte first. */
void log_put (uint8_t *out, uint64_t value, size_t bytes);
uint64_t log_get (const uint8_t *in, size_t bytes);
uint32_t log_sum (const void *bytes, size_t length);
/* As many as there are; fewer than wanted is the end of the file (errno 0) or an error. */
size_t log_read_all (int fd, uint8_t *out, size_t length, uint64_t at);

size_t log_frame_head_bytes (bool sums);
/* Behind its bytes, in the file and in the stream. */
uint64_t log_frame_upto (const log_frame_t *self, bool sums);
uint64_t log_frame_end (const log_frame_t *self);

/* The head of a frame with these bytes. */
void log_frame_pack (uint8_t *out, uint64_t offset, const uint8_t *bytes, size_t length, bool sums);
/* False: no head of a frame stands in these bytes. Sets all but `at`. */
bool log_frame_unpack (log_frame_t *out, const uint8_t *in, bool sums);
/* EIO: its bytes cannot be read; EBADMSG: they are others. */
int log_frame_read (const log_frame_t *self, int fd, bool sums, uint8_t out[TMQ_LOG_BYTES_MAX]);

#endif
