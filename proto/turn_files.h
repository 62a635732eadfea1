/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The files of a turn: a packed taskmq.TurnFiles, as it travels and as it is stored. Read without
 * memory of its own. */
#ifndef TASKMQ_TURN_FILES_H
#define TASKMQ_TURN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "taskmq_types.h"

typedef struct turn_file {
    tmq_file_op_t op;
    const char *path; /* borrowed, not terminated */
    size_t path_bytes;
} turn_file_t;

/* Reads one file and moves *at behind it; false: what stands there is none. */
bool turn_file_read (turn_file_t *out, const uint8_t **at, const uint8_t *end);
/* NULL: they are what they have to be, else what is wrong. *count: of them. */
const char *turn_files_flaw (const uint8_t *bytes, size_t length, size_t *count);
void turn_file_append (bytes_t *out, tmq_file_op_t op, const char *path);
/* "read"; NULL for a number that is none. */
const char *file_op_text (unsigned op);
/* TMQ_FILE_OP_NONE: no such word. */
tmq_file_op_t file_op_parse (const char *text);

#endif
