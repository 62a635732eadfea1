/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* When tasks.jsonl is made smaller, and that it is. On the exporter's thread. */
#ifndef TASKMQ_EXPORT_COMPACTOR_H
#define TASKMQ_EXPORT_COMPACTOR_H

#include <stdatomic.h>

#include "core/base/shared_limit.h"
#include "export/compaction.h"

typedef struct compactor_options {
    uint64_t bytes; /* it is due when the file is larger and more than half of it is over, … */
    uint64_t forget_ms; /* … and so long after the last time, when anything has happened since */
    shared_limit_t
        *free_bytes_min; /* of the disk, beside a copy of the whole file; else it waits */
} compactor_options_t;

typedef struct compactor {
    const compactor_options_t *options;
    store_t *store;
    tasks_file_t *file;
    compaction_t *compaction; /* NULL: none is under way */
    off_t counted;            /* lines of the file as it was found were counted up to here, … */
    off_t counted_upto;       /* … and are to be up to here */
    uint64_t lines;           /* of the file */
    uint64_t last_pos;        /* the newest event when the file was made smaller last … */
    int64_t last_ms;          /* … and the time of it, or of the start; monotonic */
    int64_t not_before_ms;    /* one has failed */
    int64_t look_ms;          /* the next look whether one is due */
    off_t bytes_before;
    _Atomic uint64_t done; /* since the start */
} compactor_t;

/* options, store and file must outlive it. */
void compactor_init (compactor_t *self, const compactor_options_t *options, store_t *store,
                     tasks_file_t *file);
void compactor_stop (compactor_t *self); /* what is not finished is gone */
/* So many lines were appended. */
void compactor_wrote (compactor_t *self, uint64_t lines);
/* The file was set aside. */
void compactor_begin_anew (compactor_t *self);
/* pos: every event up to it stands in the file. */
bool compactor_is_due (compactor_t *self, uint64_t pos);
/* One step, when everything in the tables was written up to pos. False: there is nothing to do. */
bool compactor_step (compactor_t *self, store_reader_t *reader, uint64_t pos);

#endif
