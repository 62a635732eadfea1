/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What "durable" and "written back" mean for memory. */
#include <assert.h>
#include <stdlib.h>

#include "core/tasks/extras.h"
#include "core/tasks/failure.h"
#include "core/tasks/index.h"
#include "core/tasks/rows.h"
#include "core/tasks/session.h"
#include "core/tasks/settle.h"
#include "core/tasks/space.h"

static void forget_payload (tasks_t *self, task_t *task)
{
    if (task->payload_cached)
        self->cached_bytes -= task->payload_bytes;
    task->payload_cached = false;
    buf_drop (task->payload);
    task->payload = NULL;
}

static void leave_maps (tasks_t *self, task_t *task)
{
    space_t *space = task->queue->space;
    uint32_t hash = task_hash (self, space, task->id.bytes);
    map_remove (&self->by_id, hash, task);
    self->ended--;
    if (self->base->config.planted_bug != ENGINE_BUG_GONE_FORGOTTEN)
        absent_left (&self->absent, hash, &task->id);
    if (task->has_dedup_key)
        map_remove (&self->by_key,
                    task_key_hash (self, space, name_text (task->owner), task_dedup_key (task)),
                    task);
}

void settle_detach (tasks_t *self, task_t *task)
{
    assert (task_is_terminal (task) && !task->leased && task->changed > self->settled);
    leave_maps (self, task);
    task->removed = true;
    if (task->detail != NULL) {
        list_remove (&task->detail->lazy);
        list_remove (&task->detail->noticed);
    }
    list_push_back (&self->removed, &task->place);
}

static void evict (tasks_t *self, task_t *task)
{
    assert (task->waits == NULL && !task->ready && !task->in_batch);
    queue_t *queue = task->queue;
    if (task->removed)
        list_unlink (&task->place);
    else
        leave_maps (self, task);
    alarm_disarm (&task->alarm);
    names_drop (&self->base->names, task->owner);
    session_drop (self, task);
    if (task->detail != NULL) {
        list_remove (&task->detail->lazy);
        names_drop (&self->base->names, task->detail->worker);
        names_drop (&self->base->names, task->detail->identity);
        names_drop (&self->base->names, task->detail->result_type);
    }
    forget_payload (self, task);
    failure_drop (self, task);
    self->texts_bytes -= task_texts_length (task);
    extras_drop (self, task);
    task_clear (&self->slab, task);
    slab_give (&self->slab, task);
    queue->tasks--;
    queue_release (self, queue);
}

/* The tables have the task as it is. */
static void settle_task (tasks_t *self, task_t *task)
{
    self->dirty_tasks--;
    if (task_is_terminal (task) && !task->leased) {
        evict (self, task);
        return;
    }
    if (task->payload == NULL || task->payload_cached)
        return;
    if (self->cached_bytes + task->payload_bytes > self->base->config.payload_cache_bytes) {
        forget_payload (self, task);
    } else {
        task->payload_cached = true;
        self->cached_bytes += task->payload_bytes;
    }
}

void settle_written (tasks_t *self)
{
    const base_t *base = self->base;
    bool early = base->config.planted_bug == ENGINE_BUG_EVICTED_EARLY;
    uint64_t upto = early ? base->durable : base->written;
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
        notes_forget (self, taken->attempts_count, taken->removals_count);
        rows_settle (self, taken->no);
        free (taken->tasks);
        free (taken);
    }
}

void settle_durable (tasks_t *self, uint64_t batch)
{
    assert (batch < self->open.no);
    while (self->taken_durable < self->taken.count) {
        const taken_t *taken = fifo_at (&self->taken, self->taken_durable);
        if (taken->no > batch)
            break;
        self->durable = taken->no;
        self->pending_inputs -= taken->inputs;
        self->pending_bytes -= taken->bytes;
        self->taken_durable++;
    }
}

void settle_drop_payload (tasks_t *self, task_t *task)
{
    if (task->payload_cached)
        forget_payload (self, task);
}

void settle_give_payload (tasks_t *self, task_t *task, buf_t *payload)
{
    task->payload_wanted = false;
    if (task->payload != NULL)
        return;
    assert (buf_length (payload) == task->payload_bytes);
    task->payload = buf_keep (payload);
    task->payload_cached = true;
    self->cached_bytes += task->payload_bytes;
}
