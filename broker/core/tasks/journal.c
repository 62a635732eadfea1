/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The commit batch that grows, and the images that go with it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/entries.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"
#include "core/tasks/view.h"
#include "ids.h"

/* What an image costs beside its bodies: the struct, its strings, the allocation. An estimate. */
enum {
    IMAGE_BYTES = sizeof (record_t) + 256,
    LAZY_MS = 5000 /* an uncounted change is written at the latest then (S4, S19) */
};

bool journal_is_empty (const tasks_t *self)
{
    const open_batch_t *open = &self->open;
    return open->tasks_count == 0 && open->removals_count == 0 && open->rows_count == 0;
}

uint64_t journal_batch (const tasks_t *self)
{
    if (self->base->config.planted_bug == ENGINE_BUG_ANSWER_BEFORE_COMMIT)
        return 0;
    return journal_is_empty (self) ? self->open.no - 1 : self->open.no;
}

void journal_touch (tasks_t *self, task_t *task)
{
    if (task->detail != NULL)
        list_remove (&task->detail->lazy);
    if (task->in_batch)
        return;
    open_batch_t *open = &self->open;
    open->tasks =
        memory_grow (open->tasks, &open->tasks_capacity, open->tasks_count, sizeof (task_t *));
    open->tasks[open->tasks_count++] = task;
    open->bytes += IMAGE_BYTES + (task->detail != NULL ? task->detail->error_data_bytes : 0);
    task->in_batch = true;
    if (task->changed <= self->settled)
        self->dirty_tasks++;
    task->changed = open->no;
}

void journal_touch_lazily (tasks_t *self, task_t *task)
{
    detail_t *detail = task_detail (&self->slab, task);
    if (task->in_batch || node_is_linked (&detail->lazy))
        return;
    detail->lazy_due_ms = self->base->clocks.mono_ms + LAZY_MS;
    list_push_back (&self->lazy, &detail->lazy);
}

int64_t journal_lazy_due_ms (const tasks_t *self)
{
    node_t *node = list_first (&self->lazy);
    return node == NULL ? INT64_MAX : LIST_ITEM (node, detail_t, lazy)->lazy_due_ms;
}

task_t *journal_lazy_next (const tasks_t *self)
{
    if (journal_lazy_due_ms (self) > self->base->clocks.mono_ms)
        return NULL;
    return LIST_ITEM (list_first (&self->lazy), detail_t, lazy)->task;
}

static attempt_t *attempt_room (tasks_t *self)
{
    open_batch_t *open = &self->open;
    open->attempts = memory_grow (open->attempts, &open->attempts_capacity, open->attempts_count,
                                  sizeof (*open->attempts));
    open->bytes += sizeof (attempt_t);
    return &open->attempts[open->attempts_count++];
}

void journal_add_attempt (tasks_t *self, const task_t *task, tmq_event_kind_t how,
                          int32_t error_code, const char *error_message, const uint8_t *request_id)
{
    const detail_t *detail = task->detail;
    attempt_t *row = attempt_room (self);
    *row = (attempt_t){.number = task->number,
                       .id = task->id,
                       .attempt = task->attempt,
                       .started_at = detail->started_at,
                       .ended_at = self->base->clocks.wall_ms,
                       .how = how,
                       .error_code = error_code};
    strncpy (row->worker, name_text (detail->worker), sizeof (row->worker) - 1);
    if (error_message != NULL) /* the row was zeroed; the task has the whole text */
        memcpy (
            row->error_message, error_message,
            utf8_whole (error_message, strlen (error_message), sizeof (row->error_message) - 1));
    memcpy (row->secret, detail->secret, sizeof (row->secret));
    if (request_id != NULL)
        memcpy (row->request_id, request_id, sizeof (row->request_id));
    attempt_note_add (self, row);
}

void journal_put_attempt (tasks_t *self, const attempt_t *attempt)
{
    attempt_t *row = attempt_room (self);
    *row = *attempt;
    attempt_note_add (self, row);
}

void journal_add_removal (tasks_t *self, space_t *space, const record_t *record, tmq_code_t code,
                          uint8_t why)
{
    open_batch_t *open = &self->open;
    open->removals = memory_grow (open->removals, &open->removals_capacity, open->removals_count,
                                  sizeof (*open->removals));
    open->removals[open->removals_count++] = (removal_t){.number = record->number,
                                                         .id = record->id,
                                                         .ns = memory_text (space->name),
                                                         .code = code,
                                                         .why = why,
                                                         .at = self->base->clocks.wall_ms,
                                                         .owner = memory_text (record->owner),
                                                         .queue = memory_text (record->queue)};
    open->bytes += sizeof (removal_t) + 3 * TMQ_NAME_LENGTH_MAX;
    removal_note_add (self, space, record, code, why);
}

/* The image that is stored: bodies only when the tables do not have them yet. */
static record_t *image_of (task_t *task, batch_t *batch, size_t expected)
{
    record_t view MEMORY_FILLED_BEFORE_READ;
    task_texts_t texts MEMORY_FILLED_BEFORE_READ;
    task_view (task, &view, &texts);
    if (task->payload_stored)
        view.payload = NULL;
    if (task->result_stored)
        view.result = NULL;
    task->payload_stored = true;
    task->result_stored = task->result_stored || view.result != NULL;
    batch->bytes += IMAGE_BYTES + buf_length (view.payload) + buf_length (view.result) +
                    buf_length (view.extra) +
                    (task->detail != NULL ? task->detail->error_data_bytes : 0);
    return batch_record_new (batch, &view, expected);
}

static void take_records (open_batch_t *open, batch_t *batch)
{
    batch->records = memory_alloc (open->tasks_count * sizeof (record_t *));
    batch->records_count = open->tasks_count;
    for (size_t i = 0; i < open->tasks_count; i++) {
        batch->records[i] = image_of (open->tasks[i], batch, open->tasks_count);
        open->tasks[i]->in_batch = false;
    }
}

static void remember_taken (tasks_t *self, const batch_t *batch)
{
    open_batch_t *open = &self->open;
    taken_t *taken = memory_alloc (sizeof (*taken));
    *taken = (taken_t){.no = batch->no,
                       .tasks = open->tasks,
                       .tasks_count = open->tasks_count,
                       .inputs = open->inputs,
                       .bytes = batch->bytes,
                       .attempts_count = open->attempts_count,
                       .removals_count = open->removals_count};
    fifo_push (&self->taken, taken);
    self->pending_inputs += taken->inputs;
    self->pending_bytes += taken->bytes;
    self->dirty_bytes += taken->bytes;
}

static batch_t *close_open (tasks_t *self)
{
    open_batch_t *open = &self->open;
    if (journal_is_empty (self)) {
        open->inputs = 0; /* they changed nothing */
        return NULL;
    }
    entries_close (self);
    batch_t *batch = memory_zero (1, sizeof (*batch));
    batch->no = open->no;
    batch->wall_ms = self->base->clocks.wall_ms;
    batch->expiry_ms = clocks_expiry_ms (&self->base->clocks);
    batch->inputs = open->inputs;
    take_records (open, batch);
    history_close (self->history, batch);
    batch->attempts = open->attempts;
    batch->attempts_count = open->attempts_count;
    batch->removals = open->removals;
    batch->removals_count = open->removals_count;
    batch->bytes += batch->attempts_count * sizeof (attempt_t);
    batch->rows = open->rows;
    batch->rows_count = open->rows_count;
    for (size_t i = 0; i < batch->rows_count; i++)
        batch->bytes += row_bytes (&batch->rows[i]);
    remember_taken (self, batch);
    /* The next batch will be about as large. */
    size_t expected = open->tasks_count;
    *open = (open_batch_t){.no = open->no + 1, .tasks_capacity = expected};
    if (expected > 0)
        open->tasks = memory_alloc (expected * sizeof (task_t *));
    self->base->counts.batches++;
    return batch;
}

void journal_close_full (tasks_t *self)
{
    const open_batch_t *open = &self->open;
    if (open->tasks_count + open->removals_count + open->rows_count < BATCH_CHANGES_MAX &&
        open->inputs < BATCH_INPUTS_MAX && open->bytes < BATCH_BYTES_MAX)
        return;
    size_t inputs = open->inputs;
    batch_t *batch = close_open (self);
    if (batch == NULL)
        return;
    self->closed_inputs += inputs;
    fifo_push (&self->closed, batch);
}

void journal_input (tasks_t *self)
{
    self->open.inputs++;
    journal_close_full (self);
}

batch_t *journal_take (tasks_t *self)
{
    batch_t *batch = fifo_pop (&self->closed);
    if (batch == NULL)
        return close_open (self);
    self->closed_inputs -= batch->inputs;
    return batch;
}

size_t journal_inputs (const tasks_t *self)
{
    return self->closed_inputs + self->open.inputs;
}

/* Everything that was applied and not kept (A21). The numbers of batches go on. What was kept may
 * still wait for its rows, so reads go on waiting for them. */
void journal_clear (tasks_t *self)
{
    for (taken_t *taken = fifo_pop (&self->taken); taken != NULL; taken = fifo_pop (&self->taken)) {
        free (taken->tasks);
        free (taken);
    }
    for (batch_t *batch = fifo_pop (&self->closed); batch != NULL; batch = fifo_pop (&self->closed))
        batch_free (batch);
    self->closed_inputs = 0;
    notes_forget (self, self->attempt_notes.count, self->removal_notes.count);
    map_free (&self->attempts_by_key);
    map_free (&self->removals_by_key);
    open_batch_t *open = &self->open;
    free (open->tasks);
    free (open->attempts);
    for (size_t i = 0; i < open->removals_count; i++)
        removal_clear (&open->removals[i]);
    free (open->removals);
    rows_clear (self);
    *open = (open_batch_t){.no = open->no};
    self->taken_durable = 0;
    base_refuse (self->base, open->no - 1);
    self->durable = self->settled = open->no - 1;
    self->freshened = self->base->kept; /* of what is not written yet memory knows no removals */
    self->pending_inputs = self->pending_bytes = 0;
    self->dirty_tasks = self->dirty_bytes = 0;
    self->cached_bytes = 0;
}

size_t journal_pending_inputs (const tasks_t *self)
{
    return self->pending_inputs + self->open.inputs;
}

size_t journal_pending_bytes (const tasks_t *self)
{
    return self->pending_bytes + self->open.bytes;
}

size_t journal_dirty_bytes (const tasks_t *self)
{
    return self->dirty_bytes + self->open.bytes;
}

bool journal_is_dirty (const tasks_t *self)
{
    const engine_config_t *config = &self->base->config;
    return self->dirty_tasks >= config->dirty_tasks_soft ||
           journal_dirty_bytes (self) >= config->dirty_bytes_soft;
}

bool journal_is_overloaded (const tasks_t *self)
{
    const engine_config_t *config = &self->base->config;
    return journal_pending_inputs (self) >= config->pending_inputs_soft ||
           journal_pending_bytes (self) >= config->pending_bytes_soft || journal_is_dirty (self);
}
