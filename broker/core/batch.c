/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The commit batch that grows, the images that go with it, and what "durable" and "written back"
 * mean for memory: a task stays until its last change is in the tables, then a terminal one goes
 * and a live one may lose its payload (A11). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

/* What an image costs beside its bodies: the struct, its strings, the allocation. An estimate. */
enum { IMAGE_BYTES = sizeof (record_t) + 256 };

bool batch_is_empty (const engine_t *self)
{
    const open_batch_t *open = &self->open;
    return open->tasks_count == 0 && open->removals_count == 0;
}

uint64_t batch_to_wait_for (const engine_t *self)
{
    if (self->config.planted_bug == ENGINE_BUG_ANSWER_BEFORE_COMMIT)
        return 0;
    return batch_is_empty (self) ? self->open.no - 1 : self->open.no;
}

/* What changes. */

void batch_touch (engine_t *self, task_t *task)
{
    if (task->detail != NULL)
        list_remove (&task->detail->lazy);
    if (task->in_batch)
        return;
    open_batch_t *open = &self->open;
    open->tasks =
        memory_grow (open->tasks, &open->tasks_capacity, open->tasks_count, sizeof (task_t *));
    open->tasks[open->tasks_count++] = task;
    open->bytes += IMAGE_BYTES;
    task->in_batch = true;
    if (task->changed <= self->settled)
        self->dirty_tasks++;
    task->changed = open->no;
}

void batch_touch_lazily (engine_t *self, task_t *task)
{
    detail_t *detail = task_detail (&self->slab, task);
    if (task->in_batch || node_is_linked (&detail->lazy))
        return;
    detail->lazy_due = self->mono + LAZY_MS;
    list_push_back (&self->lazy, &detail->lazy);
}

int64_t batch_lazy_due (const engine_t *self)
{
    node_t *node = list_first (&self->lazy);
    return node == NULL ? INT64_MAX : LIST_ITEM (node, detail_t, lazy)->lazy_due;
}

void batch_write_lazy (engine_t *self)
{
    while (batch_lazy_due (self) <= self->mono) {
        /* Only now: a version that was shown must not be taken back by a crash. */
        task_t *task = LIST_ITEM (list_first (&self->lazy), detail_t, lazy)->task;
        task->version++;
        batch_touch (self, task);
    }
}

static uint32_t attempt_hash (const engine_t *self, int64_t number, uint32_t attempt)
{
    uint8_t key[sizeof (number) + sizeof (attempt)];
    memcpy (key, &number, sizeof (number));
    memcpy (key + sizeof (number), &attempt, sizeof (attempt));
    return secrets_hash (&self->secrets, key, sizeof (key));
}

attempt_note_t *attempt_note_find (const engine_t *self, int64_t number, uint32_t attempt)
{
    if (self->attempts_by_key.count == 0)
        return NULL;
    uint32_t hash = attempt_hash (self, number, attempt);
    size_t cursor = MAP_START;
    attempt_note_t *note = map_next (&self->attempts_by_key, hash, &cursor);
    while (note != NULL && (note->number != number || note->attempt != attempt))
        note = map_next (&self->attempts_by_key, hash, &cursor);
    return note;
}

static void note_attempt (engine_t *self, const attempt_t *attempt)
{
    attempt_note_t *note = memory_alloc (sizeof (*note));
    *note = (attempt_note_t){.hash = attempt_hash (self, attempt->number, attempt->attempt),
                             .number = attempt->number,
                             .attempt = attempt->attempt,
                             .how = attempt->how};
    memcpy (note->secret, attempt->secret, sizeof (note->secret));
    memcpy (note->request_id, attempt->request_id, sizeof (note->request_id));
    map_insert (&self->attempts_by_key, note->hash, note);
    fifo_push (&self->attempt_notes, note);
}

void batch_add_attempt (engine_t *self, const task_t *task, tmq_event_kind_t how,
                        int32_t error_code, const char *error_message, const uint8_t *request_id)
{
    open_batch_t *open = &self->open;
    open->attempts = memory_grow (open->attempts, &open->attempts_capacity, open->attempts_count,
                                  sizeof (*open->attempts));
    attempt_t *row = &open->attempts[open->attempts_count++];
    const detail_t *detail = task->detail;
    *row = (attempt_t){.number = task->number,
                       .id = task->id,
                       .attempt = task->attempt,
                       .started_at = detail->started_at,
                       .ended_at = self->wall,
                       .how = how,
                       .error_code = error_code};
    strncpy (row->worker, name_text (detail->worker), sizeof (row->worker) - 1);
    if (error_message != NULL)
        strncpy (row->error_message, error_message, sizeof (row->error_message) - 1);
    memcpy (row->secret, detail->secret, sizeof (row->secret));
    if (request_id != NULL)
        memcpy (row->request_id, request_id, sizeof (row->request_id));
    open->bytes += sizeof (*row);
    note_attempt (self, row);
}

removal_note_t *removal_note_find (const engine_t *self, const space_t *space, const uint8_t *id)
{
    if (self->removals_by_key.count == 0)
        return NULL;
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    removal_note_t *note = map_next (&self->removals_by_key, hash, &cursor);
    while (note != NULL &&
           (note->space != space || memcmp (note->id.bytes, id, sizeof (note->id)) != 0))
        note = map_next (&self->removals_by_key, hash, &cursor);
    return note;
}

void batch_add_removal (engine_t *self, space_t *space, int64_t number, const tmq_id_t *id,
                        tmq_code_t code)
{
    open_batch_t *open = &self->open;
    open->removals = memory_grow (open->removals, &open->removals_capacity, open->removals_count,
                                  sizeof (*open->removals));
    open->removals[open->removals_count++] =
        (removal_t){number, *id, memory_text (space->name), code, self->wall};
    open->bytes += sizeof (removal_t) + TMQ_NAME_LENGTH_MAX;
    removal_note_t *note = memory_alloc (sizeof (*note));
    *note = (removal_note_t){task_hash (self, space, id->bytes), space, *id, code};
    map_insert (&self->removals_by_key, note->hash, note);
    fifo_push (&self->removal_notes, note);
}

/* Images. */

static const char *or_empty (const char *text)
{
    return text == NULL ? "" : text;
}

static void view_detail (const detail_t *detail, record_t *out)
{
    out->status_message = or_empty (detail->status_message);
    out->started_at = detail->started_at;
    out->finished_at = detail->finished_at;
    out->worker = name_text (detail->worker);
    memcpy (out->secret, detail->secret, sizeof (out->secret));
    memcpy (out->worker_id, detail->worker_id, sizeof (out->worker_id));
    memcpy (out->request_id, detail->request_id, sizeof (out->request_id));
    out->progress_done = detail->progress_done;
    out->progress_total = detail->progress_total;
    out->progress_unit = or_empty (detail->progress_unit);
    out->progress_message = or_empty (detail->progress_message);
    out->outcome = detail->outcome;
    out->result_bytes = detail->result_bytes;
    out->result = detail->result;
    out->result_type = name_text (detail->result_type);
    out->error_code = detail->error_code;
    out->error_message = or_empty (detail->error_message);
    out->error_data = or_empty (detail->error_data);
}

void task_view (const task_t *task, record_t *out, task_texts_t *texts)
{
    static const detail_t NOTHING;
    task_texts (task, texts);
    *out = (record_t){.number = task->number,
                      .id = task->id,
                      .ns = task->queue->space->name,
                      .owner = name_text (task->owner),
                      .queue = task->queue->name,
                      .session = name_text (task->session),
                      .method = texts->method,
                      .content_type = texts->content_type,
                      .dedup_key = texts->dedup_key,
                      .meta = texts->meta,
                      .labels = texts->labels,
                      .labels_count = task->labels_count,
                      .status = task->status,
                      .priority = task->priority,
                      .dead = task->dead,
                      .created_at = task->created_at,
                      .updated_at = task->updated_at,
                      .expires_at = task->expires_at,
                      .not_before = task->not_before,
                      .ttl_ms = task->ttl_ms,
                      .poll_interval_ms = task->poll_interval_ms,
                      .lease_ms = task->lease_ms,
                      .backoff_ms = task->backoff_ms,
                      .max_attempts = task->max_attempts,
                      .attempt = task->attempt,
                      .failures = task->failures,
                      .returns = task->returns,
                      .version = task->version,
                      .last_seq = task->last_seq,
                      .leased = task->leased,
                      .lease_started = task->started,
                      .payload_bytes = task->payload_bytes,
                      .payload = task->payload};
    memcpy (out->digest, task->digest, sizeof (out->digest));
    view_detail (task->detail == NULL ? &NOTHING : task->detail, out);
}

/* The image that is stored: bodies only when the tables do not have them yet. */
static record_t *image_of (task_t *task, batch_t *batch, size_t expected)
{
    record_t view;
    task_texts_t texts;
    task_view (task, &view, &texts);
    if (task->payload_stored)
        view.payload = NULL;
    if (task->result_stored)
        view.result = NULL;
    task->payload_stored = true;
    task->result_stored = task->result_stored || view.result != NULL;
    batch->bytes += IMAGE_BYTES + buf_length (view.payload) + buf_length (view.result);
    return batch_record_new (batch, &view, expected);
}

/* Closing the batch. */

static void take_records (open_batch_t *open, batch_t *batch)
{
    batch->records = memory_alloc (open->tasks_count * sizeof (record_t *));
    batch->records_count = open->tasks_count;
    for (size_t i = 0; i < open->tasks_count; i++) {
        batch->records[i] = image_of (open->tasks[i], batch, open->tasks_count);
        open->tasks[i]->in_batch = false;
    }
}

static void take_events (engine_t *self, batch_t *batch)
{
    size_t capacity = 0;
    for (node_t *node = list_pop_front (&self->open.spaces); node != NULL;
         node = list_pop_front (&self->open.spaces)) {
        space_t *space = LIST_ITEM (node, space_t, opened);
        batch->blocks =
            memory_grow (batch->blocks, &capacity, batch->blocks_count, sizeof (*batch->blocks));
        event_block_t *block = &batch->blocks[batch->blocks_count++];
        *block = (event_block_t){.ns = memory_text (space->name),
                                 .first_seq = space->last_seq - space->open_count + 1,
                                 .first_pos = self->last_pos + 1,
                                 .count = space->open_count,
                                 .list = buf_new (space->open.data, space->open.length)};
        self->last_pos += block->count;
        batch->bytes += space->open.length;
        ring_add (self, space, batch->no, block->first_seq, block->count, block->list);
        bytes_clear (&space->open);
        space->open_count = 0;
    }
}

static void remember_taken (engine_t *self, const batch_t *batch)
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

batch_t *engine_batch_take (engine_t *self, now_t now)
{
    engine_clock (self, now);
    open_batch_t *open = &self->open;
    batch_write_lazy (self);
    if (batch_is_empty (self)) {
        open->inputs = 0; /* they changed nothing */
        return NULL;
    }
    batch_t *batch = memory_zero (1, sizeof (*batch));
    batch->no = open->no;
    batch->wall_ms = self->wall;
    batch->inputs = open->inputs;
    take_records (open, batch);
    take_events (self, batch);
    batch->attempts = open->attempts;
    batch->attempts_count = open->attempts_count;
    batch->removals = open->removals;
    batch->removals_count = open->removals_count;
    batch->bytes += batch->attempts_count * sizeof (attempt_t);
    remember_taken (self, batch);
    /* The next batch will be about as large. */
    size_t expected = open->tasks_count;
    *open = (open_batch_t){.no = open->no + 1, .tasks_capacity = expected};
    if (expected > 0)
        open->tasks = memory_alloc (expected * sizeof (task_t *));
    list_init (&open->spaces);
    self->counts.batches++;
    return batch;
}

size_t engine_batch_inputs (const engine_t *self)
{
    return self->open.inputs;
}

/* Durable, written. */

void engine_durable (engine_t *self, uint64_t batch, now_t now)
{
    engine_clock (self, now);
    if (batch <= self->durable)
        return;
    assert (batch < self->open.no);
    self->durable = batch;
    while (self->taken_durable < self->taken.count) {
        const taken_t *taken = fifo_at (&self->taken, self->taken_durable);
        if (taken->no > batch)
            break;
        self->pending_inputs -= taken->inputs;
        self->pending_bytes -= taken->bytes;
        self->taken_durable++;
    }
    stream_durable (self);
    release_durable (self);
}

void engine_written (engine_t *self, uint64_t batch)
{
    if (batch <= self->written)
        return;
    self->written = batch;
    stream_notices (self); /* they name tasks that may go now */
    batch_settle (self);
}

static void forget_payload (engine_t *self, task_t *task)
{
    if (task->payload_cached)
        self->cached_bytes -= task->payload_bytes;
    task->payload_cached = false;
    buf_drop (task->payload);
    task->payload = NULL;
}

static void evict (engine_t *self, task_t *task)
{
    assert (task->waits == NULL && !task->ready && !task->in_batch);
    queue_t *queue = task->queue;
    space_t *space = queue->space;
    uint32_t hash = task_hash (self, space, task->id.bytes);
    map_remove (&self->tasks, hash, task);
    if (self->config.planted_bug != ENGINE_BUG_GONE_FORGOTTEN)
        absent_left (&self->absent, hash, &task->id);
    if (task->has_dedup_key)
        map_remove (&self->dedup,
                    dedup_hash (self, space, name_text (task->owner), task_dedup_key (task)), task);
    alarm_disarm (&task->alarm);
    names_drop (&self->names, task->owner);
    names_drop (&self->names, task->session);
    if (task->detail != NULL) {
        list_remove (&task->detail->lazy);
        names_drop (&self->names, task->detail->worker);
        names_drop (&self->names, task->detail->result_type);
    }
    forget_payload (self, task);
    task_clear (&self->slab, task);
    slab_give (&self->slab, task);
    queue->tasks--;
    queue_release (self, queue);
}

/* The tables have the task as it is. */
static void settle_task (engine_t *self, task_t *task)
{
    self->dirty_tasks--;
    if (task_is_terminal (task) && !task->leased) {
        evict (self, task);
        return;
    }
    if (task->payload == NULL || task->payload_cached)
        return;
    if (self->cached_bytes + task->payload_bytes > self->config.payload_cache_bytes) {
        forget_payload (self, task);
    } else {
        task->payload_cached = true;
        self->cached_bytes += task->payload_bytes;
    }
}

static void forget_notes (engine_t *self, size_t attempts, size_t removals)
{
    for (size_t i = 0; i < attempts; i++) {
        attempt_note_t *note = fifo_pop (&self->attempt_notes);
        map_remove (&self->attempts_by_key, note->hash, note);
        free (note);
    }
    for (size_t i = 0; i < removals; i++) {
        removal_note_t *note = fifo_pop (&self->removal_notes);
        map_remove (&self->removals_by_key, note->hash, note);
        free (note);
    }
}

void batch_settle (engine_t *self)
{
    uint64_t upto =
        self->config.planted_bug == ENGINE_BUG_EVICTED_EARLY ? self->durable : self->written;
    while (self->taken_durable > 0) {
        taken_t *taken = fifo_first (&self->taken);
        if (taken->no > upto)
            break;
        fifo_pop (&self->taken);
        self->taken_durable--;
        self->settled = taken->no;
        self->dirty_bytes -= taken->bytes;
        for (size_t i = 0; i < taken->tasks_count; i++)
            if (taken->tasks[i]->changed == taken->no)
                settle_task (self, taken->tasks[i]);
        forget_notes (self, taken->attempts_count, taken->removals_count);
        free (taken->tasks);
        free (taken);
    }
}

/* Everything that was applied and not kept (A21). The numbers of batches go on: those that were
 * taken and failed count as done, so that nothing waits for them. */
void batch_clear (engine_t *self)
{
    for (taken_t *taken = fifo_pop (&self->taken); taken != NULL; taken = fifo_pop (&self->taken)) {
        free (taken->tasks);
        free (taken);
    }
    forget_notes (self, self->attempt_notes.count, self->removal_notes.count);
    map_free (&self->attempts_by_key);
    map_free (&self->removals_by_key);
    open_batch_t *open = &self->open;
    free (open->tasks);
    free (open->attempts);
    for (size_t i = 0; i < open->removals_count; i++)
        free ((char *) open->removals[i].ns);
    free (open->removals);
    *open = (open_batch_t){.no = open->no};
    list_init (&open->spaces);
    self->taken_durable = 0;
    self->durable = self->written = self->settled = open->no - 1;
    self->pending_inputs = self->pending_bytes = 0;
    self->dirty_tasks = self->dirty_bytes = 0;
    self->cached_bytes = 0;
}

/* What is pending (A12, A19). */

size_t engine_pending_inputs (const engine_t *self)
{
    return self->pending_inputs + self->open.inputs;
}

size_t engine_pending_bytes (const engine_t *self)
{
    return self->dirty_bytes + self->open.bytes;
}

bool engine_is_overloaded (const engine_t *self)
{
    const engine_config_t *config = &self->config;
    return engine_pending_inputs (self) >= config->pending_inputs_soft ||
           self->pending_bytes + self->open.bytes >= config->pending_bytes_soft ||
           self->dirty_tasks >= config->dirty_tasks_soft ||
           engine_pending_bytes (self) >= config->dirty_bytes_soft;
}
