/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The engine's frame: its life, its clock, the table of requests, one message, one tick.
 *
 * Failure policy: a peer's mistake is answered and changes nothing; our own mistakes are asserts;
 * exhausted memory ends the process. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

/* First in, first out. */

void fifo_push (fifo_t *self, void *item)
{
    if (self->first > 32 && self->first > self->count) {
        memmove (self->items, self->items + self->first, self->count * sizeof (*self->items));
        self->first = 0;
    }
    self->items = memory_grow (self->items, &self->capacity, self->first + self->count,
                               sizeof (*self->items));
    self->items[self->first + self->count++] = item;
}

void *fifo_first (const fifo_t *self)
{
    return self->count == 0 ? NULL : self->items[self->first];
}

void *fifo_at (const fifo_t *self, size_t index)
{
    assert (index < self->count);
    return self->items[self->first + index];
}

void *fifo_pop (fifo_t *self)
{
    if (self->count == 0)
        return NULL;
    self->count--;
    return self->items[self->first++];
}

void fifo_free (fifo_t *self)
{
    free (self->items);
    *self = (fifo_t){0};
}

/* Life. */

static void prepare (engine_t *self)
{
    names_init (&self->names, &self->secrets);
    slab_init (&self->slab);
    list_init (&self->open.spaces);
    list_init (&self->dispatch);
    list_init (&self->fetch);
    list_init (&self->lazy);
    list_init (&self->held);
    list_init (&self->outputs);
    list_init (&self->denied);
    list_init (&self->spent);
    list_init (&self->left);
    list_init (&self->left_streams);
    list_init (&self->jobs);
    list_init (&self->ring);
    list_init (&self->starting);
    wheel_init (&self->fine, FINE_MS, self->mono);
    wheel_init (&self->coarse, COARSE_MS, self->wall);
}

engine_t *engine_new (const engine_config_t *config)
{
    engine_t *self = memory_zero (1, sizeof (*self));
    self->config = *config;
    secrets_init (&self->secrets, config->seed);
    list_init (&self->jobs_given);
    list_init (&self->spare_items);
    self->open.no = 1;
    prepare (self);
    return self;
}

static void clear_links (engine_t *self)
{
    link_t *link = NULL;
    size_t cursor = 0;
    while ((link = map_each (&self->links, &cursor)) != NULL) {
        link_close (self, link);
        cursor = 0;
    }
    map_free (&self->links);
}

static void clear_tasks (engine_t *self)
{
    size_t cursor = 0;
    for (task_t *task = map_each (&self->tasks, &cursor); task != NULL;
         task = map_each (&self->tasks, &cursor))
        task_clear (&self->slab, task);
    map_free (&self->tasks);
    map_free (&self->dedup);
    slab_free (&self->slab);
}

static void clear_workers (engine_t *self)
{
    size_t cursor = 0;
    for (worker_t *worker = map_each (&self->workers, &cursor); worker != NULL;
         worker = map_each (&self->workers, &cursor)) {
        free (worker->seats);
        free (worker);
    }
    map_free (&self->workers);
}

static void clear_spaces (engine_t *self)
{
    size_t cursor = 0;
    for (queue_t *queue = map_each (&self->queues, &cursor); queue != NULL;
         queue = map_each (&self->queues, &cursor)) {
        queue_clear (queue);
        free (queue);
    }
    map_free (&self->queues);
    cursor = 0;
    for (space_t *space = map_each (&self->spaces, &cursor); space != NULL;
         space = map_each (&self->spaces, &cursor)) {
        bytes_free (&space->open);
        for (size_t i = 0; i < SLICES; i++)
            buf_drop (space->slices[i].list);
        free (space);
    }
    map_free (&self->spaces);
}

void engine_clear (engine_t *self)
{
    clear_links (self);
    release_clear (self);
    ring_clear (self);
    batch_clear (self);
    lookup_clear (self);
    clear_tasks (self);
    clear_workers (self);
    clear_spaces (self);
    names_free (&self->names);
    jobs_clear (self);
    self->noticed_count = 0;
    self->spaces_used = 0;
    self->subscriptions = 0;
    self->waits = 0;
    self->ready = 0;
    self->leases = 0;
}

void engine_free (engine_t *self)
{
    if (self == NULL)
        return;
    engine_clear (self);
    for (node_t *node = list_pop_front (&self->jobs_given); node != NULL;
         node = list_pop_front (&self->jobs_given))
        job_free (self, LIST_ITEM (node, job_t, node));
    fifo_free (&self->taken);
    fifo_free (&self->attempt_notes);
    fifo_free (&self->removal_notes);
    release_free (self);
    absent_free (&self->absent);
    bytes_free (&self->scratch);
    bytes_free (&self->envelope);
    free (self->open.tasks);
    free (self->open.attempts);
    free (self->open.removals);
    free (self->noticed);
    free (self->foreign);
    free (self);
}

void engine_reset (engine_t *self)
{
    engine_clear (self);
    self->counts.resets++;
    prepare (self);
}

void engine_stop (engine_t *self)
{
    self->stopping = true;
}

void engine_set_full (engine_t *self, bool full)
{
    self->full = full;
}

/* The clock (S27). */

static void rearm_scheduled (engine_t *self)
{
    size_t cursor = 0;
    for (task_t *task = map_each (&self->tasks, &cursor); task != NULL;
         task = map_each (&self->tasks, &cursor)) {
        if (task->scheduled) {
            change_unplace (self, task);
            change_place (self, task);
        }
    }
}

void engine_clock (engine_t *self, now_t now)
{
    int64_t mono_step = now.mono_ms - self->mono;
    int64_t wall_step = now.wall_ms > self->wall ? now.wall_ms - self->wall : 0;
    if (mono_step > 0)
        self->mono = now.mono_ms;
    self->wall += wall_step;
    if (self->mono >= self->hold_until)
        self->leap_ms = 0;
    int64_t leap_ms = wall_step - (mono_step > 0 ? mono_step : 0);
    if (leap_ms > LEAP_MS) {
        self->leap_ms += leap_ms;
        self->hold_until = self->mono + LEAP_HOLD_MS;
        self->counts.clock_leaps++;
    }
    if (leap_ms > COARSE_MS)
        rearm_scheduled (self); /* their delays are counted on the monotonic clock */
}

int64_t engine_expiry_ms (const engine_t *self)
{
    return self->wall - self->leap_ms;
}

/* Namespaces and queues. */

space_t *space_find (const engine_t *self, const char *name)
{
    uint32_t hash = secrets_hash (&self->secrets, name, strlen (name));
    size_t cursor = MAP_START;
    for (space_t *space = map_next (&self->spaces, hash, &cursor); space != NULL;
         space = map_next (&self->spaces, hash, &cursor))
        if (strcmp (space->name, name) == 0)
            return space;
    return NULL;
}

space_t *space_make (engine_t *self, const char *name)
{
    space_t *space = space_find (self, name);
    if (space != NULL)
        return space;
    space = memory_zero (1, sizeof (*space));
    space->hash = secrets_hash (&self->secrets, name, strlen (name));
    space->no = ++self->spaces_made;
    strncpy (space->name, name, TMQ_NAME_LENGTH_MAX);
    list_init (&space->blocks);
    list_init (&space->wide);
    list_init (&space->resting);
    map_insert (&self->spaces, space->hash, space);
    return space;
}

/* One that has a history stays: its sequence must go on. */
void space_release (engine_t *self, space_t *space)
{
    if (space->links > 0 || space->queues > 0 || space->workers > 0 || space->last_seq > 0)
        return;
    map_remove (&self->spaces, space->hash, space);
    bytes_free (&space->open);
    free (space);
}

queue_t *queue_make (engine_t *self, space_t *space, const char *name)
{
    uint8_t key[sizeof (space->no) + TMQ_NAME_LENGTH_MAX];
    size_t length = strnlen (name, TMQ_NAME_LENGTH_MAX);
    memcpy (key, &space->no, sizeof (space->no));
    memcpy (key + sizeof (space->no), name, length);
    uint32_t hash = secrets_hash (&self->secrets, key, sizeof (space->no) + length);
    size_t cursor = MAP_START;
    queue_t *queue = NULL;
    while ((queue = map_next (&self->queues, hash, &cursor)) != NULL)
        if (queue->space == space && strcmp (queue->name, name) == 0)
            return queue;
    queue = memory_alloc (sizeof (*queue));
    queue_init (queue, space, name);
    queue->hash = hash;
    space->queues++;
    map_insert (&self->queues, hash, queue);
    return queue;
}

void queue_release (engine_t *self, queue_t *queue)
{
    if (queue->tasks > 0 || queue->seats > 0)
        return;
    list_remove (&queue->dispatch);
    list_remove (&queue->fetch);
    map_remove (&self->queues, queue->hash, queue);
    queue->space->queues--;
    queue_clear (queue);
    free (queue);
}

/* Requests. */

typedef struct handler {
    const char *name;
    void (*handle) (call_t *call);
    bool changes; /* refused once the broker is stopping */
} handler_t;

/* Every request that a link may make, by its number in taskmq.proto. hello stands apart: it is what
 * makes the link. */
#define OP(NAME) TASKMQ__REQUEST__OP_##NAME
static const handler_t HANDLERS[] = {
    [OP (GOODBYE)] = {"goodbye", on_goodbye, false},
    [OP (HEARTBEAT)] = {"heartbeat", on_heartbeat, false},
    [OP (SUBMIT)] = {"submit", on_submit, true},
    [OP (GET)] = {"get", on_get, false},
    [OP (RESOLVE)] = {"resolve", on_resolve, false},
    [OP (LIST)] = {"list", on_list, false},
    [OP (COUNT)] = {"count", on_count, false},
    [OP (TASK_EVENTS)] = {"task_events", on_task_events, false},
    [OP (RESULT)] = {"result", on_result, false},
    [OP (PAYLOAD)] = {"payload", on_payload, false},
    [OP (CANCEL)] = {"cancel", on_cancel, true},
    [OP (WAIT)] = {"wait", on_wait, false},
    [OP (STATS)] = {"stats", on_stats, false},
    [OP (SUBSCRIBE)] = {"subscribe", on_subscribe, false},
    [OP (CREDIT)] = {"credit", on_credit, false},
    [OP (UNSUBSCRIBE)] = {"unsubscribe", on_unsubscribe, false},
    [OP (REGISTER)] = {"register", on_register, true},
    [OP (WORKER_CREDIT)] = {"worker_credit", on_worker_credit, false},
    [OP (STARTED)] = {"started", on_started, true},
    [OP (RENEW)] = {"renew", on_renew, false},
    [OP (PUSH)] = {"push", on_push, true},
    [OP (CANCEL_ACK)] = {"cancel_ack", on_cancel_ack, true},
    [OP (COMPLETE)] = {"complete", on_complete, true},
    [OP (FAIL)] = {"fail", on_fail, true},
    [OP (RELEASE)] = {"release", on_release, true},
    [OP (LEAVE)] = {"leave", on_leave, true},
};

static const handler_t *handler_of (const Taskmq__Request *request)
{
    size_t op = (size_t) request->op_case;
    if (op >= sizeof (HANDLERS) / sizeof (HANDLERS[0]) || HANDLERS[op].handle == NULL)
        return NULL;
    return &HANDLERS[op];
}

static void handle (call_t *call, bool linked)
{
    engine_t *self = call->engine;
    self->counts.requests++;
    if (call->request->op_case == OP (HELLO)) {
        on_hello (call);
        return;
    }
    if (!linked) {
        self->counts.no_links++;
        reply_code_at_once (call, TMQ_NO_LINK, NULL, 0);
        return;
    }
    const handler_t *handler = handler_of (call->request);
    if (handler == NULL)
        reply_code_at_once (call, TMQ_UNSUPPORTED, NULL, 0);
    else if (handler->changes && self->stopping)
        reply_code_at_once (call, TMQ_STOPPING, NULL, 0);
    else
        handler->handle (call);
}

/* Bytes of the second frame that the request mentions; only asked when no verdicts say it. */
static size_t body_bytes_of (const Taskmq__Request *request)
{
    size_t bytes = 0;
    switch (request->op_case) {
    case OP (SUBMIT):
        for (size_t i = 0; i < request->submit->n_tasks; i++)
            bytes += validate_payload_bytes (request->submit->tasks[i]);
        return bytes;
    case OP (COMPLETE): return request->complete->result_bytes;
    case OP (FAIL): return request->fail->result_bytes;
    default: return 0;
    }
}
#undef OP

void engine_message (engine_t *self, const message_t *message, now_t now)
{
    engine_clock (self, now);
    link_t *link = link_make (self, message->peer);
    bool same = link->established && message->identity != NULL &&
                strcmp (name_text (link->identity), message->identity) == 0;
    if (link->established && !same) {
        link_close (self, link);
        link = link_make (self, message->peer);
    }
    link_heard (self, link);
    const uint8_t *body = message->body == NULL ? buf_bytes (NULL) : message->body;
    bool linked = link_token_is (link, &message->envelope->token);
    size_t offset = 0;
    for (size_t i = 0; i < message->envelope->n_requests; i++) {
        const Taskmq__Request *request = message->envelope->requests[i];
        const request_verdict_t *verdict =
            message->verdicts == NULL ? NULL : &message->verdicts->requests[i];
        if (verdict != NULL)
            offset = verdict->body_offset;
        call_t call = {self,
                       link,
                       message->identity,
                       request,
                       verdict == NULL ? NULL : verdict->items,
                       body + offset,
                       message->body_bytes - offset};
        if (verdict == NULL)
            offset += body_bytes_of (request);
        if (verdict != NULL && verdict->verdict.code != TMQ_OK)
            continue;
        handle (&call, linked);
        linked = linked && request->op_case != TASKMQ__REQUEST__OP_HELLO;
        link = call.link;
        if (link->dead) { /* it said goodbye: what follows has no link */
            link = link_make (self, message->peer);
            linked = false;
        }
    }
    link_free_if_idle (self, link);
    dispatch_run (self);
}

void engine_refuse (engine_t *self, peer_t peer, uint64_t request, tmq_code_t code,
                    const char *text)
{
    link_t *link = link_make (self, peer);
    reply_to (self, link, request, code, text, 0);
}

/* Deadlines. */

static void task_alarm (engine_t *self, task_t *task)
{
    if (task->leased) {
        if (task->detail->lease_due <= self->mono)
            change_lose (self, task, "the lease ended");
        else
            wheel_arm (&self->fine, &task->alarm, task->detail->lease_due);
        return;
    }
    assert (task->status == TMQ_STATUS_QUEUED);
    if (task_is_expired (self, task)) {
        change_expire (self, task);
    } else if (task->scheduled) {
        change_unplace (self, task);
        task->due = true;
        change_place (self, task);
    } else {
        wheel_arm (&self->coarse, &task->alarm, task->expires_at);
    }
}

static void fire (engine_t *self, alarm_t *alarm)
{
    switch (alarm->kind) {
    case ALARM_TASK: task_alarm (self, LIST_ITEM (alarm, task_t, alarm)); break;
    case ALARM_WAIT: wait_drop (self, LIST_ITEM (alarm, wait_t, alarm)); break;
    case ALARM_LINK: link_alarm (self, LIST_ITEM (alarm, link_t, alarm)); break;
    case ALARM_STREAM: stream_alarm (self, LIST_ITEM (alarm, subscription_t, alarm)); break;
    default: assert (false && "an alarm of no kind");
    }
}

static void turn (engine_t *self, wheel_t *wheel, int64_t now)
{
    node_t fired;
    list_init (&fired);
    wheel_turn (wheel, now, &fired);
    for (node_t *node = list_pop_front (&fired); node != NULL; node = list_pop_front (&fired))
        fire (self, LIST_ITEM (node, alarm_t, node));
}

/* A broker that stood still heard nobody: that is nobody's fault (A20). */
static void forgive_pause (engine_t *self, int64_t paused_ms)
{
    size_t cursor = 0;
    for (worker_t *worker = map_each (&self->workers, &cursor); worker != NULL;
         worker = map_each (&self->workers, &cursor))
        for (node_t *node = worker->leases.next; node != &worker->leases; node = node->next)
            LIST_ITEM (node, detail_t, held)->lease_due += paused_ms;
    cursor = 0;
    for (link_t *link = map_each (&self->links, &cursor); link != NULL;
         link = map_each (&self->links, &cursor)) {
        link->heard += paused_ms;
        if (link->gone_due != 0)
            link->gone_due += paused_ms;
    }
}

/* When the earliest expiry falls due on the monotonic clock. */
static int64_t next_expiry (engine_t *self)
{
    int64_t next = wheel_next (&self->coarse);
    if (next == INT64_MAX)
        return next;
    next = self->mono + (next - engine_expiry_ms (self));
    return self->leap_ms > 0 && self->hold_until < next ? self->hold_until : next;
}

int64_t engine_tick (engine_t *self, now_t now, int64_t paused_ms)
{
    if (paused_ms > 0)
        forgive_pause (self, paused_ms);
    engine_clock (self, now);
    stream_notices (self);
    lookup_clear (self);
    batch_settle (self);
    turn (self, &self->fine, self->mono);
    turn (self, &self->coarse, engine_expiry_ms (self));
    batch_write_lazy (self);
    dispatch_run (self);
    int64_t next = wheel_next (&self->fine);
    int64_t expiry = next_expiry (self);
    int64_t lazy = batch_lazy_due (self);
    if (expiry < next)
        next = expiry;
    return lazy < next ? lazy : next;
}
