/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A live task as a record, and a record as a live task. */
#ifndef TASKMQ_CORE_VIEW_H
#define TASKMQ_CORE_VIEW_H

#include "core/tasks/tasks.h"

/* The task as a record that points into it and into texts. */
void task_view (const task_t *task, record_t *out, task_texts_t *texts);
/* The live task of a stored record, in its queue but in no order and on no wheel. */
task_t *task_restore (tasks_t *self, const record_t *record);
/* NONE unless it is queued or working. */
tmq_phase_t task_phase (const tasks_t *self, const task_t *task);
/* Gives records of one namespace the phases of the live tasks. */
void view_phases (const tasks_t *self, record_t *const *records, size_t count);
/* Gives them also what the workers of live tasks reported (started, progress): it is written some
 * seconds later. The texts are those of the tasks, so the records are good until the next input. */
void view_reports (const tasks_t *self, record_t *const *records, size_t count);

#endif
