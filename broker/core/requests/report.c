/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a worker says of an attempt under way: started, renew, push. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/peers/link.h"
#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/report.h"
#include "core/tasks/change.h"
#include "core/tasks/due.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "core/tasks/lease.h"
#include "core/tasks/question.h"
#include "core/wire/pack.h"

enum { RENEWED_LEASES = 1 }; /* number of the field in taskmq.proto */

void report_started (requests_t *self, task_t *task)
{
    if (task->started)
        return;
    task->started = true;
    task->detail->started_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    task->updated_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    due_arm_runtime (self->tasks, task);
    journal_touch_lazily (self->tasks, task);
}

int64_t report_mark_ms (const engine_config_t *config)
{
    return config->recover_max_age_ms / 4;
}

/* A start after a while asks when each lease was heard of last. */
static void mark_alive (requests_t *self, task_t *task)
{
    const engine_config_t *config = &self->base->config;
    int64_t now_ms = self->base->clocks.wall_ms;
    if (config->recover_max_age_ms == 0 || now_ms - task->updated_at < report_mark_ms (config))
        return;
    task->updated_at = now_ms;
    journal_touch_lazily (self->tasks, task);
}

bool report_is_of (const link_t *link, const char *holder)
{
    return link->access.policy == NULL || link_is (link, holder);
}

/* Who has the lease may also lose the right to work in its queue. */
static bool may_report (link_t *link, const task_t *task)
{
    return link->access.policy == NULL ||
           (report_is_of (link, name_text (task->detail->identity)) &&
            access_queue (&link->access, task->queue->name, RIGHT_WORK));
}

bool report_is_denied (call_t *call, const task_t *task)
{
    if (may_report (call->link, task))
        return false;
    deny (call);
    reply_code (call, TMQ_DENIED, "the lease is somebody else's");
    return true;
}

uint32_t report_news (const requests_t *self, const task_t *task)
{
    return task == NULL || !task->asks ? 0 : asking_news (self->tasks, task);
}

tmq_code_t report_refresh (requests_t *self, link_t *link, const worker_t *worker,
                           const Taskmq__Lease *lease, task_t **out)
{
    task_t *task = task_find (self->tasks, link->space, lease->task_id.data);
    *out = NULL;
    if (!lease_is_current (self->tasks, task, lease) || task->detail->holder != worker ||
        !may_report (link, task))
        return TMQ_STALE_LEASE;
    *out = task;
    lease_arm (self->tasks, task, task->lease_ms);
    mark_alive (self, task);
    return task_is_withdrawn (task) ? TMQ_CANCELLED : TMQ_OK;
}

task_t *report_begin (call_t *call, const Taskmq__Lease *lease)
{
    requests_t *self = call->requests;
    found_t found = find_unjudged (self->reads, call->link->space, lease->task_id.data);
    task_t *task = found.task;
    if (!lease_is_current (self->tasks, task, lease)) {
        reply_stale (call, &found, lease, false);
        return NULL;
    }
    if (report_is_denied (call, task))
        return NULL;
    if (task_is_withdrawn (task)) {
        reply_code (call, TMQ_WRONG_STATUS, "the task was cancelled");
        return NULL;
    }
    return task;
}

void on_started (call_t *call)
{
    task_t *task = report_begin (call, call->request->started->lease);
    if (task == NULL)
        return;
    report_started (call->requests, task);
    reply_code (call, TMQ_OK, NULL);
}

void on_renew (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Renew *request = call->request->renew;
    const worker_t *worker = worker_find (self->tasks, call->link->space, request->worker_id.data);
    uint64_t batch = 0; /* a renewal is not stored and need not wait (A8); bad news must be true */
    bytes_mark_t mark;
    bytes_t packed = BYTES_INIT;
    for (size_t i = 0; i < request->n_leases; i++) {
        const Taskmq__Lease *lease = request->leases[i];
        task_t *task = NULL;
        tmq_code_t code = report_refresh (self, call->link, worker, lease, &task);
        if (code != TMQ_OK)
            batch = journal_batch (self->tasks);
        if (task != NULL && lease->started && code == TMQ_OK)
            report_started (self, task);
        pack_lease_state (&packed, RENEWED_LEASES, lease->task_id.data, lease->attempt, code,
                          task == NULL ? 0 : task->lease_ms, report_news (self, task));
    }
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_RENEWED, packed.data, packed.length);
    reply_close (self, call->link, mark, batch, NULL);
    bytes_free (&packed);
}

static void take_progress (requests_t *self, task_t *task, const Taskmq__Progress *progress)
{
    detail_t *detail = task->detail;
    detail->progress_done = progress->done + 0.0; /* no -0 */
    detail->progress_total = progress->total + 0.0;
    detail_set_text (&detail->progress_unit, progress->unit);
    detail_set_text (&detail->progress_message, progress->message);
    task->updated_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    journal_touch_lazily (self->tasks, task);
    if (!node_is_linked (&detail->noticed))
        list_push_back (&self->tasks->noticed, &detail->noticed);
}

static bool is_repeated (const detail_t *detail, const uint8_t *request_id)
{
    const size_t bytes = sizeof (detail->request_id);
    if (memcmp (detail->request_id, request_id, bytes) == 0)
        return true;
    for (size_t i = 0; detail->pushed != NULL && i < PUSHES_KEPT; i++)
        if (memcmp (detail->pushed + i * bytes, request_id, bytes) == 0)
            return true;
    return false;
}

/* The newest id is stored with the task; those before it are known until the broker restarts. */
static void keep_request_id (detail_t *detail, const uint8_t *request_id)
{
    static const uint8_t NONE[sizeof (detail->request_id)];
    const size_t bytes = sizeof (detail->request_id);
    if (memcmp (detail->request_id, NONE, bytes) != 0) {
        if (detail->pushed == NULL)
            detail->pushed = memory_zero (PUSHES_KEPT, bytes);
        memmove (detail->pushed + bytes, detail->pushed, (PUSHES_KEPT - 1) * bytes);
        memcpy (detail->pushed, detail->request_id, bytes);
    }
    memcpy (detail->request_id, request_id, bytes);
}

void on_push (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Push *push = call->request->push;
    task_t *task = report_begin (call, push->lease);
    if (task == NULL)
        return;
    detail_t *detail = task->detail;
    const uint8_t *request_id = call->request->request_id.data;
    bool repeated = is_repeated (detail, request_id);
    report_started (self, task);
    if (push->progress != NULL && !repeated)
        take_progress (self, task, push->progress);
    if (push->status_message[0] != '\0' && !repeated) {
        keep_request_id (detail, request_id);
        detail_set_text (&detail->status_message, push->status_message);
        cause_t cause = {.actor = name_text (call->link->identity),
                         .message = push->status_message};
        self->tasks->open.inputs++;
        change_apply (self->tasks, task, INPUT_CHANGE, &cause);
    }
    reply_code (call, TMQ_OK, NULL);
}
