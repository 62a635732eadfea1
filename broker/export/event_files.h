/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* events.jsonl and the files that it was turned into: one chain of lines (event_line.h). One
 * thread.
 *
 * A line that was added is in the file behind the next event_files_write, or is forgotten by its
 * failure: the caller goes on from the place that is written. */
#ifndef TASKMQ_EXPORT_EVENT_FILES_H
#define TASKMQ_EXPORT_EVENT_FILES_H

#include "chain.h"
#include "core/base/shared_limit.h"
#include "export/event_line.h"
#include "export/event_turned.h"
#include "export/line_file.h"
#include "redact.h"

#define EVENT_FILES_NAME "events.jsonl"

typedef struct event_files event_files_t;

typedef struct event_files_options {
    const char *directory; /* of the data */
    uint64_t turn_bytes;   /* a new file begins at this size, and at each new day in UTC */
    int64_t keep_ms;       /* turned files are removed so long after they were written … */
    uint64_t keep_bytes;   /* … and earlier, when all are more than this */
    redactor_t *redactor;  /* NULL: nothing is replaced; taken over */
    shared_limit_t *free_bytes_min; /* of the disk, which packing leaves; NULL: any */
    int64_t (*wall_ms) (void);      /* NULL: the clock */
} event_files_options_t;

/* How the end of the files was found. */
typedef struct event_files_end {
    event_place_t place; /* of the last line; its generation is the history of the lines; 0: there
                            are no lines */
    off_t torn;          /* bytes of a last line that a crash left half written; cut off */
    bool damaged;        /* the file cannot be gone on with, and was set aside as PATH.damaged */
    bool damaged_first;  /* … and it was its first line, not its last */
} event_files_end_t;

/* NULL with `error` if they cannot be used. Writes no line. */
event_files_t *event_files_open (const event_files_options_t *options, event_files_end_t *end,
                                 char error[LINE_FILE_ERROR_SIZE]);
void event_files_close (event_files_t **self); /* accepts a NULL object */
/* The files before the present one. */
const event_turned_t *event_files_turned (const event_files_t *self);

/* Nothing has been written into the present file yet: it begins with an anchor. */
bool event_files_is_empty (const event_files_t *self);
/* The history that goes on, and where: adds an anchor to an empty file. */
void event_files_begin (event_files_t *self, uint64_t generation, uint64_t pos,
                        event_anchor_why_t why);
/* The file is turned, if it has lines. */
bool event_files_turn (event_files_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* It is full, or of another day. */
bool event_files_is_due (const event_files_t *self);
/* Somebody took the file away or wrote into it: sets it aside as PATH.foreign. *changed: so it was,
 * and the file is empty. */
bool event_files_look_after (event_files_t *self, bool *changed, char error[LINE_FILE_ERROR_SIZE]);

void event_files_event (event_files_t *self, event_view_t *event, uint64_t pos);
void event_files_gap (event_files_t *self, uint64_t from, uint64_t to);
size_t event_files_waiting (const event_files_t *self); /* bytes of lines that were added */
bool event_files_write (event_files_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* Forgets what was added. */
void event_files_forget (event_files_t *self);
const char *event_files_directory (const event_files_t *self);
bool event_files_sync (event_files_t *self, char error[LINE_FILE_ERROR_SIZE]);
/* Removes turned files, some at a time: those that are too much, and with `by_age` those that are
 * too old. */
size_t event_files_remove (event_files_t *self, bool by_age, size_t *early);

/* A step of packing a turned file, of some milliseconds: false if there is nothing to pack, or with
 * `error` if one could not be packed. */
bool event_files_pack (event_files_t *self, char error[LINE_FILE_ERROR_SIZE]);

typedef struct event_files_stats {
    chain_head_t head; /* behind what is written */
    uint64_t files;    /* turned ones that are kept */
    uint64_t bytes;    /* of all files */
} event_files_stats_t;
void event_files_stats (const event_files_t *self, event_files_stats_t *out);

#endif
