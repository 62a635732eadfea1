/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Payloads of queued tasks that only the tables have. */
#include "core/match/fetch.h"
#include "core/tasks/change.h"
#include "core/tasks/index.h"
#include "core/tasks/settle.h"
#include "core/tasks/space.h"

enum { FETCH_TASKS_MAX = 256 }; /* payloads looked up for one queue in one round */

void fetch_later (match_t *self, queue_t *queue)
{
    if (!node_is_linked (&queue->fetch))
        list_push_back (&self->fetch, &queue->fetch);
}

void fetch_want (match_t *self, key_list_t *keys)
{
    task_t *cold[FETCH_TASKS_MAX];
    for (node_t *node = self->fetch.next; node != &self->fetch; node = node->next) {
        queue_t *queue = LIST_ITEM (node, queue_t, fetch);
        size_t count = queue_peek_cold (queue, cold, FETCH_TASKS_MAX);
        self->base->counts.lookups += count;
        for (size_t i = 0; i < count; i++) {
            lookup_t *key = want (keys, LOOKUP_ID, queue->space);
            key->id = cold[i]->id;
            key->bodies = true;
            cold[i]->payload_wanted = true;
        }
    }
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
    }
    for (node_t *node = list_pop_front (&self->fetch); node != NULL;
         node = list_pop_front (&self->fetch))
        queue_changed (self->tasks, LIST_ITEM (node, queue_t, fetch));
}
