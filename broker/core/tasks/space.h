/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Namespaces and the queues in them: made when first named, freed when nobody needs them. */
#ifndef TASKMQ_CORE_SPACE_H
#define TASKMQ_CORE_SPACE_H

#include "core/tasks/extras.h"

space_t *space_find (const tasks_t *self, const char *name);
space_t *space_make (tasks_t *self, const char *name); /* found or made */
/* A live task came into its namespace, or ended. */
static inline void space_add_task (const task_t *task)
{
    task->queue->space->tasks++;
    task->queue->space->bytes += extras_payload_bytes (task);
}
static inline void space_end_task (const task_t *task)
{
    task->queue->space->tasks--;
    task->queue->space->bytes -= extras_payload_bytes (task);
}
/* Notes it for spaces_free_idle if nobody needs it. */
void space_release (tasks_t *self, space_t *space);
/* Frees those that nobody needs. Not between a look-up and its use: keys point to names. */
void spaces_free_idle (tasks_t *self);
queue_t *queue_find (const tasks_t *self, const space_t *space, const char *name);
queue_t *queue_make (tasks_t *self, space_t *space, const char *name); /* found or made */
void queue_release (tasks_t *self, queue_t *queue);
/* Somebody should look at it before the input ends: a task is ready, or a worker has room. */
void queue_changed (tasks_t *self, queue_t *queue);
/* A walk over the queues of a namespace, which must stay meanwhile. queue_walk_next gives NULL at
 * the end. There should be few at a time: each queue that goes looks at all of them. */
void queue_walk_begin (tasks_t *self, queue_walk_t *walk, space_t *space);
queue_t *queue_walk_next (queue_walk_t *walk);
void queue_walk_end (queue_walk_t *walk);
void spaces_clear (tasks_t *self); /* frees all of them, and all queues */

#endif
