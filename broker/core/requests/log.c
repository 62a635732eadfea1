/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* log, read_log: what the program of a worker writes, and whoever reads it.
 *
 * Logs are best effort: a piece is answered when it was taken, nothing of it waits for a commit,
 * and no change of a task waits for a piece. The files are the server's; the engine says who may
 * write and read, how fast, and how far each log is. */
#include "core/requests/log.h"

#include <stdio.h>
#include <string.h>

#include "core/reads/find.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/errands.h"
#include "core/requests/get.h"
#include "core/requests/report.h"
#include "core/tasks/flow.h"
#include "core/tasks/lease.h"

enum { QUEUE_RETRY_MS = 100 };

static const int64_t SECOND_NS = 1000000000;

/* The task whose lease it names, or NULL when it was answered. Also of one that was cancelled, as
 * long as its worker holds the lease: what it says last is often why. */
static task_t *begin (call_t *call, const Taskmq__Lease *lease)
{
    requests_t *self = call->requests;
    found_t found = find_unjudged (self->reads, call->link->space, lease->task_id.data);
    task_t *task = found.task;
    bool unchecked =
        self->base->config.planted_bug == ENGINE_BUG_LOG_OF_ANYBODY && task != NULL && task->leased;
    if (!unchecked && !lease_is_current (self->tasks, task, lease)) {
        reply_stale (call, &found, lease, false);
        return NULL;
    }
    return report_is_denied (call, task) ? NULL : task;
}

static void ask_to_wait (call_t *call, const char *what, size_t limit, int64_t wait_ms)
{
    char text[LIMIT_TEXT_SIZE];
    limit_text (text, what, limit);
    call->requests->base->counts.log_waits++;
    reply_code_at_once (call, TMQ_LIMIT, text, (uint32_t) wait_ms);
}

static bool must_wait (call_t *call, flow_t *flow, size_t bytes)
{
    requests_t *self = call->requests;
    const engine_config_t *config = &self->base->config;
    if (self->log_bytes + log_piece_memory (bytes) > config->log_bytes_max &&
        config->planted_bug != ENGINE_BUG_LOG_UNBOUNDED) {
        ask_to_wait (call, "bytes of memory for logs not in their files yet", config->log_bytes_max,
                     QUEUE_RETRY_MS);
        return true;
    }
    int64_t each_ns = SECOND_NS / (int64_t) config->log_rate;
    int64_t wait_ms = bucket_take_some (&flow->rate, bytes, each_ns < 1 ? 1 : each_ns,
                                        config->log_rate, self->base->clocks.mono_ms);
    if (wait_ms > 0)
        ask_to_wait (call, "bytes a second of the log of a task", config->log_rate, wait_ms);
    return wait_ms > 0;
}

static void take (requests_t *self, task_t *task, const Taskmq__Log *log, const uint8_t *bytes)
{
    log_key_t key = {.number = task->number,
                     .id = task->id,
                     .attempt = task->attempt,
                     .stream = (tmq_log_stream_t) log->stream};
    snprintf (key.ns, sizeof (key.ns), "%s", task->queue->space->name);
    log_piece_t *piece = log_piece_new (&key, log->offset, bytes, log->log_bytes);
    list_push_back (&self->log_pieces, &piece->node);
    self->log_bytes += log_piece_memory (log->log_bytes);
    self->base->counts.log_bytes += log->log_bytes;
}

static void advance (requests_t *self, flow_t *flow, const Taskmq__Log *log)
{
    uint64_t *end = &flow->end[log->stream - 1];
    if (log->offset + log->log_bytes <= *end)
        return; /* a repeat */
    *end = log->offset + log->log_bytes;
    if (!node_is_linked (&flow->flowed))
        list_push_back (&self->tasks->flowed, &flow->flowed);
}

void on_log (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__Log *log = call->request->log;
    task_t *task = begin (call, log->lease);
    if (task == NULL)
        return;
    flow_t *flow = flow_at (&task->detail->flow, task, task->attempt);
    report_started (self, task);
    if (must_wait (call, flow, log->log_bytes))
        return;
    take (self, task, log, call->body);
    advance (self, flow, log);
    reply_code_at_once (call, TMQ_OK, NULL, 0);
}

void on_read_log (call_t *call)
{
    found_t found;
    if (!get_find (call, &call->request->read_log->task_id, RIGHT_BODY, &found))
        return;
    deeds_task (call, DEED_READ, &found);
    errand_about_task (call, found.task != NULL ? found.task->number : found.record->number);
}

log_piece_t *log_pieces_next (requests_t *self)
{
    node_t *node = list_pop_front (&self->log_pieces);
    return node == NULL ? NULL : LIST_ITEM (node, log_piece_t, node);
}

void log_piece_done (requests_t *self, log_piece_t *piece)
{
    self->log_bytes -= log_piece_memory (buf_length (piece->bytes));
    log_piece_free (piece);
}

void log_pieces_free (requests_t *self)
{
    log_piece_t *piece;
    while ((piece = log_pieces_next (self)) != NULL)
        log_piece_done (self, piece);
}
