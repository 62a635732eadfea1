/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Payloads of queued tasks that only the tables have. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/match/fetch.h"
#include "core/tasks/change.h"
#include "core/tasks/index.h"
#include "core/tasks/settle.h"
#include "core/tasks/space.h"

enum { FETCH_TASKS_MAX = 256 }; /* payloads looked up for one queue in one round */

/* A payload that was read for a task that waits. The place of a task is never given back to the
 * system, so the number tells whether it is still the same. */
typedef struct fetched {
    task_t *task;
    int64_t number;
    size_t bytes;
} fetched_t;

void fetch_later (match_t *self, queue_t *queue)
{
    if (!node_is_linked (&queue->fetch))
        list_push_back (&self->fetch, &queue->fetch);
}

/* So many tasks the workers that wait at the queue can take. */
static size_t room_at (const queue_t *queue)
{
    size_t room = 0;
    for (const node_t *node = queue->waiting.next;
         node != &queue->waiting && room < FETCH_TASKS_MAX; node = node->next) {
        const worker_t *worker = LIST_ITEM (node, const seat_t, node)->worker;
        room += worker->capacity - worker->held;
    }
    return room < FETCH_TASKS_MAX ? room : FETCH_TASKS_MAX;
}

static void fetch_for (match_t *self, queue_t *queue, size_t *bytes_left, key_list_t *keys)
{
    task_t *cold[FETCH_TASKS_MAX];
    budget_t *round = &self->base->round;
    size_t room = room_at (queue);
    if (lanes_are_split (queue) && room < ORDERS_MAX)
        room = ORDERS_MAX;
    size_t count = lanes_peek_cold (self->tasks, queue, cold, room);
    for (size_t i = 0; i < count && round->lookups > 0 && *bytes_left > 0; i++) {
        lookup_t *key = want (keys, LOOKUP_ID, queue->space);
        key->id = cold[i]->id;
        key->bodies = true;
        cold[i]->payload_wanted = true;
        self->base->counts.lookups++;
        budget_take (&round->lookups, 1);
        budget_take (bytes_left, cold[i]->payload_bytes);
    }
}

void fetch_want (match_t *self, key_list_t *keys)
{
    size_t bytes_left = self->base->config.fetched_bytes_max / 2;
    for (node_t *node = self->fetch.next;
         node != &self->fetch && bytes_left > 0 && self->base->round.lookups > 0; node = node->next)
        fetch_for (self, LIST_ITEM (node, queue_t, fetch), &bytes_left, keys);
}

/* What was read ahead longest ago, and is still not assigned, is read again when its turn comes. */
static void drop_oldest (match_t *self)
{
    fetched_t *oldest = fifo_pop (&self->fetched);
    task_t *task = oldest->task;
    self->fetched_bytes -= oldest->bytes;
    if (task->number == oldest->number && task->ready)
        settle_drop_payload (self->tasks, task);
    free (oldest);
}

static void remember (match_t *self, task_t *task)
{
    fetched_t *fetched = memory_alloc (sizeof (*fetched));
    *fetched = (fetched_t){task, task->number, task->payload_bytes};
    fifo_push (&self->fetched, fetched);
    self->fetched_bytes += fetched->bytes;
}

void fetch_take (match_t *self)
{
    for (size_t i = 0; i < self->reads->loaded_count; i++) {
        const lookup_t *key = &self->reads->loaded[i];
        if (key->kind != LOOKUP_ID || !key->bodies)
            continue;
        task_t *task = task_find (self->tasks, space_find (self->tasks, key->ns), key->id.bytes);
        if (task == NULL || !task->payload_wanted)
            continue;
        buf_t *payload = key->record == NULL ? NULL : key->record->payload;
        if (buf_length (payload) == task->payload_bytes)
            settle_give_payload (self->tasks, task, payload);
        else
            change_damaged (self->tasks, task);
        remember (self, task);
    }
    while (self->fetched_bytes > self->base->config.fetched_bytes_max)
        drop_oldest (self);
    for (node_t *node = list_pop_front (&self->fetch); node != NULL;
         node = list_pop_front (&self->fetch))
        queue_changed (self->tasks, LIST_ITEM (node, queue_t, fetch));
}

void fetch_unread (match_t *self, const key_list_t *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        const lookup_t *key = &keys->keys[i];
        task_t *task =
            key->kind != LOOKUP_ID || !key->bodies
                ? NULL
                : task_find (self->tasks, space_find (self->tasks, key->ns), key->id.bytes);
        if (task != NULL)
            task->payload_wanted = false;
    }
}

void fetch_clear (match_t *self)
{
    for (fetched_t *fetched = fifo_pop (&self->fetched); fetched != NULL;
         fetched = fifo_pop (&self->fetched))
        free (fetched);
    fifo_free (&self->fetched);
    self->fetched_bytes = 0;
    list_init (&self->fetch);
}
