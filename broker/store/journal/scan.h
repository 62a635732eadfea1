/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reading a journal's file: what of it is whole, and where the log of its newest start ends. It
 * changes nothing and trusts no byte. */
#ifndef TASKMQ_STORE_SCAN_H
#define TASKMQ_STORE_SCAN_H

#include "bytes.h"
#include "store/error.h"
#include "store/journal/form.h"

/* Where the bytes are. read gives all that it is asked for, or is -1 with errno. */
typedef struct scan_source {
    int (*read) (void *context, void *to, size_t length, uint64_t at);
    void *context;
    uint64_t bytes;
    const char *path; /* for texts */
} scan_source_t;

typedef struct scan_part {
    form_part_t head;
    uint64_t at; /* in the file, of the header */
} scan_part_t;

typedef struct scan {
    form_header_t run;  /* of the newest start */
    scan_part_t *parts; /* all that are whole, in the order in which they were written */
    size_t count;
    size_t capacity;
    uint64_t written; /* the tables had all up to it, as the newest part says */
    uint64_t newest;  /* batch that any part knows of */
    bool unsynced;    /* commits of this start were not synced, as some part says */
    bool is_short;    /* than it was made: of what is gone nothing is known */
} scan_t;

/* FOREIGN: this is no journal. NEWER: of a later version. CORRUPT: its headers are damaged. Then
 * *out is empty. */
store_code_t scan_read (scan_t *out, const scan_source_t *source, store_error_t *error);
void scan_destroy (scan_t *self);

/* The commits behind those that the tables have. */
typedef struct scan_log {
    size_t *commits; /* indices of their first parts, in order */
    size_t count;
    uint64_t last; /* batch of them; else that of the tables */
    /* A commit behind it is damaged or missing, though others that were made later stand there, or
     * a later part of its own. */
    bool gap;
    bool unsynced; /* … which a loss of power may do: none of them was synced */
    uint64_t upto; /* the newest of those batches */
    uint64_t at;   /* in the file, of the first part behind the gap */
} scan_log_t;
void scan_log (scan_log_t *out, const scan_t *scan, uint64_t written);
/* The same, but of all commits in the file that follow each other up to `last`, also of those that
 * the tables have; none when they do not come so far. */
void scan_chain (scan_log_t *out, const scan_t *scan, uint64_t last);
void scan_log_destroy (scan_log_t *self);

/* Appends the content of a commit. CORRUPT when the file is no longer what it was. */
store_code_t scan_content (const scan_t *self, const scan_source_t *source, size_t commit,
                           bytes_t *content, store_error_t *error);
/* The next batch of a content; *at begins with 0. False at its end, and when it is damaged: then
 * *at is not the length of the content. */
bool scan_next_batch (const bytes_t *content, size_t *at, const uint8_t **body, size_t *bytes);

#endif
