/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The part of --check that is about blobs: each one that tasks name is there, and its bytes are
 * those of its name. Which tasks name one that is not is looked up afterwards, for those findings
 * that are told. */
#ifndef TASKMQ_BROKER_CHECK_BLOBS_H
#define TASKMQ_BROKER_CHECK_BLOBS_H

#include "core/data/batch.h"
#include "core/data/record.h"
#include "core/data/row.h"

/* Findings that are told, and tasks that are named in each. */
enum { CHECK_BLOBS_TOLD_MAX = 100, CHECK_BLOBS_NAMED_MAX = 5 };

typedef struct check_blobs check_blobs_t;

typedef struct blobs_found {
    /* Told of each finding, in one sentence; borrowed. */
    void (*found) (void *context, const char *text);
    void *context;
    /* answers */
    uint64_t findings;
    uint64_t read;       /* blobs that tasks name */
    uint64_t left;       /* files that no task names, which is no damage */
    uint64_t left_bytes; /* … of all of them */
} blobs_found_t;

check_blobs_t *check_blobs_new (void);
void check_blobs_free (check_blobs_t **self); /* accepts a NULL object */
/* A row of the data; of two about one blob the later one counts. Others are passed over. */
void check_blobs_note (check_blobs_t *self, const row_t *row);
/* Reads the files of the directory of blobs. False: none of them is missing or damaged. */
bool check_blobs_read (check_blobs_t *self, const char *directory, blobs_found_t *out);
/* Behind that: a task of the data, or one that is gone; of two about one task the later one
 * counts. */
void check_blobs_note_task (check_blobs_t *self, const record_t *record);
void check_blobs_note_removal (check_blobs_t *self, const removal_t *removal);
/* Behind these: tells what is missing or damaged, with the tasks that name it. */
void check_blobs_tell (const check_blobs_t *self, const blobs_found_t *out);

#endif
