/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The directory `logs` of the data: a file for each stream of each attempt (log_file.h), 256 tasks
 * a directory. No name in it comes from a peer.
 *
 * Limits: bytes of a stream, newest attempts of a task, tasks with a log, bytes of all. Beyond the
 * last two the logs of the task that was written longest ago go. A disk with little space takes
 * nothing more. Not thread-safe: one thread has it. */
#ifndef TASKMQ_LOGS_SHELF_H
#define TASKMQ_LOGS_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/data/log_piece.h"

typedef struct shelf shelf_t;

enum {
    SHELF_ATTEMPTS_MAX = 8, /* newest ones of a task that keep their logs */
    SHELF_OPEN_MAX = 16,    /* files that are open at a time, and … */
    SHELF_KNOWN_MAX = 256,  /* … that need not be looked through when they are opened again */
    SHELF_SLICE_MAX = 64    /* tasks that one slice of the look at the start brings */
};

typedef struct shelf_limits {
    uint64_t stream_bytes;   /* of a stream, 1 MiB */
    uint64_t disk_bytes;     /* of all logs, 1 GiB */
    size_t tasks;            /* with a log, 100,000 */
    uint64_t free_bytes_min; /* of the disk */
} shelf_limits_t;

typedef struct shelf_stats {
    uint64_t tasks;
    uint64_t bytes;
    uint64_t lost;    /* bytes that found no place */
    uint64_t evicted; /* tasks whose logs went for others */
    uint64_t removed; /* … with their tasks */
    uint64_t errors;
    uint64_t cut; /* bytes at the ends of files that were cut off, and not looked at, … */
    uint64_t cut_files;
    log_key_t cut_last; /* … and of which log the last were */
} shelf_stats_t;

/* Opens the directory, which it makes with mode 0700. NULL with an errno in *error. */
shelf_t *shelf_new (const char *directory, const shelf_limits_t *limits, int *error);
void shelf_free (shelf_t **self); /* accepts a NULL object */
void shelf_configure (shelf_t *self, const shelf_limits_t *limits);

/* 0 or an errno; then the piece is lost. mono_ms: the clock, for looks at the disk. */
int shelf_write (shelf_t *self, const log_piece_t *piece, int64_t mono_ms);

typedef struct shelf_page {
    uint32_t attempt; /* 0: the task has no log */
    uint64_t offset;
    size_t length; /* of bytes */
    uint64_t end;  /* of what was brought: behind what is kept, where the end was lost */
    bool more;     /* bytes are kept behind these, or the disk does not say: the next page will */
} shelf_page_t;
/* What stands at an offset (log_file_read). An attempt 0 in the key is the newest with a log. */
int shelf_read (shelf_t *self, const log_key_t *key, uint64_t offset, uint8_t *bytes, size_t limit,
                shelf_page_t *out);
/* The task is gone. */
void shelf_forget (shelf_t *self, int64_t number);

/* Goes on looking for the logs that a former run has left: tasks that have some. False: that was
 * all. What is no log of a task, like the rest of a write, is removed on the way. */
bool shelf_look (shelf_t *self, log_key_t *out, size_t *count);

shelf_stats_t shelf_stats (const shelf_t *self);

#endif
