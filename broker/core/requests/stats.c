/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* stats: counters and gauges by name, and the depth of every queue of the namespace. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/requests/answer.h"
#include "core/tasks/journal.h"

/* Numbers of the fields of StatsReport and its parts in taskmq.proto. */
enum { STATS_COUNTERS = 1, STATS_QUEUES = 2 };

enum { COUNTER_NAME = 1, COUNTER_VALUE = 2 };

enum { DEPTH_QUEUE = 1, DEPTH_READY, DEPTH_SCHEDULED, DEPTH_WORKING, DEPTH_INPUT_REQUIRED };

static void pack_counter (bytes_t *out, const char *name, uint64_t value)
{
    bytes_mark_t mark = bytes_open (out, STATS_COUNTERS);
    bytes_append_string (out, COUNTER_NAME, name);
    bytes_append_uint (out, COUNTER_VALUE, value);
    bytes_close (out, mark);
}

static void pack_counters (requests_t *self, bytes_t *out)
{
    const counts_t *counts = &self->base->counts;
#define X(name, meaning, bad) pack_counter (out, #name, counts->name);
    ENGINE_COUNTER_MAP (X)
#undef X
    const counter_t gauges[] = {
        {"live_tasks", tasks_live (self->tasks)},
        {"ready", self->tasks->ready},
        {"leases", self->tasks->leases},
        {"links", self->peers->established},
        {"workers", self->tasks->workers.count},
        {"subscriptions", self->streams->count},
        {"waits", self->waits},
        {"pending_inputs", journal_pending_inputs (self->tasks)},
        {"pending_bytes", journal_pending_bytes (self->tasks)},
        {"dirty_tasks", self->tasks->dirty_tasks},
        {"payload_cache_bytes", self->tasks->cached_bytes},
        {"ring_bytes", self->history->ring_bytes},
    };
    for (size_t i = 0; i < sizeof (gauges) / sizeof (gauges[0]); i++)
        pack_counter (out, gauges[i].name, gauges[i].value);
    for (size_t i = 0; i < self->foreign_count; i++)
        pack_counter (out, self->foreign[i].name, self->foreign[i].value);
}

static void pack_depth (bytes_t *out, const queue_t *queue)
{
    bytes_mark_t mark = bytes_open (out, STATS_QUEUES);
    bytes_append_string (out, DEPTH_QUEUE, queue->name);
    bytes_append_uint (out, DEPTH_READY, queue->ready);
    bytes_append_uint (out, DEPTH_SCHEDULED, queue->scheduled);
    bytes_append_uint (out, DEPTH_WORKING, queue->working);
    bytes_append_uint (out, DEPTH_INPUT_REQUIRED, queue->input_required);
    bytes_close (out, mark);
}

/* So many queues that they do not fit one envelope come in several answers. */
void on_stats (call_t *call)
{
    requests_t *self = call->requests;
    bytes_t packed = BYTES_INIT;
    bytes_mark_t mark;
    pack_counters (self, &packed);
    size_t cursor = 0;
    for (const queue_t *queue = map_each (&self->tasks->queues, &cursor); queue != NULL;
         queue = map_each (&self->tasks->queues, &cursor)) {
        if (queue->space != call->link->space)
            continue;
        if (packed.length > ENVELOPE_FILL_BYTES) {
            bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, true, &mark);
            bytes_append_element (out, TASKMQ__REPLY__BODY_STATS, packed.data, packed.length);
            reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
            bytes_clear (&packed);
        }
        pack_depth (&packed, queue);
    }
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_STATS, packed.data, packed.length);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
    bytes_free (&packed);
}
