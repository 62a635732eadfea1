/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Where the frames of a log's file are: so a page of it is found without a walk through the file,
 * and the file is looked through once. Not thread-safe. */
#ifndef TASKMQ_LOGS_LOG_MAP_H
#define TASKMQ_LOGS_LOG_MAP_H

#include "logs/log_frame.h"

enum {
    LOG_STRETCH_BYTES = 256 * 1024, /* a page is looked for in so many, and a frame */
    /* Of one look through a file: */
    LOG_HOLES_MAX = 1000,                /* that are passed, and … */
    LOG_SEEK_BYTES_MAX = 4 * 1024 * 1024 /* … bytes of them that are looked at or summed */
};

/* Frames that follow each other without a hole. */
typedef struct log_stretch {
    uint64_t at; /* of the first one in the file */
    uint64_t upto;
    uint64_t end; /* in the stream */
} log_stretch_t;

/* Zeroed is one without frames. */
typedef struct log_map {
    log_stretch_t *stretches;
    size_t count;
    size_t capacity;
    bool ended; /* a limit, or the want of sums, ended the look: frames may stand behind it */
} log_map_t;

void log_map_clear (log_map_t *self);
/* Looks through a file of this size, from `from` on. What is no frame is a hole: behind it goes on
 * the next frame whose bytes are those of its sum, while LOG_HOLES_MAX and LOG_SEEK_BYTES_MAX
 * allow; without sums nothing does. The map ends with the last frame that is whole, or that cannot
 * be read now. *lost: where frames behind that end in the stream, as far as their heads say; 0:
 * there are none. EIO: the disk may say more later; the map has what stands before that place. */
int log_map_build (log_map_t *self, int fd, uint64_t from, uint64_t size, bool sums,
                   uint64_t *lost);
/* A frame behind all others. */
void log_map_add (log_map_t *self, const log_frame_t *frame, bool sums);
/* The frames before a place in the file go, and the others move there by so many bytes. */
void log_map_cut (log_map_t *self, uint64_t before, uint64_t moved);

/* A walk over frames. */
typedef struct log_walk {
    const log_map_t *map;
    int fd;
    bool sums;
    size_t stretch;
    uint64_t at;   /* of the next frame; 0: of the first one of the stretch */
    uint64_t from; /* what is in the window */
    size_t have;
    uint8_t window[4096];
} log_walk_t;

/* From the stretch on in which something of the stream stands from the offset on, … */
void log_walk_to_offset (log_walk_t *self, const log_map_t *map, int fd, bool sums,
                         uint64_t offset);
/* … or of the file. */
void log_walk_to_place (log_walk_t *self, const log_map_t *map, int fd, bool sums, uint64_t at);
/* ENOENT: there is no further one. EBADMSG: the file is not the one that was looked through. */
int log_walk_next (log_walk_t *self, log_frame_t *out);

#endif
