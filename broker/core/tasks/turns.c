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
#include "wire.h"

/* Fields of a row's body; the parts stand in a row. */
enum {
    FIELD_TURN = 1,
    FIELD_ATTEMPT = 2,
    FIELD_NUMBER = 3,
    FIELD_WORKER = 4,
    FIELD_AGENT = 5,
    FIELD_STATUS = 6,
    FIELD_STARTED_AT = 7,
    FIELD_DURATION_MS = 8,
    FIELD_TOLD_AT = 9,
    FIELD_REQUEST_ID = 10,
    FIELD_PARTS = 11,
    FIELD_PARTS_END = FIELD_PARTS + TURN_PARTS
};

/* Turns of a task that is gone, which are still to be removed. */
typedef struct debt {
    node_t node;
    uint64_t left;
    size_t key_bytes;
    uint8_t key[TMQ_NAME_LENGTH_MAX + 1 + sizeof (tmq_id_t)]; /* what keys of them begin with */
} debt_t;

void turn_key (row_key_t *out, const char *ns, const uint8_t *id, uint32_t turn)
{
    out->length = 0;
    row_key_text (out, ns);
    row_key_bytes (out, id, sizeof (tmq_id_t));
    if (turn > 0)
        row_key_number (out, turn);
}

size_t turn_bytes (const turn_t *turn)
{
    size_t bytes = 0;
    for (size_t i = 0; i < TURN_PARTS; i++)
        bytes += turn->lengths[i];
    return bytes;
}

bool turn_unpack (turn_t *out, const buf_t *body)
{
    *out = (turn_t){0};
    const uint8_t *at = buf_bytes (body);
    const uint8_t *end = at + buf_length (body);
    wire_field_t field;
    while (at < end) {
        if (!wire_read_field (&field, &at, end))
            return false;
        switch (field.number) {
        case FIELD_TURN: out->turn = (uint32_t) field.value; break;
        case FIELD_ATTEMPT: out->attempt = (uint32_t) field.value; break;
        case FIELD_NUMBER: out->number = (uint32_t) field.value; break;
        case FIELD_WORKER: wire_copy_text (out->worker, sizeof (out->worker), &field); break;
        case FIELD_AGENT: wire_copy_text (out->agent, sizeof (out->agent), &field); break;
        case FIELD_STATUS: wire_copy_text (out->status, sizeof (out->status), &field); break;
        case FIELD_STARTED_AT: out->started_at = (int64_t) field.value; break;
        case FIELD_DURATION_MS: out->duration_ms = (int64_t) field.value; break;
        case FIELD_TOLD_AT: out->told_at = (int64_t) field.value; break;
        case FIELD_REQUEST_ID:
            if (field.length == sizeof (out->request_id))
                memcpy (out->request_id, field.bytes, sizeof (out->request_id));
            break;
        default:
            if (field.number >= FIELD_PARTS && field.number < FIELD_PARTS_END) {
                out->parts[field.number - FIELD_PARTS] = field.bytes;
                out->lengths[field.number - FIELD_PARTS] = field.length;
            }
        }
    }
    return out->turn != 0;
}

static buf_t *pack (const turn_t *turn)
{
    bytes_t out = BYTES_INIT;
    bytes_append_uint (&out, FIELD_TURN, turn->turn);
    bytes_append_uint (&out, FIELD_ATTEMPT, turn->attempt);
    bytes_append_uint (&out, FIELD_NUMBER, turn->number);
    bytes_append_string (&out, FIELD_WORKER, turn->worker);
    bytes_append_string (&out, FIELD_AGENT, turn->agent);
    bytes_append_string (&out, FIELD_STATUS, turn->status);
    bytes_append_uint (&out, FIELD_STARTED_AT, (uint64_t) turn->started_at);
    bytes_append_uint (&out, FIELD_DURATION_MS, (uint64_t) turn->duration_ms);
    bytes_append_uint (&out, FIELD_TOLD_AT, (uint64_t) turn->told_at);
    bytes_append_blob (&out, FIELD_REQUEST_ID, turn->request_id, sizeof (turn->request_id));
    for (uint32_t i = 0; i < TURN_PARTS; i++)
        bytes_append_blob (&out, FIELD_PARTS + i, turn->parts[i], turn->lengths[i]);
    buf_t *body = buf_new (out.data, out.length);
    bytes_free (&out);
    return body;
}

uint32_t turns_of_attempt (const task_t *task)
{
    const Taskmq__Extra *extra = extras_of (task);
    return extra->turns_attempt == task->attempt ? extra->turns - extra->turns_before : 0;
}

void turn_put (tasks_t *self, task_t *task, turn_t *turn)
{
    row_key_t key;
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
    turn_key (&key, space->name, task->id.bytes, turn->turn);
    rows_put (self, (row_t){.kind = ROW_KIND_TURN,
                            .key = buf_new (key.bytes, key.length),
                            .body = pack (turn)});
    space->entries.turn_bytes += turn_bytes (turn);
    entries_changed (self, space);
    self->base->counts.turns++;
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
