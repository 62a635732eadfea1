/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/turns.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/tasks/debts.h"
#include "core/tasks/entries.h"
#include "core/tasks/extras.h"
#include "core/tasks/rows.h"

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

void turns_remove (tasks_t *self, space_t *space, const record_t *record,
                   const Taskmq__Extra *fields)
{
    if (fields->turns == 0)
        return;
    debt_owe (self, ROW_KIND_TURN, record, fields->turns);
    space->entries.turn_bytes -= fields->turn_bytes;
    entries_changed (self, space);
}
