/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The logs of tasks, written and read by a thread of their own: neither a change of a task nor an
 * answer about one waits for these files. Jobs are done in the order in which they came, so a read
 * finds what was taken before it.
 *
 * Best effort: nothing is synced, and what a full disk does not take is lost, which is said once.
 * What waits is bounded by whoever brings it (engine_config.log_bytes_max, open errands). */
#ifndef TASKMQ_LOGS_LOGS_H
#define TASKMQ_LOGS_LOGS_H

#include "core/data/errand.h"
#include "core/data/log_piece.h"
#include "logs/shelf.h"

typedef struct logs logs_t;

/* directory: of the logs. Where it cannot be used the broker goes on without, and says so. NULL: no
 * thread or no descriptor can be had. */
logs_t *logs_new (const char *directory, const shelf_limits_t *limits);
/* Waits for the job under way; the others are forgotten, with their pieces. Accepts a NULL
 * object. Errands stay with who brought them. */
void logs_free (logs_t **self);

/* All of these on one thread, the asker's. */

void logs_configure (logs_t *self, const shelf_limits_t *limits);
void logs_write (logs_t *self, log_piece_t *piece); /* comes back by logs_done */
/* A READ_LOG, about errand->task_number; comes back by logs_done. */
void logs_read (logs_t *self, errand_t *errand);
/* These tasks are gone; takes the array, of the heap. */
void logs_forget (logs_t *self, int64_t *numbers, size_t count);
/* False: there is no log of any task, so nobody needs to be told which of them are gone. */
bool logs_are_kept (const logs_t *self);
/* Jobs that are not done; the look at the start does not count. */
size_t logs_pending (const logs_t *self);

/* What is done. */
typedef struct logs_news {
    log_piece_t *piece; /* kept or lost, … */
    errand_t *errand;   /* … or answered; whose they are they go back to */
    /* … or logs that a former run has left: which of these tasks are gone is told by logs_forget,
     * then logs_look goes on. */
    bool looked;
    log_key_t left[SHELF_SLICE_MAX];
    size_t left_count;
} logs_news_t;
bool logs_done (logs_t *self, logs_news_t *out);
void logs_look (logs_t *self);
int logs_fd (const logs_t *self); /* readable while something is done */

/* Any thread. */
shelf_stats_t logs_stats (logs_t *self);

#endif
