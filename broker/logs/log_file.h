/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One stream of one attempt in a file:
 *
 *     head    "tmqlog2\n", whose log it is, a sum of that
 *     frames  offset in the stream, length, a check of both, a sum of the bytes; then the bytes
 *
 * A frame that does not begin where the one before it ended tells of a gap. Nothing is synced, so a
 * loss of power may leave names without heads, frames without their bytes, and zeros where frames
 * were. What is not whole at the end is cut off when the file is opened to be written. What is not
 * whole before that is passed over, as a gap, also where heads of frames are gone (log_map_build
 * says how far behind a hole the next frame is looked for: what is beyond that is an end, too, and
 * self->cut tells of it).
 * Files of before ("tmqlog1\n") have no sums, and are read and written on as they are: such a hole
 * ends them, since nothing says which bytes behind it are a frame. Not thread-safe. */
#ifndef TASKMQ_LOGS_LOG_FILE_H
#define TASKMQ_LOGS_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/stat.h>

#include "logs/log_map.h"

enum { LOG_FILE_HEAD_BYTES = 112, LOG_FILE_NAME_SIZE = 64 };

typedef struct log_file {
    int fd;        /* -1: it is closed */
    uint64_t size; /* of what is whole */
    uint64_t end;  /* offset behind the newest byte */
    uint64_t lost; /* … and behind what stood there once, as far as that is known; or 0 */
    int error;     /* of a place behind that, which could not be looked through; or 0 */
    uint64_t cut;  /* bytes behind that which this opening took off without a look at all of them */
    bool sums;     /* it has them */
    bool writable;
    bool known; /* all this is, of the file as it was seen */
    struct stat seen;
    log_map_t map;
} log_file_t;
#define LOG_FILE_INIT                                                                              \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* "NUMBER-ATTEMPT.out". */
void log_file_name (char out[LOG_FILE_NAME_SIZE], int64_t number, uint32_t attempt,
                    tmq_log_stream_t stream);
/* False: it is no such name. */
bool log_file_parse (const char *name, int64_t *number, uint32_t *attempt,
                     tmq_log_stream_t *stream);

/* All of these return 0 or an errno. */

/* Opens the file in a directory, into LOG_FILE_INIT or one that was closed. It is looked through,
 * unless it was opened before and has not changed since. make: to be written; it is made with mode
 * 0600, and anew where it has no whole head. A link, something that is no plain file, or the log of
 * somebody else is refused: EPERM. */
int log_file_open (log_file_t *self, int directory, const log_key_t *key, bool make);
/* By somebody else, since it was opened to be read. */
bool log_file_has_changed (const log_file_t *self);
void log_file_close (log_file_t *self); /* what is known of it stays */
void log_file_clear (log_file_t *self); /* closes it, and forgets all */
/* What the head of a file says. EPERM: it is none; another errno: it cannot be read now. */
int log_file_head (int directory, const char *name, log_key_t *out);
/* Appends what lies behind the end; the rest was taken before. Beyond size_max the older half of
 * the file goes first. When it fails, nothing that was whole is lost; then it is to be closed. */
int log_file_append (log_file_t *self, int directory, const log_key_t *key, uint64_t offset,
                     const uint8_t *bytes, size_t length, uint64_t size_max);
/* The bytes from an offset on, or, if they are not kept or not whole, from the first one behind it:
 * *offset is then another one. As many as stand there without a gap, at most limit.
 *
 * A disk that cannot read the head of a frame hides what is behind it, and nothing before it. Pages
 * before it are read; self->error says that more may stand behind them, and `end` is only as far as
 * was seen. The page that would begin there is the error. It is looked at again at the next
 * opening. */
int log_file_read (log_file_t *self, uint64_t *offset, uint8_t *out, size_t limit, size_t *length);

#endif
