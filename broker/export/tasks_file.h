/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The file tasks.jsonl as a growing list of whole lines (A55). */
#ifndef TASKMQ_EXPORT_TASKS_FILE_H
#define TASKMQ_EXPORT_TASKS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/line_file.h"
#include "taskmq_types.h"

typedef struct tasks_file tasks_file_t;

enum { TASKS_FILE_ERROR_SIZE = LINE_FILE_ERROR_SIZE };

/* What the last line says; pos 0: the file is empty. */
typedef struct tasks_file_end {
    uint64_t pos;
    tmq_id_t id;
    uint64_t hole_bytes; /* that were cut off, because a loss of power left a hole before them */
} tasks_file_end_t;

/* What a line says of its place. */
typedef struct tasks_line {
    uint64_t pos;
    uint64_t seq;
    tmq_id_t id;
    char ns[TMQ_NAME_LENGTH_MAX + 1];
} tasks_line_t;
/* One line without its newline; false if it is none of ours. The whole line is read as JSON. */
bool tasks_line_parse (const char *line, size_t length, tasks_line_t *out);
/* The same, but of a line that begins as the exporter writes it (id, namespace, seq, pos) only that
 * beginning is read: what a compaction can afford for each line. */
bool tasks_line_place (const char *line, size_t length, tasks_line_t *out);

/* Opens the file or makes it, cuts off a torn last line, and all behind a hole, and reads the last
 * whole line. A file whose
 * last line is none of ours, or lies beyond last_pos, the newest event of the database, belongs to
 * another history: it is set aside and begun anew (*set_aside). NULL with `error` if the file
 * cannot be used. */
tasks_file_t *tasks_file_open (const char *path, uint64_t last_pos, tasks_file_end_t *end,
                               bool *set_aside, char error[TASKS_FILE_ERROR_SIZE]);
void tasks_file_close (tasks_file_t **self); /* accepts a NULL object */
/* Renames the file to PATH.foreign, or PATH.foreign.2 and so on if that is taken, and begins it
 * anew. */
bool tasks_file_set_aside (tasks_file_t *self, char error[TASKS_FILE_ERROR_SIZE]);
/* Appends whole lines: all of them or, with `error`, none. May be repeated. */
bool tasks_file_append (tasks_file_t *self, const void *lines, size_t length,
                        char error[TASKS_FILE_ERROR_SIZE]);
/* Somebody removed the file, put another one in its place, or changed its length: what is appended
 * would be lost to readers, or lines are missing. */
bool tasks_file_is_changed (const tasks_file_t *self);
/* The file beneath, for who makes it smaller. */
line_file_t *tasks_file_lines (tasks_file_t *self);

#endif
