/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who waits for whom. */
#include "core/tasks/edges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/extras.h"
#include "core/tasks/index.h"

void edges_init (edges_t *self)
{
    *self = (edges_t){0};
    list_init (&self->ended);
    list_init (&self->unknown);
}

void edges_clear (tasks_t *self)
{
    size_t cursor = 0;
    for (awaited_t *awaited = map_each (&self->edges.awaited, &cursor); awaited != NULL;
         awaited = map_each (&self->edges.awaited, &cursor)) {
        for (node_t *node = list_pop_front (&awaited->edges); node != NULL;
             node = list_pop_front (&awaited->edges)) {
            struct blocked *blocked = LIST_ITEM (node, edge_t, node)->blocked;
            if (--blocked->open == 0)
                free (blocked);
        }
        free (awaited);
    }
    map_free (&self->edges.awaited);
    edges_init (&self->edges);
}

bool edges_fit (const tasks_t *self, size_t more)
{
    return self->edges.count + more <= self->base->config.dependencies_max;
}

/* Those who are awaited. */

awaited_t *edges_find (const tasks_t *self, const space_t *space, const uint8_t *id)
{
    if (self->edges.awaited.count == 0)
        return NULL;
    uint32_t hash = task_hash (self, space, id);
    size_t cursor = MAP_START;
    for (awaited_t *awaited = map_next (&self->edges.awaited, hash, &cursor); awaited != NULL;
         awaited = map_next (&self->edges.awaited, hash, &cursor))
        if (awaited->space == space && memcmp (awaited->id.bytes, id, sizeof (tmq_id_t)) == 0)
            return awaited;
    return NULL;
}

static bool lives (const task_t *task)
{
    return task != NULL && !task_is_terminal (task);
}

/* One of whom memory does not say whether it lives is looked up. */
static awaited_t *await (tasks_t *self, space_t *space, const uint8_t *id)
{
    awaited_t *awaited = edges_find (self, space, id);
    task_t *task = task_find (self, space, id);
    if (awaited == NULL) {
        awaited = memory_zero (1, sizeof (*awaited));
        list_init (&awaited->edges);
        awaited->space = space;
        awaited->hash = task_hash (self, space, id);
        memcpy (awaited->id.bytes, id, sizeof (awaited->id));
        map_insert (&self->edges.awaited, awaited->hash, awaited);
        if (!lives (task))
            list_push_back (&self->edges.unknown, &awaited->node);
    }
    if (lives (task))
        awaited_live (awaited, task);
    return awaited;
}

void awaited_end (tasks_t *self, awaited_t *awaited, tmq_status_t status)
{
    list_remove (&awaited->node);
    awaited->ended = status;
    list_push_back (&self->edges.ended, &awaited->node);
}

void awaited_live (awaited_t *awaited, task_t *task)
{
    list_remove (&awaited->node);
    awaited->ended = TMQ_STATUS_NONE;
    task->awaited = true;
}

bool awaited_release (tasks_t *self, awaited_t *awaited)
{
    if (!list_is_empty (&awaited->edges))
        return false;
    task_t *task = task_find (self, awaited->space, awaited->id.bytes);
    if (task != NULL)
        task->awaited = false;
    list_remove (&awaited->node);
    map_remove (&self->edges.awaited, awaited->hash, awaited);
    free (awaited);
    return true;
}

/* Those who wait. */

static size_t open_count (const Taskmq__Extra *extra)
{
    size_t open = 0;
    for (size_t i = 0; i < extra->n_after; i++)
        open += extra->after[i]->status == TMQ_STATUS_NONE;
    return open;
}

static void open_edge (tasks_t *self, struct blocked *blocked, Taskmq__Dependency *entry)
{
    edge_t *edge = &blocked->edges[blocked->count++];
    edge->awaited = await (self, blocked->task->queue->space, entry->task_id.data);
    edge->blocked = blocked;
    edge->entry = entry;
    list_push_back (&edge->awaited->edges, &edge->node);
    blocked->open++;
    self->edges.count++;
}

bool edges_hold (tasks_t *self, task_t *task)
{
    const Taskmq__Extra *extra = extras_of (task);
    size_t open = open_count (extra);
    if (open == 0)
        return false;
    assert (task->extra->blocked == NULL);
    struct blocked *blocked = memory_zero (1, sizeof (*blocked) + open * sizeof (edge_t));
    blocked->task = task;
    for (size_t i = 0; i < extra->n_after; i++)
        if (extra->after[i]->status == TMQ_STATUS_NONE)
            open_edge (self, blocked, extra->after[i]);
    task->extra->blocked = blocked;
    task->blocked = true;
    task->queue->blocked++;
    return true;
}

void edge_close (tasks_t *self, edge_t *edge)
{
    list_unlink (&edge->node);
    edge->blocked->open--;
    self->edges.count--;
}

void edges_drop (tasks_t *self, task_t *task)
{
    struct blocked *blocked = task->extra->blocked;
    for (size_t i = 0; i < blocked->count; i++) {
        edge_t *edge = &blocked->edges[i];
        if (!node_is_linked (&edge->node))
            continue;
        edge_close (self, edge);
        /* One whose debt is being paid goes when that is done (dependents.c). */
        if (edge->awaited->ended == TMQ_STATUS_NONE)
            awaited_release (self, edge->awaited);
    }
    free (blocked);
    task->extra->blocked = NULL;
    task->blocked = false;
    task->queue->blocked--;
}
