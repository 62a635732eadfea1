/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A smaller tasks.jsonl beside the one that grows: a copy of the lines that still are the last word
 * on a task which is still there. It is made in steps, between which the old file goes on, and
 * takes its place at the end. One thread. */
#ifndef TASKMQ_EXPORT_COMPACTION_H
#define TASKMQ_EXPORT_COMPACTION_H

#include "export/tasks_file.h"
#include "store/store.h"

typedef struct compaction compaction_t;

enum {
    COMPACTION_STEP_BYTES = 1024 * 1024,  /* of the old file, looked at in one step */
    COMPACTION_LINE_BYTES_MAX = 16777216, /* a longer line is none of ours */
};

typedef enum compaction_result {
    COMPACTION_GOES_ON, /* another step follows, after the old file was brought up to date */
    COMPACTION_DONE,    /* the new file has the name */
    COMPACTION_FAILED   /* with an error: the old file is as it was */
} compaction_result_t;

/* The new file is PATH.new until the end; one that a crash left there is written over. NULL with
 * `error` if it cannot be made. */
compaction_t *compaction_new (tasks_file_t *file, char error[TASKS_FILE_ERROR_SIZE]);
/* Removes what is not finished. Accepts a NULL object. */
void compaction_free (compaction_t **self);
/* One step. The old file must have a line for everything that the tables had when the step before
 * ended: a line is left out because the tables have something newer, and that must follow. */
compaction_result_t compaction_step (compaction_t *self, store_reader_t *reader,
                                     char error[TASKS_FILE_ERROR_SIZE]);
/* Lines that the new file has. */
uint64_t compaction_lines (const compaction_t *self);

#endif
