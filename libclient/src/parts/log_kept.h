/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the program of an attempt has written and the broker has not taken: of each stream at most
 * CORE_LOG_KEPT_MAX bytes, the newest. Bytes alone; logs.h sends them. */
#ifndef TASKMQ_CLIENT_LOG_KEPT_H
#define TASKMQ_CLIENT_LOG_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

enum { CORE_LOG_KEPT_MAX = 256 * 1024 /* bytes of a stream */ };

typedef struct core_log core_log_t;

core_log_t *core_log_new (void);       /* NULL when memory is exhausted */
void core_log_free (core_log_t *self); /* accepts NULL, as all of these */
/* False when memory is exhausted: the bytes are lost. */
bool core_log_keep (core_log_t *self, tmq_log_stream_t stream, const void *bytes, size_t length);

typedef struct core_log_piece {
    tmq_log_stream_t stream;
    uint64_t offset;
    const uint8_t *bytes; /* until the next call */
    size_t length;        /* at most TMQ_LOG_BYTES_MAX */
} core_log_piece_t;
/* The next piece, which is under way from then on: of a stream of which none is, or of any (all).
 * False: there is none. */
bool core_log_next (core_log_t *self, bool all, core_log_piece_t *out);
/* … there is one. */
bool core_log_waits (const core_log_t *self);
/* The broker has taken the piece that ends there. */
void core_log_taken (core_log_t *self, tmq_log_stream_t stream, uint64_t end);
/* Nothing is under way any more: it is sent again. */
void core_log_unsent (core_log_t *self);
/* The broker takes nothing more: what is kept, and what comes, is dropped. */
void core_log_end (core_log_t *self);
size_t core_log_bytes (const core_log_t *self); /* kept */

#endif
