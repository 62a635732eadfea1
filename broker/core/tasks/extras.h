/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What few tasks have, of live tasks. It counts as their texts do (live_bytes_max). */
#ifndef TASKMQ_CORE_EXTRAS_H
#define TASKMQ_CORE_EXTRAS_H

#include "core/tasks/tasks.h"

/* Gives a new task what it begins with; a reference is taken. NULL: nothing. */
void extras_take (tasks_t *self, task_t *task, buf_t *packed);
/* Before its task goes. */
void extras_drop (tasks_t *self, task_t *task);

/* The fields, to be read. Of a task without any all are unset. */
const Taskmq__Extra *extras_of (const task_t *task);
/* Of its payload, in a row or a blob. */
static inline uint64_t extras_payload_bytes (const task_t *task)
{
    const Taskmq__Blob *blob = task->extra == NULL ? NULL : task->extra->fields->payload_blob;
    return task->payload_bytes + (blob == NULL ? 0 : blob->bytes);
}
/* The fields, to be changed: made when the task has none. What is pointed to is replaced with
 * extra_set_text, or is memory of malloc. extras_changed is to follow, and journal_touch for the
 * task, as of every change. Packed, without artifacts, it must not be longer than
 * TMQ_EXTRA_BYTES_MAX: whoever adds what can grow looks before (extras_room). */
Taskmq__Extra *extras_edit (task_t *task);
void extras_changed (tasks_t *self, task_t *task);
/* Bytes that may still be added, packed. */
/* Kept free for request ids and the name of a blob, which are noted without asking. */
enum { EXTRA_MARKS_BYTES = 144 };
size_t extras_room (const task_t *task);

#endif
