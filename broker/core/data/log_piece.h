/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A piece of what a task's program writes, on its way from a worker to the task's log. Plain data,
 * so that the core knows of logs without knowing a file. */
#ifndef TASKMQ_CORE_DATA_LOG_PIECE_H
#define TASKMQ_CORE_DATA_LOG_PIECE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/list.h"
#include "core/data/buf.h"
#include "taskmq_types.h"

/* Whose log it is. */
typedef struct log_key {
    int64_t number; /* of the task: never given twice */
    tmq_id_t id;
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    uint32_t attempt;
    tmq_log_stream_t stream;
} log_key_t;

bool log_key_equals (const log_key_t *self, const log_key_t *other);

typedef struct log_piece {
    node_t node; /* of who has it */
    log_key_t key;
    uint64_t offset; /* of its first byte in the stream */
    buf_t *bytes;
} log_piece_t;

log_piece_t *log_piece_new (const log_key_t *key, uint64_t offset, const void *bytes,
                            size_t length);
/* What it takes of memory, with its place in the line of whoever writes it. */
size_t log_piece_memory (size_t length);
void log_piece_free (log_piece_t *self);

#endif
