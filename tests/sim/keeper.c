/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Checkpoints: the state says of which task it is, which attempt kept it and which of that
 * attempt's it is. So whatever is stored, and whatever a later attempt reads, shows where it comes
 * from. */
#include <string.h>

#include "core/data/extra.h"
#include "sim.h"

enum { WORD_BYTES = 4 };

static void put_word (uint8_t *out, uint32_t word)
{
    for (int i = 0; i < WORD_BYTES; i++) {
        out[i] = (uint8_t) (word >> (8 * i));
    }
}

static uint32_t word_of (const uint8_t *bytes)
{
    return bytes[0] | (uint32_t) bytes[1] << 8 | (uint32_t) bytes[2] << 16 |
           (uint32_t) bytes[3] << 24;
}

void keeper_fill (const known_t *task, uint32_t attempt, uint32_t number,
                  uint8_t out[SIM_STATE_BYTES])
{
    put_word (out, model_index (task->id.bytes));
    put_word (out + WORD_BYTES, attempt);
    put_word (out + 2 * WORD_BYTES, number);
}

static buf_t *key_of (const known_t *task)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, task->ns);
    row_key_bytes (&key, task->id.bytes, sizeof task->id.bytes);
    return buf_new (key.bytes, key.length);
}

static const row_t *stored_of (const world_t *world, const known_t *task)
{
    buf_t *wanted = key_of (task);
    const row_t *row =
        row_list_find (&world->model->durable.kind_rows, ROW_KIND_CHECKPOINT, wanted);
    buf_drop (wanted);
    return row;
}

void keeper_kept (world_t *world, known_t *task, uint32_t attempt, const Taskmq__Reply *reply)
{
    uint32_t index = model_index (task->id.bytes);
    const record_t *record = world->model->durable.rows[index].record;
    const row_t *row = stored_of (world, task);
    if (reply->code != TMQ_OK) {
        return;
    }
    task->state_of = attempt > task->state_of ? attempt : task->state_of;
    bool there = record != NULL && record->attempt == attempt &&
                 (record->status == TMQ_STATUS_WORKING || record->status == TMQ_STATUS_FAILED);
    if (there &&
        (row == NULL || row->gone || word_of (buf_bytes (row->body) + WORD_BYTES) != attempt)) {
        sim_fail (world, "A7: the checkpoint of attempt %u of task %u is acknowledged, not stored",
                  attempt, index);
    }
}

/* An assignment without a checkpoint: none that was acknowledged is left. */
void keeper_check_assigned (world_t *world, const known_t *task,
                            const Taskmq__Assignment *assignment)
{
    bool none = assignment->extra == NULL || assignment->extra->checkpoint_bytes == 0;
    if (none && task->state_of > 0 && !task->revived && assignment->attempt > task->state_of) {
        sim_fail (world, "S9: attempt %u of task %u has no checkpoint, attempt %u kept one",
                  assignment->attempt, model_index (task->id.bytes), task->state_of);
    }
}

/* state_of: as it was known when the attempt asked. */
void keeper_read (world_t *world, const known_t *task, uint32_t attempt, uint32_t state_of,
                  const Taskmq__Reply *reply, const uint8_t *body)
{
    uint32_t index = model_index (task->id.bytes);
    if (reply->code != TMQ_OK || reply->checkpoint_state == NULL ||
        reply->checkpoint_state->body == 0) {
        return;
    }
    if (reply->checkpoint_state->body != SIM_STATE_BYTES || word_of (body) != index) {
        sim_fail (world, "S9: task %u has a checkpoint that nobody kept", index);
        return;
    }
    uint32_t by = word_of (body + WORD_BYTES);
    if (by > attempt || (by < state_of && !task->revived)) {
        sim_fail (world, "S9: attempt %u of task %u reads what attempt %u kept; %u kept newer",
                  attempt, index, by, state_of);
    } else if (attempt > task->fresh_from && by <= task->fresh_from) {
        sim_fail (world, "S5: task %u was retried, and attempt %u reads what attempt %u kept",
                  index, attempt, by);
    }
}

/* The batch that retries a task takes its checkpoint away. */
static bool takes_away (const batch_t *batch, const known_t *task)
{
    buf_t *key = key_of (task);
    bool gone = false;
    for (size_t i = 0; i < batch->rows_count; i++) {
        const row_t *row = &batch->rows[i];
        if (row->kind == ROW_KIND_CHECKPOINT && buf_length (row->key) == buf_length (key) &&
            memcmp (buf_bytes (row->key), buf_bytes (key), buf_length (key)) == 0) {
            gone = row->gone;
        }
    }
    buf_drop (key);
    return gone;
}

void keeper_check_retried (world_t *world, const known_t *task, const batch_t *batch)
{
    const row_t *row = stored_of (world, task);
    if (row != NULL && !row->gone && !takes_away (batch, task)) {
        sim_fail (world, "S5: task %u is retried, and its checkpoint stays",
                  model_index (task->id.bytes));
    }
}

void keeper_check_batch (world_t *world, const batch_t *batch)
{
    for (size_t i = 0; i < batch->rows_count && !world->failed; i++) {
        const row_t *row = &batch->rows[i];
        if (row->kind != ROW_KIND_CHECKPOINT || row->gone) {
            continue;
        }
        uint32_t index = word_of (buf_bytes (row->body));
        uint32_t attempt = word_of (buf_bytes (row->body) + WORD_BYTES);
        const record_t *before = world->model->durable.rows[index].record;
        if (before != NULL && before->attempt > attempt) {
            sim_fail (world, "S9: attempt %u of task %u keeps a checkpoint during attempt %u",
                      attempt, index, before->attempt);
        }
    }
}

/* A state belongs to a task, which knows of it. */
void keeper_check_durable (world_t *world)
{
    const row_list_t *rows = &world->model->durable.kind_rows;
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].kind != ROW_KIND_CHECKPOINT || rows->rows[i].gone) {
            continue;
        }
        uint32_t index = word_of (buf_bytes (rows->rows[i].body));
        const record_t *record = world->model->durable.rows[index].record;
        extra_t *extra = record == NULL || record->extra == NULL ? NULL : extra_new (record->extra);
        if (extra == NULL || extra->fields->checkpoint_bytes != SIM_STATE_BYTES) {
            sim_fail (world, "S9: a checkpoint of task %u is left behind", index);
        }
        extra_free (extra);
    }
}
