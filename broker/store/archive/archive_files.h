/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Segments as files: the one that is being written, the list of those that are there, one as a
 * whole in memory. Functions return false with errno when the system refuses. */
#ifndef TASKMQ_STORE_ARCHIVE_FILES_H
#define TASKMQ_STORE_ARCHIVE_FILES_H

#include "bytes.h"
#include "store/archive/archive_form.h"

enum {
    ARCHIVE_SEGMENT_BYTES = 16 * 1024 * 1024,   /* a segment is closed then … */
    ARCHIVE_SEGMENT_MS = 60 * 1000,             /* … or after this time, once it has a batch */
    ARCHIVE_FILE_BYTES_MAX = 256 * 1024 * 1024, /* a file beyond it is not one of ours */
    ARCHIVE_PATH_SIZE = 4096 + ARCHIVE_NAME_SIZE + 80
};

/* A segment that grows. */
typedef struct archive_writer {
    int fd; /* -1: there is none */
    char directory[4096];
    archive_header_t header;
    uint64_t bytes;
    uint64_t batches;
    uint64_t last; /* batch; without any that in front of it */
    uint64_t sum;
    int64_t opened_ms; /* monotonic */
    bool unsynced;
} archive_writer_t;
#define ARCHIVE_WRITER_INIT                                                                        \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Makes NAME.part, in the place of one that is there. */
bool archive_writer_begin (archive_writer_t *self, const char *directory,
                           const archive_header_t *header, int64_t mono_ms);
/* Goes on with one that was left open, behind what is whole of it; the rest is cut off. */
bool archive_writer_resume (archive_writer_t *self, const char *directory,
                            const archive_reading_t *read, int64_t mono_ms);
/* Appends a frame, a batch with its length; `last` is its number. */
bool archive_writer_add (archive_writer_t *self, const uint8_t *frame, size_t bytes, uint64_t last);
/* What was written is on the disk, in a file that still has its name: ENOENT when somebody took it
 * away. */
bool archive_writer_sync (archive_writer_t *self);
/* The trailer, a sync, then the other name. */
bool archive_writer_close (archive_writer_t *self);
/* Leaves the file as it is. */
void archive_writer_leave (archive_writer_t *self);

/* What a directory has. */
typedef struct archive_file {
    char name[ARCHIVE_NAME_SIZE];
    archive_header_t header; /* generation, epoch and previous, as the name has them */
    bool open;
    uint64_t bytes;
    int64_t changed_ms; /* wall */
} archive_file_t;

typedef struct archive_list {
    archive_file_t *files; /* by generation, epoch and first; of two an open one comes last */
    size_t count;
} archive_list_t;

/* generation 0: of all. */
bool archive_list (archive_list_t *out, const char *directory, uint64_t generation);
void archive_list_free (archive_list_t *self);

/* The bytes of a file, in the place of what was in `out`. EFBIG: it has more than a segment. */
bool archive_load (bytes_t *out, const char *directory, const char *name);
/* The last batch of a closed one, as its trailer says: that is not compared with its sum. */
bool archive_load_last (uint64_t *out, const char *directory, const char *name);

#endif
