/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the tests of events.jsonl stand on: a store with events, the files that are written of them
 * and what stands in these, a disk that is full or gone from an operation on, and tables with a
 * damaged page. */
#ifndef TASKMQ_TEST_EVENT_STAGE_H
#define TASKMQ_TEST_EVENT_STAGE_H

#include "support/cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/event_log.h"
#include "export/event_witness.h"
#include "log/log.h"
#include "store/wakeup.h"
#include "store_support.h"
#include "support/timing.h"

enum { FILES_MAX = 128, EVENTS = 1500, LINES_MAX = 20000, CRASHED = 9 };

/* A store with events, and the files of a directory. */
typedef struct rig {
    fixture_t *fixture;
    char directory[64];
    int wake_fd;
    watermark_t watermark;
    event_files_options_t options;
    event_verdict_t verdict; /* of the last start */
    event_files_end_t end;
    char why[EVENT_WITNESS_TEXT_SIZE];
} rig_t;

/* What stands in the files. */

typedef struct lines {
    char *names[FILES_MAX]; /* in the order of their first lines */
    size_t files;
    char *list[LINES_MAX]; /* of all files, in their order */
    size_t count;
    size_t events;
    size_t gaps;
    size_t anchors;
} lines_t;

/* Every operation that changes files counts. The one with this number ends the process, or fails
 * for lack of space, as do so many behind it. */
extern atomic_llong operations;
extern long long crash_at;
extern long long full_from;
extern long long full_upto;
/* A damaged page of the tables: none of these positions can be read. */
extern uint64_t bad_from;
extern uint64_t bad_upto; /* 0: there is none */

extern int64_t now_ms;
extern lines_t lines;
void no_faults (void);
int64_t wall_ms (void);
void must_not_fail (const store_error_t *error);
void rig_open (rig_t *self, int64_t events);
void rig_close (rig_t *self);
/* As the broker does it at its start; NULL: the database lacks events. */
event_log_t *rig_start (rig_t *self);
void wait_written (event_log_t *log, uint64_t pos);
/* Writes everything that the store has. */
void rig_follow (rig_t *self);
void lines_clear (void);
uint64_t first_n (const char *name);
void read_file (const char *path);
void read_files (const char *directory);
/* All lines are one chain, and tell each position once, in order, behind this one. */
void check_lines (const char *directory, uint64_t pos, uint64_t upto);
void path_of (const rig_t *rig, const char *name, char out[128]);
int end_lines (void **state); /* of the group */

/* Past the faults. */
int __real_rename (const char *from, const char *to);
int __real_unlink (const char *path);

#endif
