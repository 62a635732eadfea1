/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What workers keep beside their tasks. */
#include "core/tasks/checkpoint.h"

#include "core/tasks/entries.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"

void checkpoint_key (row_key_t *out, const char *ns, const tmq_id_t *id)
{
    *out = (row_key_t) ROW_KEY_INIT;
    row_key_text (out, ns);
    row_key_bytes (out, id->bytes, sizeof (id->bytes));
}

static void put_gone (tasks_t *self, const char *ns, const tmq_id_t *id)
{
    row_key_t key;
    checkpoint_key (&key, ns, id);
    rows_put (self, row_make_gone (ROW_KIND_CHECKPOINT, key.bytes, key.length));
}

static void note_length (tasks_t *self, task_t *task, size_t length)
{
    extras_edit (task)->checkpoint_bytes = (uint32_t) length;
    extras_changed (self, task);
}

/* They count with the values and items of their namespace. */
static void count (tasks_t *self, space_t *space, size_t more, size_t less)
{
    space->entries.bytes += more - less;
    entries_changed (self, space);
}

void checkpoint_put (tasks_t *self, task_t *task, const uint8_t *bytes, size_t length)
{
    if (length == 0) {
        checkpoint_drop (self, task);
    } else {
        row_key_t key;
        checkpoint_key (&key, task->queue->space->name, &task->id);
        rows_put (self, row_make (ROW_KIND_CHECKPOINT, key.bytes, key.length, bytes, length));
        count (self, task->queue->space, length, extras_of (task)->checkpoint_bytes);
        note_length (self, task, length);
    }
    task->version++;
    journal_touch (self, task);
}

void checkpoint_drop (tasks_t *self, task_t *task)
{
    if (extras_of (task)->checkpoint_bytes == 0)
        return;
    count (self, task->queue->space, 0, extras_of (task)->checkpoint_bytes);
    put_gone (self, task->queue->space->name, &task->id);
    note_length (self, task, 0);
}

void checkpoint_remove (tasks_t *self, const record_t *record, const Taskmq__Extra *fields)
{
    if (fields->checkpoint_bytes == 0 ||
        self->base->config.planted_bug == ENGINE_BUG_CHECKPOINT_LEFT)
        return;
    space_t *space = space_find (self, record->ns);
    put_gone (self, record->ns, &record->id);
    if (space != NULL)
        count (self, space, 0, fields->checkpoint_bytes);
}
