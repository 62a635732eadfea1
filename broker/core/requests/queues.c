/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Queues: what is set for them, and how they stand. */
#include <stdio.h>
#include <string.h>

#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/quota.h"
#include "core/requests/room.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"

/* Numbers of the fields of QueueInfo and QueuePage in taskmq.proto. */
enum {
    INFO_QUEUE = 1,
    INFO_SETTINGS,
    INFO_READY,
    INFO_SCHEDULED,
    INFO_WORKING,
    INFO_INPUT_REQUIRED,
    INFO_QUEUED_BYTES,
    INFO_RUNNING,
    INFO_WORKERS,
    INFO_CLOSED,
    INFO_NEEDS_SETS,
    INFO_BLOCKED,
    INFO_SUBMITTED,
    INFO_COMPLETED,
    INFO_FAILED,
    INFO_ATTEMPTS_FAILED,
    INFO_OLDEST_READY_MS,
    PAGE_QUEUES = 1,
    PAGE_NEXT
};

enum { QUEUE_RIGHTS = RIGHT_SUBMIT | RIGHT_READ | RIGHT_WORK | RIGHT_OBSERVE | RIGHT_BEHALF };

static unsigned closed_by (const queue_t *queue)
{
    static const struct {
        gate_why_t why;
        tmq_queue_closed_t closed;
    } WHY[] = {
#define X(number, NAME, text) {GATE_##NAME, TMQ_QUEUE_CLOSED_##NAME},
        TMQ_QUEUE_CLOSED_MAP (X)
#undef X
    };
    unsigned closed = 0;
    for (size_t i = 0; i < sizeof (WHY) / sizeof (WHY[0]); i++)
        if (gate_is_closed (&queue->gate, WHY[i].why))
            closed |= WHY[i].closed;
    return closed;
}

static void pack_queue (bytes_t *out, uint32_t field, queue_t *queue, int64_t wall_ms)
{
    bytes_mark_t mark = bytes_open (out, field);
    bytes_append_string (out, INFO_QUEUE, queue->name);
    if (queue->settings != NULL) {
        Taskmq__QueueSettings settings;
        settings_message (queue->settings, &settings);
        bytes_append_message (out, INFO_SETTINGS, &settings.base);
    }
    bytes_append_uint (out, INFO_READY, queue->ready + queue->held);
    bytes_append_uint (out, INFO_SCHEDULED, queue->scheduled);
    bytes_append_uint (out, INFO_WORKING, queue->working);
    bytes_append_uint (out, INFO_INPUT_REQUIRED, queue->input_required);
    bytes_append_uint (out, INFO_QUEUED_BYTES, queue->queued_bytes);
    bytes_append_uint (out, INFO_RUNNING, queue->leases);
    bytes_append_uint (out, INFO_WORKERS, queue->seats);
    bytes_append_uint (out, INFO_CLOSED, closed_by (queue));
    bytes_append_uint (out, INFO_NEEDS_SETS, needs_count (queue));
    bytes_append_uint (out, INFO_BLOCKED, queue->blocked);
    bytes_append_uint (out, INFO_SUBMITTED, queue->totals.submitted);
    bytes_append_uint (out, INFO_COMPLETED, queue->totals.completed);
    bytes_append_uint (out, INFO_FAILED, queue->totals.failed);
    bytes_append_uint (out, INFO_ATTEMPTS_FAILED, queue->totals.attempts_failed);
    bytes_append_uint (out, INFO_OLDEST_READY_MS, lanes_oldest_ms (queue, wall_ms));
    bytes_close (out, mark);
}

/* One that nobody needs any more is shown as it was last: without anything. */
static void answer_queue (call_t *call, queue_t *queue, const char *name)
{
    requests_t *self = call->requests;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    if (queue != NULL) {
        pack_queue (out, TASKMQ__REPLY__BODY_QUEUE, queue, self->base->clocks.wall_ms);
    } else {
        bytes_mark_t info = bytes_open (out, TASKMQ__REPLY__BODY_QUEUE);
        bytes_append_string (out, INFO_QUEUE, name);
        bytes_close (out, info);
    }
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

void on_queue_show (call_t *call)
{
    const char *name = call->request->queue_show->queue;
    queue_t *queue = queue_find (call->requests->tasks, call->link->space, name);
    if (queue == NULL || !access_queue (&call->link->access, name, QUEUE_RIGHTS))
        reply_code (call, TMQ_NOT_FOUND,
                    "no such queue: it has no tasks, no workers and no settings");
    else
        answer_queue (call, queue, name);
}

/* List. */

/* A cursor is the serial of the last queue of its page, and its name. */
typedef struct place {
    uint64_t serial;
    char name[TMQ_NAME_LENGTH_MAX + 1];
} place_t;

static bool place_read (place_t *out, const ProtobufCBinaryData *cursor)
{
    *out = (place_t){0};
    if (cursor->len <= sizeof (out->serial) ||
        cursor->len > sizeof (out->serial) + TMQ_NAME_LENGTH_MAX)
        return cursor->len == 0;
    memcpy (&out->serial, cursor->data, sizeof (out->serial));
    memcpy (out->name, cursor->data + sizeof (out->serial), cursor->len - sizeof (out->serial));
    return true;
}

static void place_pack (bytes_t *out, uint32_t field, const queue_t *queue)
{
    uint8_t cursor[sizeof (queue->serial) + TMQ_NAME_LENGTH_MAX];
    size_t length = strlen (queue->name);
    memcpy (cursor, &queue->serial, sizeof (queue->serial));
    memcpy (cursor + sizeof (queue->serial), queue->name, length);
    bytes_append_blob (out, field, cursor, sizeof (queue->serial) + length);
}

/* The first queue behind the place. If the one that stood there is gone, it is looked for by its
 * number: the list has the order in which they were made. */
static const node_t *node_behind (const tasks_t *tasks, const space_t *space, const place_t *place)
{
    const queue_t *last = place->serial == 0 ? NULL : queue_find (tasks, space, place->name);
    if (last != NULL && last->serial == place->serial)
        return last->of_space.next;
    const node_t *node = space->queue_list.next;
    while (node != &space->queue_list &&
           LIST_ITEM (node, const queue_t, of_space)->serial <= place->serial)
        node = node->next;
    return node;
}

void on_queue_list (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__QueueList *request = call->request->queue_list;
    const space_t *space = call->link->space;
    place_t place;
    if (!place_read (&place, &request->cursor)) {
        reply_code (call, TMQ_BAD_CURSOR, NULL);
        return;
    }
    if (quota_answered (call, quota_read (self, call->link)))
        return;
    size_t left = request->limit == 0 ? TMQ_QUEUE_LIST_DEFAULT : request->limit;
    const queue_t *last = NULL;
    bytes_mark_t mark;
    const node_t *node = node_behind (self->tasks, space, &place);
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_QUEUE_PAGE);
    size_t *looks = &self->base->round.queues;
    bool looked = false;
    for (; node != &space->queue_list && left > 0 && (*looks > 0 || !looked) &&
           out->length <= ENVELOPE_FILL_BYTES;
         node = node->next) {
        queue_t *queue = LIST_ITEM (node, queue_t, of_space);
        last = queue;
        looked = true;
        budget_take (looks, 1);
        if (!access_queue (&call->link->access, queue->name, QUEUE_RIGHTS))
            continue;
        pack_queue (out, PAGE_QUEUES, queue, self->base->clocks.wall_ms);
        left--;
    }
    if (node != &space->queue_list && last != NULL)
        place_pack (out, PAGE_NEXT, last);
    bytes_close (out, page);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

/* Changes. */

/* The settings that are to be changed; NULL: it was answered. done: the same request has changed
 * them already. */
static settings_t *settings_for (call_t *call, const char *name, bool *done)
{
    requests_t *self = call->requests;
    space_t *space = call->link->space;
    *done = false;
    if (!access_queue (&call->link->access, name, RIGHT_ADMIN)) {
        deny (call);
        reply_code (call, TMQ_DENIED, "only an admin or operator may change a queue");
        return NULL;
    }
    queue_t *queue = queue_find (self->tasks, space, name);
    if (queue != NULL && queue->settings != NULL) {
        const uint8_t *id = queue->settings->request_id;
        *done = memcmp (id, call->request->request_id.data, sizeof (tmq_id_t)) == 0;
        return queue->settings;
    }
    if (space->settings >= TMQ_QUEUES_SET_MAX) {
        reply_limit (call, "queues with settings, of a namespace", TMQ_QUEUES_SET_MAX);
        return NULL;
    }
    if (self->tasks->settings >= SETTINGS_ALL_MAX) {
        reply_limit (call, "queues with settings, of the broker", SETTINGS_ALL_MAX);
        return NULL;
    }
    return settings_make (self->tasks, queue_make (self->tasks, space, name));
}

/* An event of the queue, for who reads its tasks. */
static void tell (call_t *call, const char *name, const char *what)
{
    event_t event = {.kind = TMQ_EVENT_CHANGED,
                     .subject = TMQ_SUBJECT_QUEUE,
                     .name = name,
                     .queue = name,
                     .session = "",
                     .worker = "",
                     .actor = name_text (call->link->identity),
                     .message = what,
                     .owner = ""};
    history_add (call->requests->history, &call->link->space->log, &event);
}

/* what: of the change, for those who watch. */
static void changed (call_t *call, settings_t *settings, const char *name, const char *what)
{
    tasks_t *tasks = call->requests->tasks;
    space_t *space = call->link->space;
    tell (call, name, what);
    memcpy (settings->request_id, call->request->request_id.data, sizeof (settings->request_id));
    settings_put (tasks, settings);
    deeds_queue (call, name);
    answer_queue (call, queue_find (tasks, space, name), name);
}

/* What is ready goes to other lanes, and not all of it is there yet since an earlier change. */
static bool must_wait (call_t *call, const queue_t *queue)
{
    const Taskmq__QueueSet *request = call->request->queue_set;
    bool changes = false;
    for (size_t i = 0; i < request->n_fields; i++)
        changes = changes || (request->fields[i] == TMQ_QUEUE_FIELD_WEIGHT_OF &&
                              request->settings->weight_of != (uint32_t) queue->weight_of);
    if (!changes || !lanes_are_moving (queue))
        return false;
    reply_code_at_once (call, TMQ_OVERLOADED,
                        "weight_of: tasks are still on their way since it changed last",
                        OVERLOAD_RETRY_MS);
    return true;
}

void on_queue_set (call_t *call)
{
    const Taskmq__QueueSet *request = call->request->queue_set;
    const queue_t *queue = queue_find (call->requests->tasks, call->link->space, request->queue);
    bool done;
    /* What is set already may be changed on a full disk, and every queue be paused: that helps. */
    if ((queue == NULL || queue->settings == NULL) && room_refused_at_once (call))
        return;
    settings_t *settings = settings_for (call, request->queue, &done);
    if (settings == NULL)
        return;
    if (done) {
        answer_queue (call, settings->queue, request->queue);
        return;
    }
    if (must_wait (call, settings->queue))
        return;
    const char *wrong = settings_take (call->requests->tasks, settings, request->settings,
                                       request->fields, request->n_fields);
    if (wrong == NULL) {
        changed (call, settings, request->queue, "");
        return;
    }
    settings_drop_empty (call->requests->tasks, settings);
    reply_code (call, TMQ_INVALID, wrong);
}

void on_queue_pause (call_t *call)
{
    const Taskmq__QueuePause *request = call->request->queue_pause;
    bool done;
    settings_t *settings = settings_for (call, request->queue, &done);
    if (settings == NULL)
        return;
    if (done)
        answer_queue (call, settings->queue, request->queue);
    else {
        settings_pause (call->requests->tasks, settings, name_text (call->link->identity),
                        request->why);
        changed (call, settings, request->queue, "paused");
    }
}

void on_queue_resume (call_t *call)
{
    const char *name = call->request->queue_resume->queue;
    bool done;
    settings_t *settings = settings_for (call, name, &done);
    if (settings == NULL)
        return;
    if (done || !settings->paused) { /* that is no mistake */
        answer_queue (call, settings->queue, name);
        settings_drop_empty (call->requests->tasks, settings);
    } else {
        settings_resume (settings);
        changed (call, settings, name, "resumed");
    }
}
