/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The thread that writes tasks.jsonl (A55): after each write-back it follows the events in order
 * and appends a line for every task whose newest event it meets. It lags when the disk is full or
 * slow, catches up by itself, and never holds up the broker. */
#ifndef TASKMQ_EXPORT_EXPORTER_H
#define TASKMQ_EXPORT_EXPORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "export/compactor.h"
#include "export/tasks_file.h"
#include "export/watermark.h"
#include "redact.h"
#include "store/bar.h"
#include "store/store.h"

typedef struct exporter exporter_t;

typedef struct exporter_options {
    store_t *store;         /* must outlive the exporter */
    const char *path;       /* of tasks.jsonl */
    uint64_t last_pos;      /* newest event of the database at the start */
    int wake_fd;            /* a wakeup that the store's notify raises */
    bar_t *bar;             /* until it is lifted nothing is read; NULL: at once */
    uint32_t stop_ms;       /* at the end it follows for so long; the next start does the rest */
    watermark_t *watermark; /* NULL: nobody else writes the events */
    compactor_options_t compact;
    redactor_t *redactor; /* NULL: nothing is replaced; taken over */
    /* A read that failed for good: the process ends. Called on the exporter's thread. */
    void (*failed) (const store_error_t *error);
} exporter_options_t;

/* NULL with `error` if the file cannot be used or the thread cannot be made. */
exporter_t *exporter_new (const exporter_options_t *options, char error[TASKS_FILE_ERROR_SIZE]);
/* Asks it to write what is in the tables by now, within stop_ms, and to end. Waits for nothing. */
void exporter_stop (exporter_t *self);
/* Stops it and waits for its end. Accepts a NULL object. */
void exporter_free (exporter_t **self);

typedef struct exporter_stats {
    uint64_t pos;         /* every event up to it stands in the file */
    uint64_t lines;       /* written since the start */
    uint64_t errors;      /* writes that failed and were repeated */
    uint64_t compactions; /* since the start */
} exporter_stats_t;
void exporter_stats (const exporter_t *self, exporter_stats_t *out); /* any thread */

#endif
