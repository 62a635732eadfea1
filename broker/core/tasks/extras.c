/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What few tasks have, of live tasks. */
#include "core/tasks/extras.h"

#include "core/data/artifact.h"

static void count (tasks_t *self, extra_t *extra)
{
    self->texts_bytes -= extra->counted;
    extra->counted = extra_bytes_of (extra->fields);
    self->texts_bytes += extra->counted;
}

void extras_take (tasks_t *self, task_t *task, buf_t *packed)
{
    if (packed == NULL)
        return;
    task->extra = extra_new (packed);
    count (self, task->extra);
}

void extras_drop (tasks_t *self, task_t *task)
{
    if (task->extra != NULL)
        self->texts_bytes -= task->extra->counted;
    extra_free (task->extra);
    task->extra = NULL;
}

const Taskmq__Extra *extras_of (const task_t *task)
{
    static const Taskmq__Extra NOTHING = TASKMQ__EXTRA__INIT;
    return task->extra == NULL ? &NOTHING : task->extra->fields;
}

Taskmq__Extra *extras_edit (task_t *task)
{
    if (task->extra == NULL)
        task->extra = extra_new (NULL);
    return task->extra->fields;
}

void extras_changed (tasks_t *self, task_t *task)
{
    task->extra->changed = true;
    count (self, task->extra);
}

size_t extras_room (const task_t *task)
{
    const Taskmq__Extra *fields = extras_of (task);
    size_t used = taskmq__extra__get_packed_size (fields) - artifacts_packed_bytes (fields);
    used += EXTRA_MARKS_BYTES;
    return used < TMQ_EXTRA_BYTES_MAX ? TMQ_EXTRA_BYTES_MAX - used : 0;
}
