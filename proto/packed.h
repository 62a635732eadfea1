/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads files of lines that may be packed: NAME, or NAME.zst.
 *
 * A packed file is frames of zstd, one behind the other; each holds at most PACKED_FRAME_BYTES of
 * text, says how many, and has a checksum. So a file is read from any place in little memory, and
 * one that somebody planted unpacks to no more than a frame at a time. zstdcat reads it too. */
#ifndef TASKMQ_PROTO_PACKED_H
#define TASKMQ_PROTO_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PACKED_ENDING ".zst"
enum {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION /* large blocks would take most of its time */
    PACKED_FRAME_BYTES = 16 * 1024,
    PACKED_LINE_MAX = 2 * 1024
#else
    PACKED_FRAME_BYTES = 1024 * 1024,
    PACKED_LINE_MAX = 128 * 1024 /* of a longer line the rest may be left out */
#endif
};
/* Of text in a file. */
#define PACKED_TEXT_MAX (UINT64_C (65) << 30)

typedef struct packed packed_t;

/* Opens a file, packed if its name has the ending. Where nothing has the name, the packed one
 * beside it is taken: a file is packed while others look for it. ours: it stands in a directory of
 * ours, where a link or something that is no file is refused. NULL with errno. */
packed_t *packed_open (const char *path, bool ours);
void packed_close (packed_t **self_p);

/* So many bytes of text from this offset on; fewer at the end only. -1 with errno: EBADMSG if it is
 * damaged, EFBIG if it holds more than the limits. */
ssize_t packed_read (packed_t *self, void *out, size_t length, uint64_t offset);
/* What such an errno means for a reader. */
const char *packed_problem (int reason);

/* The next line from the beginning on, without its newline; valid until the next call. whole:
 * there was a newline. 1: a line, 0: the end, -1 with errno as packed_read. */
int packed_line (packed_t *self, const char **line, size_t *length, bool *whole);

#endif
