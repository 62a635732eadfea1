/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/reads/ends.h"

#include <string.h>

#include "core/reads/find.h"
#include "core/reads/loaded.h"
#include "core/reads/want.h"
#include "core/tasks/dependents.h"
#include "core/tasks/index.h"
#include "types.h"

void ends_want (const reads_t *self, key_list_t *keys)
{
    const tasks_t *tasks = self->tasks;
    const node_t *unknown = &tasks->edges.unknown;
    size_t *left = &self->base->round.lookups;
    for (const node_t *node = unknown->next; node != unknown && *left > 0; node = node->next) {
        awaited_t *awaited = LIST_ITEM (node, awaited_t, node);
        lookup_t *key = want (keys, LOOKUP_ID, awaited->space);
        key->id = awaited->id;
        awaited->wanted = true;
        self->base->counts.lookups++;
        budget_take (left, 1);
    }
}

/* One of which nothing is left did not complete, as far as anybody can say. */
static tmq_status_t end_of (const reads_t *self, const awaited_t *awaited)
{
    const task_t *task = task_find (self->tasks, awaited->space, awaited->id.bytes);
    if (task != NULL)
        return task->status;
    const lookup_t *key = loaded_id (self, awaited->space, awaited->id.bytes, LOOKUP_ID, 0);
    if (key == NULL || key->record == NULL || !status_is_terminal (key->record->status))
        return TMQ_STATUS_FAILED;
    return key->record->status;
}

void ends_unread (reads_t *self)
{
    const node_t *unknown = &self->tasks->edges.unknown;
    for (const node_t *node = unknown->next; node != unknown; node = node->next) {
        awaited_t *awaited = LIST_ITEM (node, awaited_t, node);
        if (!awaited->wanted)
            return; /* nor are those behind it */
        awaited->wanted = false;
    }
}

void ends_take (reads_t *self)
{
    const node_t *unknown = &self->tasks->edges.unknown;
    for (node_t *node = unknown->next, *next = node->next; node != unknown;
         node = next, next = node->next) {
        awaited_t *awaited = LIST_ITEM (node, awaited_t, node);
        if (!awaited->wanted)
            return; /* nor are those behind it */
        dependents_known (self->tasks, awaited, end_of (self, awaited));
    }
}
