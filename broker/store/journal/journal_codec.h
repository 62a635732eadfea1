/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* journal.proto, packed: a commit batch as it stands in the journal, and what has no column
 * of its own in a row of table task. */
#ifndef TASKMQ_STORE_JOURNAL_CODEC_H
#define TASKMQ_STORE_JOURNAL_CODEC_H

#include "arena.h"
#include "bytes.h"
#include "core/data/batch.h"

/* Where a batch belongs: the history, the start of the broker, the batch before it. */
typedef struct journal_head {
    uint64_t generation;
    uint64_t epoch;
    uint64_t previous;
} journal_head_t;

/* Appends the batch to what body holds. Aborts when memory is exhausted. */
void journal_encode (bytes_t *body, const journal_head_t *head, const batch_t *batch);
/* The sum at the end of a batch, in a field of its own. */
enum { JOURNAL_TRAILER_BYTES = 9 };
bool journal_is_whole (const uint8_t *body, size_t body_bytes);
/* Appends the sum of what body holds from start on. */
void journal_seal (bytes_t *body, size_t start);
/* The batch belongs to the caller. NULL when the bytes are damaged or of a newer format; *newer
 * tells which. */
batch_t *journal_decode (const uint8_t *body, size_t body_bytes, journal_head_t *head, bool *newer);

/* Appends the fields of a record that table task has no columns for. */
void journal_pack_rest (bytes_t *body, const record_t *record);
/* Sets the same fields; texts lie in the arena. False when the bytes are damaged. */
bool journal_unpack_rest (record_t *to, arena_t *arena, const uint8_t *bytes, size_t length);

#endif
