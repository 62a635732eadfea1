/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A task asks, is answered, or waits in vain.
 *
 * A question, its row, the status and the event are of one batch; so are an answer and what it
 * does. A failed commit takes all of it back, and the worker or the client repeats it. */
#include "core/tasks/asking.h"

#include <stdio.h>
#include <string.h>

#include "core/tasks/due.h"
#include "core/tasks/failure.h"
#include "core/tasks/journal.h"
#include "types.h"

/* Rising over restarts too, as long as the clock does: a cursor of an inbox stays good. */
static uint64_t next_number (tasks_t *self)
{
    uint64_t least = (uint64_t) self->base->clocks.wall_ms << 10;
    uint64_t *last = &self->questions.last_number;
    *last = *last < least ? least : *last + 1;
    return *last;
}

question_t *asking_ask (tasks_t *self, task_t *task, question_t *spec, int64_t deadline_ms,
                        const cause_t *cause)
{
    const clocks_t *clocks = &self->base->clocks;
    spec->number = next_number (self);
    spec->asked_at = clocks_wall_ms (clocks, task->updated_at);
    spec->deadline = spec->asked_at + deadline_ms;
    spec->due_ms = clocks->mono_ms + deadline_ms;
    spec->attempt = task->attempt;
    task->returns = 0; /* it is getting on */
    question_t *question = question_add (self, task, spec);
    question_store (self, question);
    asking_arm (self, question->asking);
    change_apply (self, task, INPUT_ASK, cause);
    return question;
}

void asking_bring (tasks_t *self, task_t *task, question_t *spec)
{
    spec->number = next_number (self);
    spec->due_ms = question_due_ms (self, spec);
    question_t *question = question_add (self, task, spec);
    question_store (self, question);
    asking_arm (self, question->asking);
}

/* The last open question is answered, or there was none. */
static void go_on (tasks_t *self, task_t *task, const cause_t *cause)
{
    if (task->leased) {
        change_apply (self, task, INPUT_ANSWER, cause);
        due_arm_runtime_anew (self, task);
        return;
    }
    change_extend_expiry (task, clocks_wall_ms (&self->base->clocks, task->updated_at));
    change_apply (self, task, INPUT_ANSWER_FREE, cause);
    change_place (self, task);
}

void asking_answer (tasks_t *self, question_t *question, buf_t *answer, bool text,
                    const cause_t *cause)
{
    asking_t *asking = question->asking;
    task_t *task = asking->task;
    question_close (self, question, answer, text, cause->actor == NULL ? "taskmqd" : cause->actor);
    if (self->base->config.planted_bug != ENGINE_BUG_ANSWER_NOT_STORED)
        question_store (self, question);
    asking_arm (self, asking);
    if (asking->open > 0)
        change_apply (self, task, INPUT_ANSWER_SOME, cause);
    else
        go_on (self, task, cause);
}

void asking_check (tasks_t *self, task_t *task)
{
    const asking_t *asking = asking_find (self, task->queue->space, task->id.bytes);
    cause_t cause = {.message = "the question was lost"};
    if (task->status == TMQ_STATUS_INPUT_REQUIRED && (asking == NULL || asking->open == 0))
        go_on (self, task, &cause);
}

/* Deadlines. */

static void fail_unanswered (tasks_t *self, task_t *task, const question_t *question)
{
    char text[TMQ_QUESTION_KEY_BYTES_MAX + 64];
    snprintf (text, sizeof (text), "%s: %s", task_error_text (TMQ_TASK_ERROR_ANSWER_DEADLINE),
              question->key);
    if (task->leased)
        journal_add_attempt (self, task, TMQ_EVENT_FAILED, TMQ_TASK_ERROR_ANSWER_DEADLINE, text,
                             NULL);
    failure_set (self, task, TMQ_TASK_ERROR_ANSWER_DEADLINE, text, NULL);
    change_fail (self, task, INPUT_FAIL_FINALLY, NULL);
}

/* The first one whose time is over, or NULL. What was sent before may still be unread. */
static question_t *overdue (const tasks_t *self, const asking_t *asking)
{
    for (size_t i = 0; i < asking->count; i++) {
        question_t *question = asking->list[i];
        if (question->answer_number == 0 && question->due_ms <= self->base->clocks.heard_ms)
            return question;
    }
    return NULL;
}

void asking_alarm (tasks_t *self, asking_t *asking)
{
    question_t *question = overdue (self, asking);
    if (question == NULL) {
        asking_arm (self, asking);
        return;
    }
    self->open.inputs++;
    if (!question->has_default) {
        fail_unanswered (self, asking->task, question);
        return;
    }
    cause_t cause = {.message = question->key};
    size_t length = strlen (question->default_answer);
    buf_t *answer = length == 0 ? NULL : buf_new (question->default_answer, length);
    question->by_default = true;
    asking_answer (self, question, answer, question->default_text, &cause);
    buf_drop (answer);
}
