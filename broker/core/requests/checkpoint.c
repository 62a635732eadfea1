/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* checkpoint, checkpoint_read: what a worker keeps of its work, and what an earlier one kept. */
#include "core/tasks/checkpoint.h"

#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/report.h"
#include "core/requests/room.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"

enum { PART_BODY = 1 }; /* number of the field in taskmq.proto */

/* The task whose lease it names, or NULL when it was answered. */
static task_t *begin (call_t *call, const Taskmq__Lease *lease)
{
    const requests_t *self = call->requests;
    if (self->base->config.planted_bug == ENGINE_BUG_CHECKPOINT_OF_ANYBODY) {
        task_t *task = find_unjudged (self->reads, call->link->space, lease->task_id.data).task;
        if (task != NULL && task->status == TMQ_STATUS_WORKING)
            return task;
    }
    return report_begin (call, lease);
}

static bool refuse_more (call_t *call, const task_t *task)
{
    uint64_t limit = call->requests->base->config.space_bytes_max;
    uint64_t bytes = call->request->checkpoint->state_bytes;
    uint64_t before = extras_of (task)->checkpoint_bytes;
    if (bytes <= before || call->link->space->entries.bytes + bytes - before <= limit)
        return false;
    reply_limit (call, "bytes of the namespace's values, items and checkpoints", limit);
    return true;
}

void on_checkpoint (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Checkpoint *request = call->request->checkpoint;
    if (room_refused_at_once (call))
        return;
    task_t *task = begin (call, request->lease);
    if (task == NULL || refuse_more (call, task))
        return;
    report_started (self, task);
    self->tasks->open.inputs++;
    checkpoint_put (self->tasks, task, call->body, request->state_bytes);
    reply_code (call, TMQ_OK, NULL);
}

void on_checkpoint_read (call_t *call)
{
    requests_t *self = call->requests;
    const task_t *task = report_begin (call, call->request->checkpoint_read->lease);
    if (task == NULL)
        return;
    row_key_t key;
    bool found = false;
    const buf_t *state = NULL;
    checkpoint_key (&key, call->link->space->name, &task->id);
    size_t length = extras_of (task)->checkpoint_bytes;
    if (length > 0)
        state = find_row (self->reads, ROW_KIND_CHECKPOINT, key.bytes, key.length, &found);
    if (buf_length (state) != length) {
        reply_code (call, TMQ_INTERNAL, "the checkpoint could not be read");
        return;
    }
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t part = bytes_open (out, TASKMQ__REPLY__BODY_CHECKPOINT_STATE);
    bytes_append_uint (out, PART_BODY, length);
    bytes_close (out, part);
    reply_close (self, call->link, mark, journal_batch (self->tasks), (buf_t *) (uintptr_t) state);
}
