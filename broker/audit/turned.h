/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files that the record was turned into: DIR/audit-0001.jsonl, the oldest, and so on. Each is
 * packed soon after, into audit-0001.jsonl.zst (packer.h). While there is a plain one, it
 * counts. */
#ifndef TASKMQ_AUDIT_TURNED_H
#define TASKMQ_AUDIT_TURNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUDIT_FILE "audit.jsonl"

typedef struct turned {
    uint32_t *numbers; /* in order */
    size_t count;
    size_t capacity;
} turned_t;

/* Those that are there. */
void turned_read (turned_t *out, const char *directory);
void turned_free (turned_t *self);
/* Of the plain file; packed_open finds the other one by it. */
void turned_path (char *out, size_t size, const char *directory, uint32_t number);
/* The first file from this number on that is plain; 0: all are packed. */
uint32_t turned_plain (const turned_t *self, const char *directory, uint32_t from);
/* When its last line came, to the second. False: it is not there. */
bool turned_time (const char *directory, uint32_t number, int64_t *wall_ms);
/* The number of the next one. */
uint32_t turned_next (const turned_t *self);
/* Removes the oldest ones whose last line came before wall_ms, or that are more than
 * TURNED_FILES_MAX, but a few at a time only: a clock that leaps must not take the whole record.
 * The newest stays: the head that the store kept may stand there, and nowhere else when the broker
 * rested for longer than files are kept. The number of files removed. */
enum { TURNED_FILES_MAX = 1000, TURNED_REMOVED_AT_ONCE = 2 };
size_t turned_remove (turned_t *self, const char *directory, int64_t wall_ms);

#endif
