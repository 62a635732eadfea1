/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* stats: counters and gauges by name, and the depth of every queue of the namespace. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/requests/answer.h"
#include "core/requests/quota.h"
#include "core/requests/stats.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/space.h"

/* Numbers of the fields of StatsReport and its parts in taskmq.proto. */
enum { STATS_COUNTERS = 1, STATS_QUEUES = 2 };

enum { COUNTER_NAME = 1, COUNTER_VALUE = 2 };

enum {
    DEPTH_QUEUE = 1,
    DEPTH_READY,
    DEPTH_SCHEDULED,
    DEPTH_WORKING,
    DEPTH_INPUT_REQUIRED,
    DEPTH_SUBMITTED,
    DEPTH_COMPLETED,
    DEPTH_FAILED,
    DEPTH_ATTEMPTS_FAILED,
    DEPTH_OLDEST_READY_MS,
    DEPTH_BLOCKED
};

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
        {"ready", self->tasks->ready + self->tasks->held},
        {"leases", self->tasks->leases},
        {"links", self->peers->established},
        {"workers", self->tasks->workers.count},
        {"subscriptions", self->streams->count},
        {"waits", self->waits},
        {"pending_inputs", journal_pending_inputs (self->tasks)},
        {"pending_bytes", journal_pending_bytes (self->tasks)},
        {"dirty_tasks", self->tasks->dirty_tasks},
        {"dirty_bytes", journal_dirty_bytes (self->tasks)},
        {"payload_cache_bytes", self->tasks->cached_bytes},
        {"schedules_waiting", self->tasks->instants.count},
        {"ring_bytes", self->history->ring_bytes},
    };
    for (size_t i = 0; i < sizeof (gauges) / sizeof (gauges[0]); i++)
        pack_counter (out, gauges[i].name, gauges[i].value);
    for (size_t i = 0; i < self->foreign_count; i++)
        pack_counter (out, self->foreign[i].name, self->foreign[i].value);
}

static void pack_depth (const requests_t *self, bytes_t *out, queue_t *queue)
{
    bytes_mark_t mark = bytes_open (out, STATS_QUEUES);
    bytes_append_string (out, DEPTH_QUEUE, queue->name);
    bytes_append_uint (out, DEPTH_READY, queue->ready + queue->held);
    bytes_append_uint (out, DEPTH_SCHEDULED, queue->scheduled);
    bytes_append_uint (out, DEPTH_WORKING, queue->working);
    bytes_append_uint (out, DEPTH_INPUT_REQUIRED, queue->input_required);
    bytes_append_uint (out, DEPTH_SUBMITTED, queue->totals.submitted);
    bytes_append_uint (out, DEPTH_COMPLETED, queue->totals.completed);
    bytes_append_uint (out, DEPTH_FAILED, queue->totals.failed);
    bytes_append_uint (out, DEPTH_ATTEMPTS_FAILED, queue->totals.attempts_failed);
    bytes_append_uint (out, DEPTH_OLDEST_READY_MS,
                       lanes_oldest_ms (queue, self->base->clocks.wall_ms));
    bytes_append_uint (out, DEPTH_BLOCKED, queue->blocked);
    bytes_close (out, mark);
}

/* A request that is being answered, a message at a time. */
typedef struct stats_job {
    node_t node;    /* in the list of all of them */
    node_t of_link; /* in the link's */
    link_t *link;
    uint64_t request;
    queue_walk_t walk;
} stats_job_t;

enum { QUEUE_RIGHTS = RIGHT_SUBMIT | RIGHT_READ | RIGHT_WORK | RIGHT_OBSERVE | RIGHT_BEHALF };

enum {
    STATS_MAX = 64,     /* that are being answered at a time, … */
    STATS_LINK_MAX = 4, /* … of one link */
    STATS_RETRY_MS = 100
};

static void job_free (requests_t *self, stats_job_t *job)
{
    queue_walk_end (&job->walk);
    list_unlink (&job->node);
    list_remove (&job->of_link);
    self->stats_count--;
    free (job);
}

/* The next message of an answer, with the depths of as many queues as it takes and the round
 * allows. It begins with what is packed already. False: it was the last one. */
static bool answer_part (requests_t *self, stats_job_t *job, bytes_t *packed)
{
    size_t *left = &self->base->round.queues;
    queue_t *queue = NULL;
    while (*left > 0 && packed->length <= ENVELOPE_FILL_BYTES &&
           (queue = queue_walk_next (&job->walk)) != NULL) {
        if (access_queue (&job->link->access, queue->name, QUEUE_RIGHTS))
            pack_depth (self, packed, queue);
        budget_take (left, 1);
    }
    bool more = job->walk.next != &job->walk.space->queue_list;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, job->request, TMQ_OK, NULL, 0, more, &mark);
    bytes_append_element (out, TASKMQ__REPLY__BODY_STATS, packed->data, packed->length);
    reply_close (self, job->link, mark, journal_batch (self->tasks), NULL);
    return more;
}

void stats_run (requests_t *self)
{
    const budget_t *round = &self->base->round;
    while (round->queues > 0 && round->answer_bytes > 0 && !list_is_empty (&self->stats)) {
        stats_job_t *job = LIST_ITEM (list_pop_front (&self->stats), stats_job_t, node);
        bytes_t packed = BYTES_INIT;
        list_push_back (&self->stats, &job->node); /* the others have their turn first */
        if (!answer_part (self, job, &packed))
            job_free (self, job);
        bytes_free (&packed);
    }
}

bool stats_are_owed (const requests_t *self)
{
    return !list_is_empty (&self->stats);
}

void stats_drop_link (requests_t *self, link_t *link)
{
    node_t *jobs = &link->stats;
    for (node_t *node = list_pop_front (jobs); node != NULL; node = list_pop_front (jobs))
        job_free (self, LIST_ITEM (node, stats_job_t, of_link));
}

static size_t count_of (const link_t *link)
{
    size_t count = 0;
    for (const node_t *node = link->stats.next; node != &link->stats; node = node->next)
        count++;
    return count;
}

/* The counters, and as many queues as fit, at once; further queues come in further answers, in the
 * rounds that follow. */
void on_stats (call_t *call)
{
    requests_t *self = call->requests;
    if (self->stats_count >= STATS_MAX || count_of (call->link) >= STATS_LINK_MAX) {
        bool own = count_of (call->link) >= STATS_LINK_MAX;
        char text[LIMIT_TEXT_SIZE];
        limit_text (text, own ? "open stats of a link" : "open stats of the broker",
                    own ? STATS_LINK_MAX : STATS_MAX);
        reply_code_at_once (call, TMQ_LIMIT, text, STATS_RETRY_MS);
        return;
    }
    if (quota_answered (call, quota_read (self, call->link)))
        return;
    bytes_t packed = BYTES_INIT;
    if (access_may (&call->link->access, RIGHT_OBSERVE))
        pack_counters (self, &packed);
    stats_job_t *job = memory_zero (1, sizeof (*job));
    job->link = call->link;
    job->request = call->request->id;
    queue_walk_begin (self->tasks, &job->walk, call->link->space);
    list_push_back (&self->stats, &job->node);
    list_push_back (&call->link->stats, &job->of_link);
    self->stats_count++;
    if (!answer_part (self, job, &packed))
        job_free (self, job);
    bytes_free (&packed);
}
