/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The error that a task has: of its last failed attempt, or the one it failed with. */
#ifndef TASKMQ_CORE_FAILURE_H
#define TASKMQ_CORE_FAILURE_H

#include "core/tasks/tasks.h"

enum { FAILURE_NOTE_BYTES = 96 }; /* of the note that failure_note adds */

/* Replaces it; message and data may be NULL, and are copied. The data counts for live_bytes_max
 * while the task is in memory, and for the batch that stores it. */
void failure_set (tasks_t *self, task_t *task, int32_t code, const char *message, const char *data);
/* The task leaves memory. */
void failure_drop (tasks_t *self, const task_t *task);
/* May data of so many bytes stay in memory, with a task that is tried again? */
bool failure_fits (const tasks_t *self, const task_t *task, size_t data_bytes);
/* The message of a failure whose data was left out: it says so, and is cut for that if need be. */
void failure_note (char out[TMQ_ERROR_MESSAGE_BYTES_MAX + 1], const char *message,
                   size_t data_bytes);

#endif
