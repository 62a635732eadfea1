/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A reader of the broker's journal.log, made from docs/JOURNAL.md alone: it shares nothing with the
 * broker, so it also shows that the document says enough. It changes nothing, trusts no byte, and
 * needs memory for one segment and for a short note of each segment and part. */
#ifndef TASKCTL_JOURNAL_FILE_H
#define TASKCTL_JOURNAL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JOURNAL_WHY_SIZE = 160,
    JOURNAL_SEGMENTS_MAX = 65536, /* twice what the largest journal of a broker grows to */
    JOURNAL_PARTS_MAX = 1000000,
    JOURNAL_KINDS = 5
};

typedef struct journal_header {
    bool whole;
    uint32_t version;
    uint64_t segment_bytes;
    uint64_t segments; /* at least */
    uint64_t generation;
    uint64_t epoch;
    uint64_t salt;
} journal_header_t;

typedef struct journal_part {
    uint64_t at; /* in the file */
    uint64_t serial;
    uint64_t first;
    uint64_t last;
    uint64_t previous;
    uint64_t written;
    uint32_t part;
    uint32_t parts;
    uint32_t batches;
    uint32_t bytes; /* of content */
    bool unsynced;
} journal_part_t;

/* What of a segment is of the newest start. */
typedef struct journal_segment {
    uint64_t parts;
    uint64_t bytes; /* of whole blocks */
    uint64_t broken;
} journal_segment_t;

typedef struct journal_file {
    int fd;
    bool is_open; /* by a broker, now */
    uint64_t bytes;
    journal_header_t headers[2];
    journal_header_t run; /* of these the one that counts */
    journal_segment_t *segments;
    uint64_t segments_count;
    journal_part_t *parts; /* that are whole, in the order in which they were written */
    size_t count;
    uint64_t written;       /* the tables had all up to it, by the newest part that says so */
    uint64_t broken;        /* parts of this start that are not whole; … */
    uint64_t broken_serial; /* … the newest of them says this serial, … */
    uint64_t broken_at;     /* … here */
} journal_file_t;

/* The commits that the tables may not have. */
typedef struct journal_log {
    uint64_t commits;
    uint64_t first; /* batch of them; 0: none */
    uint64_t last;
    uint64_t ends_at; /* behind its last part; 0: it has none */
    bool gap;         /* a part of a later commit is there, and what it follows is not; … */
    uint64_t gap_at;
    bool own;      /* … which is a later part of that commit */
    bool unsynced; /* … which may be, for nothing was synced */
} journal_log_t;

/* What changes a batch holds: records, attempts, removals, blocks of events, rows. */
typedef enum journal_kind {
    JOURNAL_RECORD,
    JOURNAL_ATTEMPT,
    JOURNAL_REMOVAL,
    JOURNAL_BLOCK,
    JOURNAL_ROW
} journal_kind_t;

typedef struct journal_batch {
    uint64_t no;
    uint64_t previous;
    uint64_t wall_ms;
    uint64_t bytes;
    bool whole; /* its sum is right */
    uint64_t counts[JOURNAL_KINDS];
    uint64_t sizes[JOURNAL_KINDS]; /* bytes */
} journal_batch_t;

/* False: why says what is wrong with it; is_damaged: it is a journal, but … */
bool journal_open (journal_file_t *out, const char *path, char why[JOURNAL_WHY_SIZE],
                   bool *is_damaged);
void journal_close (journal_file_t *self);
/* All parts of the commit that begins with this one are there. */
bool journal_is_complete (const journal_file_t *self, size_t part);
bool journal_in_log (const journal_log_t *log, const journal_part_t *part);
void journal_find_log (journal_log_t *out, const journal_file_t *self);
/* Gives the batches of a complete commit. False: its content is not what it has to be. */
bool journal_batches (const journal_file_t *self, size_t part,
                      void (*take) (void *context, const journal_batch_t *batch), void *context);

#endif
