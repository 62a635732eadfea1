/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/turns.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/tasks/entries.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"

/* Turns of a task that is gone, which are still to be removed. */
typedef struct debt {
    node_t node;
    uint64_t left;
    size_t key_bytes;
    uint8_t key[TMQ_NAME_LENGTH_MAX + 1 + sizeof (tmq_id_t)]; /* what keys of them begin with */
} debt_t;

uint32_t turns_of_attempt (const task_t *task)
{
    const Taskmq__Extra *extra = extras_of (task);
    return extra->turns_attempt == task->attempt ? extra->turns - extra->turns_before : 0;
}

static void write_row (tasks_t *self, space_t *space, const task_t *task, const turn_t *turn)
{
    row_key_t key;
    turn_key (&key, space->name, task->id.bytes, turn->turn);
    rows_put (self, (row_t){.kind = ROW_KIND_TURN,
                            .key = buf_new (key.bytes, key.length),
                            .body = turn_pack (turn)});
    space->entries.turn_bytes += turn_bytes (turn);
    entries_changed (self, space);
}

/* Turns come in their order, so the last range goes on or another one begins. */
static void supersede_one (Taskmq__Extra *extra, uint32_t turn)
{
    size_t count = extra->n_superseded & ~(size_t) 1;
    if (count > 0 && extra->superseded[count - 1] + 1 == turn) {
        extra->superseded[count - 1] = turn;
        return;
    }
    uint32_t *ranges = memory_alloc ((count + 2) * sizeof (uint32_t));
    if (count > 0)
        memcpy (ranges, extra->superseded, count * sizeof (uint32_t));
    ranges[count] = ranges[count + 1] = turn;
    free (extra->superseded);
    extra->superseded = ranges;
    extra->n_superseded = count + 2;
}

void turn_put (tasks_t *self, task_t *task, turn_t *turn)
{
    space_t *space = task->queue->space;
    Taskmq__Extra *extra = extras_edit (task);
    if (extra->turns_attempt != task->attempt) {
        extra->turns_attempt = task->attempt;
        extra->turns_before = extra->turns;
    }
    turn->turn = ++extra->turns;
    turn->attempt = task->attempt;
    turn->number = extra->turns - extra->turns_before;
    turn->told_at = clocks_wall_ms (&self->base->clocks, task->updated_at);
    extra->turn_bytes += turn_bytes (turn);
    extras_changed (self, task);
    write_row (self, space, task, turn);
    self->base->counts.turns++;
}

void turn_put_as_told (tasks_t *self, task_t *task, const turn_t *turn, bool superseded)
{
    Taskmq__Extra *extra = extras_edit (task);
    extra->turns = turn->turn;
    extra->turns_attempt = turn->attempt;
    extra->turns_before = turn->turn - turn->number;
    extra->turn_bytes += turn_bytes (turn);
    if (superseded)
        supersede_one (extra, turn->turn);
    write_row (self, task->queue->space, task, turn);
}

/* What a retry or a resume left behind: ranges in Extra.superseded, rising and apart. */

bool turn_is_superseded (const uint32_t *ranges, size_t count, uint32_t turn)
{
    for (size_t i = 0; i + 1 < count; i += 2)
        if (turn >= ranges[i] && turn <= ranges[i + 1])
            return true;
    return false;
}

/* How many numbers stay in front of a range that begins behind `from`; it may go on the last. */
static size_t kept_in_front (const Taskmq__Extra *fields, uint32_t from)
{
    size_t kept = fields->n_superseded & ~(size_t) 1;
    while (kept > 0 && fields->superseded[kept - 2] > from)
        kept -= 2;
    return kept;
}

static bool goes_on (const Taskmq__Extra *fields, size_t kept, uint32_t from)
{
    return kept > 0 && fields->superseded[kept - 1] >= from;
}

bool turns_have_range (const Taskmq__Extra *fields, uint32_t from)
{
    size_t kept = kept_in_front (fields, from);
    return from >= fields->turns || goes_on (fields, kept, from) || kept < 2 * TMQ_TURN_RANGES_MAX;
}

void turns_supersede (tasks_t *self, task_t *task, uint32_t from)
{
    if (from >= extras_of (task)->turns)
        return;
    Taskmq__Extra *fields = extras_edit (task);
    size_t kept = kept_in_front (fields, from);
    if (goes_on (fields, kept, from)) {
        fields->superseded[kept - 1] = fields->turns;
        fields->n_superseded = kept;
    } else {
        uint32_t *ranges = memory_alloc ((kept + 2) * sizeof (uint32_t));
        if (kept > 0)
            memcpy (ranges, fields->superseded, kept * sizeof (uint32_t));
        ranges[kept] = from + 1;
        ranges[kept + 1] = fields->turns;
        free (fields->superseded);
        fields->superseded = ranges;
        fields->n_superseded = kept + 2;
    }
    extras_changed (self, task);
}

/* Their end. */

static void owe (tasks_t *self, const uint8_t *key, size_t key_bytes, uint64_t count)
{
    debt_t *debt = memory_zero (1, sizeof (*debt));
    memcpy (debt->key, key, key_bytes);
    debt->key_bytes = key_bytes;
    debt->left = count;
    list_push_back (&self->turns_left, &debt->node);
}

void turns_remove (tasks_t *self, space_t *space, const record_t *record,
                   const Taskmq__Extra *fields)
{
    row_key_t key;
    row_key_t count = ROW_KEY_INIT;
    if (fields->turns == 0)
        return;
    turn_key (&key, record->ns, record->id.bytes, 0);
    row_key_number (&count, fields->turns);
    rows_put (self,
              row_make (ROW_KIND_TURNS_LEFT, key.bytes, key.length, count.bytes, count.length));
    owe (self, key.bytes, key.length, fields->turns);
    space->entries.turn_bytes -= fields->turn_bytes;
    entries_changed (self, space);
}

bool turns_are_owed (const tasks_t *self)
{
    return !list_is_empty (&self->turns_left) && !self->base->stopping &&
           !journal_is_overloaded (self);
}

void turns_run (tasks_t *self)
{
    size_t *left = &self->base->round.turns;
    while (*left > 0 && turns_are_owed (self)) {
        debt_t *debt = LIST_ITEM (list_first (&self->turns_left), debt_t, node);
        row_key_t key = ROW_KEY_INIT;
        row_key_bytes (&key, debt->key, debt->key_bytes);
        if (debt->left > 0) {
            row_key_number (&key, debt->left--);
            rows_put (self, row_make_gone (ROW_KIND_TURN, key.bytes, key.length));
        } else {
            rows_put (self, row_make_gone (ROW_KIND_TURNS_LEFT, key.bytes, key.length));
            list_unlink (&debt->node);
            free (debt);
        }
        budget_take (left, 1);
        self->open.inputs++;
        journal_close_full (self);
    }
}

void turns_load (tasks_t *self, const row_t *row)
{
    if (!row->gone && buf_length (row->key) <= sizeof (((debt_t *) NULL)->key))
        owe (self, buf_bytes (row->key), buf_length (row->key), row_number (row->body));
}

void turns_clear (tasks_t *self)
{
    for (node_t *node = list_pop_front (&self->turns_left); node != NULL;
         node = list_pop_front (&self->turns_left))
        free (LIST_ITEM (node, debt_t, node));
}
