/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */
/* The files that events.jsonl was turned into: DIR/events-POS.jsonl, where POS is the position of
 * its first event, or the same packed (packed.h). One thread. */
#ifndef TASKMQ_EXPORT_EVENT_TURNED_H
#define TASKMQ_EXPORT_EVENT_TURNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/event_line.h"

enum {
    EVENT_TURNED_MAX = 10000, /* files; beyond it the oldest go */
    EVENT_TURNED_AT_ONCE = 2, /* removed: a clock that leaps must not take all */
    EVENT_TURNED_PATH_SIZE = 4096 + 64
};

typedef struct event_turned_file {
    char name[64]; /* of the plain one, packed or not */
    bool packed;
    uint64_t n; /* of its first line, so they are in order */
    uint64_t generation;
    uint64_t bytes;
} event_turned_file_t;

typedef struct event_turned {
    char *directory;
    event_turned_file_t *files; /* the oldest first */
    size_t count;
    size_t capacity;
    uint64_t bytes; /* of all */
} event_turned_t;

/* Those that are there and begin with an anchor. */
void event_turned_read (event_turned_t *out, const char *directory);
void event_turned_free (event_turned_t *self);
/* A path that nothing has yet, for a file whose first event has this position. */
void event_turned_path (const event_turned_t *self, uint64_t pos, char out[EVENT_TURNED_PATH_SIZE]);
/* It was turned to this path, if it is there. */
void event_turned_add (event_turned_t *self, const char *path);
/* The last line of the newest: false if there is none or it cannot be read; *line is the caller's.
 */
bool event_turned_last (const event_turned_t *self, char **line, size_t *length);
/* The oldest that is not packed; false: all are. */
bool event_turned_plain (const event_turned_t *self, char out[EVENT_TURNED_PATH_SIZE]);
/* It was packed. */
void event_turned_packed (event_turned_t *self, const char *path);
/* Some file has events of this history. */
bool event_turned_has (const event_turned_t *self, uint64_t generation);

/* What may stay. */
typedef struct event_keep {
    int64_t since_ms; /* last written before: removed */
    uint64_t bytes;   /* of all together: beyond it the oldest are removed */
} event_keep_t;
/* Removes the oldest ones; *early are those of them that had to go before their time. */
size_t event_turned_remove (event_turned_t *self, const event_keep_t *keep, size_t *early);

#endif
