/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Logs: what a worker says of an attempt is bytes that follow from the task, the attempt and the
 * offset, so whatever reaches the server shows whose it is. The server is slow, and what it has not
 * done is bounded. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

static uint8_t byte_of (const uint8_t id[16], uint32_t attempt, uint64_t offset)
{
    return (uint8_t) (model_index (id) * 31 + attempt * 7 + offset);
}

void logs_fill (const tmq_id_t *id, uint32_t attempt, uint64_t offset, uint8_t *out, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        out[i] = byte_of (id->bytes, attempt, offset + i);
    }
}

static void check_piece (world_t *world, const log_piece_t *piece)
{
    const log_key_t *key = &piece->key;
    for (size_t i = 0; i < buf_length (piece->bytes); i++) {
        if (buf_bytes (piece->bytes)[i] !=
            byte_of (key->id.bytes, key->attempt, piece->offset + i)) {
            sim_fail (world, "the log of task %u attempt %u has bytes of another one",
                      model_index (key->id.bytes), key->attempt);
            return;
        }
    }
}

void logs_step (world_t *world)
{
    logs_t *self = &world->broker->logs;
    log_piece_t *piece;
    while ((piece = engine_log_next (world->broker->engine)) != NULL) {
        check_piece (world, piece);
        list_push_back (&self->pieces, &piece->node);
        self->bytes += log_piece_memory (buf_length (piece->bytes));
    }
    if (self->bytes > SIM_LOG_BYTES_MAX) {
        sim_fail (world, "%zu bytes of logs wait for the server, at most %d may", self->bytes,
                  SIM_LOG_BYTES_MAX);
    }
    while (!list_is_empty (&self->pieces) && world->mono_ms >= self->due_ms) {
        piece = LIST_ITEM (list_pop_front (&self->pieces), log_piece_t, node);
        self->bytes -= log_piece_memory (buf_length (piece->bytes));
        self->due_ms = world->mono_ms + (int64_t) (piece->offset % 400);
        engine_log_done (world->broker->engine, piece);
    }
}

void logs_forget (logs_t *self)
{
    while (!list_is_empty (&self->pieces)) {
        log_piece_free (LIST_ITEM (list_pop_front (&self->pieces), log_piece_t, node));
    }
    self->bytes = 0;
    self->due_ms = 0;
}
