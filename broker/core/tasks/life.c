/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The room's life. */
#include <stdlib.h>

#include "core/tasks/account.h"
#include "core/tasks/blobs.h"
#include "core/tasks/debts.h"
#include "core/tasks/edges.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/makers.h"
#include "core/tasks/members.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/question.h"
#include "core/tasks/schedule.h"
#include "core/tasks/session.h"
#include "core/tasks/settings.h"
#include "core/tasks/space.h"
#include "core/tasks/tasks.h"

static void clear_tasks (tasks_t *self)
{
    size_t cursor = 0;
    for (task_t *task = map_each (&self->by_id, &cursor); task != NULL;
         task = map_each (&self->by_id, &cursor))
        task_clear (&self->slab, task);
    for (node_t *node = list_pop_front (&self->removed); node != NULL;
         node = list_pop_front (&self->removed))
        task_clear (&self->slab, LIST_ITEM (node, task_t, place));
    map_free (&self->by_id);
    map_free (&self->by_key);
    slab_free (&self->slab);
}

void tasks_init (tasks_t *self, base_t *base, history_t *history)
{
    *self = (tasks_t){.base = base, .history = history, .open = {.no = 1}};
    slab_init (&self->slab);
    list_init (&self->idle_spaces);
    list_init (&self->makers);
    list_init (&self->accounts);
    list_init (&self->rows_unwritten);
    list_init (&self->debts);
    blobs_init (self);
    edges_init (&self->edges);
    list_init (&self->removed);
    list_init (&self->sessions_gone);
    list_init (&self->instants.waiting);
    tasks_reset (self);
}

void tasks_reset (tasks_t *self)
{
    journal_clear (self);
    edges_clear (self);
    kept_clear (self);
    debts_clear (self);
    blobs_clear (self);
    askings_clear (self);
    clear_tasks (self);
    lanes_reset (self);
    settings_clear (self);
    schedules_clear (self);
    members_clear (self);
    sessions_clear (self);
    spaces_clear (self);
    makers_clear (self);
    accounts_reset (self);
    list_init (&self->delayed);
    list_init (&self->delays_to_judge);
    list_init (&self->lazy);
    list_init (&self->walks);
    list_init (&self->changed_queues);
    list_init (&self->moving_queues);
    list_init (&self->lanes_to_weigh);
    list_init (&self->changed_workers);
    self->facts_count = 0;
    list_init (&self->noticed);
    list_init (&self->flowed);
    self->ready = 0;
    self->texts_bytes = 0;
    self->order_bytes = 0;
    self->leases = 0;
    self->ended = 0;
}

void tasks_free (tasks_t *self)
{
    tasks_reset (self);
    fifo_free (&self->closed);
    fifo_free (&self->taken);
    fifo_free (&self->attempt_notes);
    fifo_free (&self->removal_notes);
    absent_free (&self->absent);
    free (self->open.tasks);
    free (self->facts);
}
