/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One stream of one attempt in a file:
 *
 *     head    "tmqlog2\n", whose log it is, a sum of that
 *     frames  offset in the stream, length, a check of both, a sum of the bytes; then the bytes
 *
 * A frame that does not begin where the one before it ended tells of a gap. Nothing is synced, so a
 * loss of power may leave names without heads, and frames without their bytes. What is not whole at
 * the end is cut off when the file is opened to be written. What is not whole before that is passed
 * over, as a gap. Files of before ("tmqlog1\n") have no sums, and are read and written on as they
 * are. Not thread-safe. */
#ifndef TASKMQ_LOGS_LOG_FILE_H
#define TASKMQ_LOGS_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/log_piece.h"

enum {
    LOG_FILE_HEAD_BYTES = 112,
    LOG_FILE_FRAME_BYTES = 20, /* before the bytes of each */
    LOG_FILE_NAME_SIZE = 64
};

typedef struct log_file {
    int fd;
    uint64_t size; /* of what is whole */
    uint64_t end;  /* offset behind the newest byte */
    bool sums;     /* it has them */
} log_file_t;

/* "NUMBER-ATTEMPT.out". */
void log_file_name (char out[LOG_FILE_NAME_SIZE], int64_t number, uint32_t attempt,
                    tmq_log_stream_t stream);
/* False: it is no such name. */
bool log_file_parse (const char *name, int64_t *number, uint32_t *attempt,
                     tmq_log_stream_t *stream);

/* All of these return 0 or an errno. */

/* Opens the file in a directory. make: to be written; it is made with mode 0600, and anew where it
 * has no whole head. A link, something that is no plain file, or the log of somebody else is
 * refused: EPERM. */
int log_file_open (log_file_t *self, int directory, const log_key_t *key, bool make);
void log_file_close (log_file_t *self); /* of one that was opened */
/* What the head of a file says. EPERM: it is none; another errno: it cannot be read now. */
int log_file_head (int directory, const char *name, log_key_t *out);
/* Appends what lies behind the end; the rest was taken before. Beyond size_max the older half of
 * the file goes first. When it fails, nothing that was whole is lost; then it is to be closed. */
int log_file_append (log_file_t *self, int directory, const log_key_t *key, uint64_t offset,
                     const uint8_t *bytes, size_t length, uint64_t size_max);
/* The bytes from an offset on, or, if they are not kept or not whole, from the first one behind it:
 * *offset is then another one. As many as stand there without a gap, at most limit. */
int log_file_read (const log_file_t *self, uint64_t *offset, uint8_t *out, size_t limit,
                   size_t *length);

#endif
