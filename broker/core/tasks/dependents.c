/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/dependents.h"

#include <stdio.h>
#include <string.h>

#include "core/tasks/change.h"
#include "core/tasks/extras.h"
#include "core/tasks/failure.h"
#include "core/tasks/index.h"
#include "core/tasks/journal.h"
#include "ids.h"
#include "types.h"

enum { TURN = 64 }; /* dependents of a task that are told before another task's have their turn */

/* One dependent. */

static bool decides (const tasks_t *self, const Taskmq__Dependency *entry)
{
    bool failed = entry->status != TMQ_STATUS_NONE && entry->status != TMQ_STATUS_COMPLETED;
    return failed && entry->policy == TMQ_AFTER_FAIL &&
           self->base->config.planted_bug != ENGINE_BUG_FAILURE_UNTOLD;
}

static void fail (tasks_t *self, task_t *task, const Taskmq__Dependency *entry)
{
    char id[ID_TEXT_SIZE];
    char text[160];
    char data[96];
    tmq_id_t awaited;
    memcpy (awaited.bytes, entry->task_id.data, sizeof (awaited));
    id_format (&awaited, id);
    snprintf (text, sizeof (text), "the task %s that this one depends on is %s", id,
              status_text ((tmq_status_t) entry->status));
    snprintf (data, sizeof (data), "{\"task_id\":\"%s\",\"status\":\"%s\"}", id,
              status_text ((tmq_status_t) entry->status));
    self->base->counts.dependencies_failed++;
    failure_set (self, task, TMQ_TASK_ERROR_DEPENDENCY, text, data);
    change_fail (self, task, INPUT_DEPENDENCY, NULL);
}

/* As if it had not been there (S21). */
static void forget_entry (task_t *task, const Taskmq__Dependency *entry)
{
    Taskmq__Extra *extra = extras_edit (task);
    size_t i = 0;
    while (extra->after[i] != entry)
        i++;
    taskmq__dependency__free_unpacked (extra->after[i], NULL);
    extra->n_after--;
    memmove (&extra->after[i], &extra->after[i + 1],
             (extra->n_after - i) * sizeof (extra->after[0]));
}

static void tell (tasks_t *self, edge_t *edge)
{
    task_t *task = edge->blocked->task;
    Taskmq__Dependency *entry = edge->entry;
    entry->status = edge->awaited->ended;
    edge_close (self, edge);
    if (decides (self, entry)) {
        extras_changed (self, task);
        fail (self, task, entry);
        return;
    }
    if (entry->policy == TMQ_AFTER_IGNORE)
        forget_entry (task, entry);
    extras_changed (self, task);
    if (edge->blocked->open > 0) {
        journal_touch (self, task);
        return;
    }
    change_unplace (self, task);
    cause_t cause = {.message = "what it waited for has ended"};
    change_apply (self, task, INPUT_UNBLOCK, &cause);
    change_place (self, task);
}

void dependents_judge (tasks_t *self, task_t *task)
{
    const Taskmq__Extra *extra = extras_of (task);
    for (size_t i = 0; i < extra->n_after; i++)
        if (decides (self, extra->after[i])) {
            fail (self, task, extra->after[i]);
            return;
        }
}

/* All of them, as far as the round allows. */

/* False: it was freed, for all are told. */
static bool tell_some (tasks_t *self, awaited_t *awaited, size_t max)
{
    size_t *left = &self->base->round.dependents;
    for (; *left > 0 && max > 0 && !list_is_empty (&awaited->edges); max--) {
        tell (self, LIST_ITEM (list_first (&awaited->edges), edge_t, node));
        budget_take (left, 1);
        journal_close_full (self);
    }
    return !awaited_release (self, awaited);
}

static void ended (tasks_t *self, awaited_t *awaited, tmq_status_t status)
{
    awaited_end (self, awaited, status);
    if (tell_some (self, awaited, SIZE_MAX) &&
        self->base->config.planted_bug == ENGINE_BUG_DEPENDENTS_FORGOTTEN)
        list_unlink (&awaited->node);
}

/* What it was told counts no more, but for what completed: that stays so. */
static void judge_anew (tasks_t *self, task_t *task)
{
    if (extras_of (task)->n_after == 0)
        return;
    const Taskmq__Extra *extra = extras_edit (task);
    for (size_t i = 0; i < extra->n_after; i++)
        if (extra->after[i]->status != TMQ_STATUS_COMPLETED)
            extra->after[i]->status = TMQ_STATUS_NONE;
    extras_changed (self, task);
    if (!task->ready && !task->held && !task->scheduled && !task->blocked)
        return;
    change_unplace (self, task);
    change_place (self, task);
}

void dependents_follow (tasks_t *self, const fact_t *fact)
{
    task_t *task = fact->task;
    bool ends = fact->to >= TMQ_STATUS_COMPLETED;
    bool had_ended = fact->from >= TMQ_STATUS_COMPLETED;
    if (had_ended && !ends)
        judge_anew (self, task);
    bool back = had_ended && !ends;
    /* One that had ended may have left memory meanwhile, and the mark with it. */
    if ((!task->awaited && !had_ended) || fact->from == fact->to || !(ends || back))
        return;
    awaited_t *awaited = edges_find (self, task->queue->space, task->id.bytes);
    if (awaited != NULL && back)
        awaited_live (awaited, task);
    else if (awaited != NULL)
        ended (self, awaited, fact->to);
}

bool dependents_are_owed (const tasks_t *self)
{
    if (self->base->stopping) /* the next start finds them */
        return false;
    bool owed = !list_is_empty (&self->edges.ended) && !journal_is_overloaded (self);
    return owed || !list_is_empty (&self->edges.unknown);
}

void dependents_run (tasks_t *self)
{
    while (self->base->round.dependents > 0 && !list_is_empty (&self->edges.ended) &&
           !journal_is_overloaded (self) && !self->base->stopping) {
        awaited_t *awaited = LIST_ITEM (list_first (&self->edges.ended), awaited_t, node);
        if (!tell_some (self, awaited, TURN))
            continue;
        list_unlink (&awaited->node);
        list_push_back (&self->edges.ended, &awaited->node);
    }
}

/* After a start. */

void dependents_ready (tasks_t *self)
{
    const node_t *unknown = &self->edges.unknown;
    for (node_t *node = unknown->next, *next = node->next; node != unknown;
         node = next, next = node->next) {
        awaited_t *awaited = LIST_ITEM (node, awaited_t, node);
        task_t *task = task_find (self, awaited->space, awaited->id.bytes);
        if (task != NULL && !task_is_terminal (task))
            awaited_live (awaited, task);
    }
}

void dependents_known (tasks_t *self, awaited_t *awaited, tmq_status_t status)
{
    task_t *task = task_find (self, awaited->space, awaited->id.bytes);
    if (status < TMQ_STATUS_COMPLETED && task != NULL)
        awaited_live (awaited, task);
    else
        awaited_end (self, awaited, status);
}
