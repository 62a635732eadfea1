/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* The thread that writes events.jsonl (A78): each event once, in the order of their positions, from
 * the tables. It lags when the disk is full or slow, or much is going on, and catches up by itself.
 * Nobody waits for it. */
#ifndef TASKMQ_EXPORT_EVENT_LOG_H
#define TASKMQ_EXPORT_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/shared_limit.h"
#include "export/event_files.h"
#include "export/watermark.h"
#include "store/bar.h"
#include "store/store.h"

typedef struct event_log event_log_t;

typedef struct event_log_options {
    store_t *store;         /* it and the watermark must outlive the log */
    watermark_t *watermark; /* moved as far as is written */
    uint64_t generation;    /* of the database */
    uint64_t pos;           /* behind which it goes on */
    bool begin;             /* … with a new file, … */
    event_anchor_why_t why; /* … for this reason */
    int wake_fd;            /* a wakeup that the store's notify raises */
    bar_t *bar;             /* until it is lifted nothing is read; NULL: at once */
    uint32_t stop_ms;       /* at the end it follows for so long; the next start does the rest */
    bool pack;              /* turned files */
    shared_limit_t *free_bytes_min; /* of the disk: with less it waits */
    /* A read that failed for good: the process ends. Called on the log's thread. */
    void (*failed) (const store_error_t *error);
} event_log_options_t;

/* Takes the files. NULL with `error` if a thread cannot be made. */
event_log_t *event_log_new (const event_log_options_t *options, event_files_t **files,
                            char error[LINE_FILE_ERROR_SIZE]);
/* Asks it to write what is in the tables by now, within stop_ms, and to end. Waits for nothing.
 * Accepts NULL. */
void event_log_stop (event_log_t *self);
/* Stops it and waits for its end. Accepts a NULL object. */
void event_log_free (event_log_t **self);

typedef struct event_log_stats {
    uint64_t pos;    /* every event up to it stands in the files, or is told as a gap */
    uint64_t lines;  /* written since the start */
    uint64_t gaps;   /* … of them told of events that are not there */
    uint64_t errors; /* writes that failed and were repeated */
    uint64_t early;  /* turned files that were removed before their time, to make room */
    uint64_t files;  /* turned ones that are kept */
    uint64_t bytes;  /* of all files */
    bool stalled;    /* the last write failed */
} event_log_stats_t;
/* Any thread; a NULL log has none. */
void event_log_stats (event_log_t *self, event_log_stats_t *out);

#endif
