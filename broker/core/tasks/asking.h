/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What questions and answers do to a task. */
#ifndef TASKMQ_CORE_ASKING_H
#define TASKMQ_CORE_ASKING_H

#include "core/tasks/change.h"
#include "core/tasks/question.h"

/* The holder of the task's lease asks; key is new. deadline_ms: how long there is to answer. */
question_t *asking_ask (tasks_t *self, task_t *task, question_t *spec, int64_t deadline_ms,
                        const cause_t *cause);
/* A task that comes from elsewhere brings an open question: key is new. It gets a number. */
void asking_bring (tasks_t *self, task_t *task, question_t *spec);
/* An open question gets its answer. */
void asking_answer (tasks_t *self, question_t *question, buf_t *answer, bool text,
                    const cause_t *cause);
/* A deadline may have passed. */
void asking_alarm (tasks_t *self, asking_t *asking);
/* At a start: a task that requires input which nobody is asked for goes on. */
void asking_check (tasks_t *self, task_t *task);

#endif
