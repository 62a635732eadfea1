/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The questions of live tasks.
 *
 * A row is (namespace, task, key); all rows of a task go in the batch in which it ends. So at a
 * start the rows that come in are those of live tasks, and nothing has to be read later. */
#include "core/tasks/question.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/tasks/index.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"
#include "taskmq.pb-c.h"

enum { QUESTION_BYTES = sizeof (question_t) + 128 }; /* beside its texts: an estimate */

/* Questions. */

static size_t question_bytes (const question_t *question)
{
    return QUESTION_BYTES + strlen (question->key) + strlen (question->request) +
           strlen (question->default_answer) + buf_length (question->answer);
}

static void question_free (question_t *question)
{
    free (question->key);
    free (question->request);
    free (question->default_answer);
    free (question->worker);
    free (question->by);
    buf_drop (question->answer);
    free (question);
}

static void count_bytes (tasks_t *self, asking_t *asking, size_t bytes)
{
    asking->bytes += bytes;
    self->questions.bytes += bytes;
}

bool questions_have_room (const tasks_t *self, size_t bytes)
{
    return self->questions.bytes + bytes + QUESTION_BYTES <= self->base->config.questions_bytes_max;
}

question_t *question_find (const asking_t *self, const char *key)
{
    for (size_t i = 0; self != NULL && i < self->count; i++)
        if (strcmp (self->list[i]->key, key) == 0)
            return self->list[i];
    return NULL;
}

static question_t *put (tasks_t *self, asking_t *asking, const question_t *spec)
{
    question_t *question = memory_alloc (sizeof (*question));
    *question = *spec;
    question->asking = asking;
    question->key = memory_text (spec->key);
    question->request = memory_text (spec->request);
    question->default_answer = memory_text (spec->default_answer);
    question->worker = memory_text (spec->worker);
    question->by = memory_text (spec->by);
    question->answer = spec->answer == NULL ? NULL : buf_keep (spec->answer);
    asking->list =
        memory_grow (asking->list, &asking->capacity, asking->count, sizeof (question_t *));
    asking->list[asking->count++] = question;
    count_bytes (self, asking, question_bytes (question));
    if (question->answer_number == 0) {
        asking->open++;
        unanswered_add (&asking->space->unanswered, question->number, question);
    } else if (question->answer_number > asking->answers) {
        asking->answers = question->answer_number;
    }
    return question;
}

int64_t question_due_ms (const tasks_t *self, const question_t *question)
{
    const clocks_t *clocks = &self->base->clocks;
    int64_t wait_ms = question->deadline - clocks->wall_ms;
    int64_t most_ms = question->deadline - question->asked_at; /* the clock may be back */
    return clocks->mono_ms + (wait_ms < most_ms ? wait_ms : most_ms);
}

void question_close (tasks_t *self, question_t *question, buf_t *answer, bool text, const char *by)
{
    asking_t *asking = question->asking;
    const clocks_t *clocks = &self->base->clocks;
    unanswered_remove (&asking->space->unanswered, question->number);
    asking->open--;
    question->answer = answer == NULL ? NULL : buf_keep (answer);
    question->answer_text = text;
    question->answer_number = ++asking->answers;
    question->answered_at = clocks_wall_ms (clocks, question->asked_at);
    free (question->by);
    question->by = memory_text (by);
    count_bytes (self, asking, buf_length (answer));
}

/* All of a task's. */

asking_t *asking_find (const tasks_t *self, const space_t *space, const uint8_t *id)
{
    size_t cursor = MAP_START;
    uint32_t hash = task_hash (self, space, id);
    asking_t *asking = map_next (&self->questions.askings, hash, &cursor);
    while (asking != NULL && (asking->space != space ||
                              memcmp (asking->id.bytes, id, sizeof (asking->id.bytes)) != 0))
        asking = map_next (&self->questions.askings, hash, &cursor);
    return asking;
}

static asking_t *asking_of (const tasks_t *self, const task_t *task)
{
    return task->asks ? asking_find (self, task->queue->space, task->id.bytes) : NULL;
}

static asking_t *asking_make (tasks_t *self, space_t *space, const uint8_t *id)
{
    asking_t *asking = asking_find (self, space, id);
    if (asking != NULL)
        return asking;
    asking = memory_zero (1, sizeof (*asking));
    asking->space = space;
    memcpy (asking->id.bytes, id, sizeof (asking->id.bytes));
    asking->hash = task_hash (self, space, id);
    asking->alarm.kind = ALARM_ASKING;
    map_insert (&self->questions.askings, asking->hash, asking);
    return asking;
}

question_t *question_add (tasks_t *self, task_t *task, const question_t *spec)
{
    asking_t *asking = asking_make (self, task->queue->space, task->id.bytes);
    asking->task = task;
    task->asks = true;
    return put (self, asking, spec);
}

void asking_arm (tasks_t *self, asking_t *asking)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < asking->count; i++)
        if (asking->list[i]->answer_number == 0 && asking->list[i]->due_ms < due_ms)
            due_ms = asking->list[i]->due_ms;
    if (due_ms == INT64_MAX)
        alarm_disarm (&asking->alarm);
    else
        wheel_arm (&self->base->fine, &asking->alarm,
                   clocks_look_again_ms (&self->base->clocks, due_ms));
}

void asking_begin_attempt (tasks_t *self, const task_t *task)
{
    asking_t *asking = asking_of (self, task);
    if (asking != NULL)
        asking->seen = asking->told = 0;
}

uint32_t asking_news (const tasks_t *self, const task_t *task)
{
    const asking_t *asking = asking_of (self, task);
    return asking == NULL || asking->seen >= asking->answers ? 0 : asking->answers;
}

static void asking_free (tasks_t *self, asking_t *asking)
{
    alarm_disarm (&asking->alarm);
    self->questions.bytes -= asking->bytes;
    for (size_t i = 0; i < asking->count; i++)
        question_free (asking->list[i]);
    free (asking->list);
    free (asking);
}

/* Rows. */

static row_key_t key_of (const question_t *question)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, question->asking->space->name);
    row_key_bytes (&key, question->asking->id.bytes, sizeof (question->asking->id.bytes));
    row_key_bytes (&key, question->key, strlen (question->key));
    return key;
}

void question_store (tasks_t *self, const question_t *question)
{
    Taskmq__QuestionRow row = TASKMQ__QUESTION_ROW__INIT;
    row.number = question->number;
    row.asked_at = (uint64_t) question->asked_at;
    row.deadline = (uint64_t) question->deadline;
    row.request = question->request;
    row.has_default = question->has_default;
    row.default_text = question->default_text;
    row.default_answer = question->default_answer;
    row.attempt = question->attempt;
    row.worker = question->worker;
    row.answer_number = question->answer_number;
    row.answer_text = question->answer_text;
    row.answer.len = buf_length (question->answer);
    row.answer.data = (uint8_t *) buf_bytes (question->answer);
    row.by = question->by;
    row.answered_at = (uint64_t) question->answered_at;
    row.by_default = question->by_default;
    bytes_t packed = BYTES_INIT;
    bytes_append_packed (&packed, &row.base);
    row_key_t key = key_of (question);
    rows_put (self,
              row_make (ROW_KIND_QUESTION, key.bytes, key.length, packed.data, packed.length));
    bytes_free (&packed);
}

static void asking_remove (tasks_t *self, asking_t *asking)
{
    for (size_t i = 0; i < asking->count; i++) {
        const question_t *question = asking->list[i];
        row_key_t key = key_of (question);
        rows_put (self, row_make_gone (ROW_KIND_QUESTION, key.bytes, key.length));
        if (question->answer_number == 0)
            unanswered_remove (&asking->space->unanswered, question->number);
    }
    map_remove (&self->questions.askings, asking->hash, asking);
    asking_free (self, asking);
}

void asking_end (tasks_t *self, task_t *task)
{
    asking_t *asking = asking_of (self, task);
    task->asks = false;
    if (asking != NULL)
        asking_remove (self, asking);
}

/* The start. */

static void take_row (tasks_t *self, space_t *space, const uint8_t *id, char *key,
                      const Taskmq__QuestionRow *row)
{
    buf_t *answer = row->answer.len == 0 ? NULL : buf_new (row->answer.data, row->answer.len);
    question_t spec = {.number = row->number,
                       .key = key,
                       .request = row->request,
                       .default_answer = row->default_answer,
                       .worker = row->worker,
                       .asked_at = (int64_t) row->asked_at,
                       .deadline = (int64_t) row->deadline,
                       .attempt = row->attempt,
                       .has_default = row->has_default,
                       .default_text = row->default_text,
                       .answer_text = row->answer_text,
                       .by_default = row->by_default,
                       .answer_number = (uint32_t) row->answer_number,
                       .answer = answer,
                       .by = row->by,
                       .answered_at = (int64_t) row->answered_at};
    put (self, asking_make (self, space, id), &spec);
    buf_drop (answer);
    if (self->questions.last_number < row->number)
        self->questions.last_number = row->number;
}

void question_load (tasks_t *self, const row_t *row)
{
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    char key[TMQ_QUESTION_KEY_BYTES_MAX + 1];
    const uint8_t *bytes = buf_bytes (row->key);
    size_t length = buf_length (row->key);
    size_t name = strnlen ((const char *) bytes, length);
    if (name >= sizeof (ns) || name + 1 + sizeof (tmq_id_t) >= length)
        return;
    memcpy (ns, bytes, name + 1);
    const uint8_t *id = bytes + name + 1;
    size_t key_length = length - name - 1 - sizeof (tmq_id_t);
    if (key_length >= sizeof (key))
        return;
    memcpy (key, id + sizeof (tmq_id_t), key_length);
    key[key_length] = '\0';
    Taskmq__QuestionRow *unpacked =
        taskmq__question_row__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    if (unpacked == NULL)
        return;
    take_row (self, space_make (self, ns), id, key, unpacked);
    taskmq__question_row__free_unpacked (unpacked, NULL);
}

static int by_age (const void *a, const void *b)
{
    uint64_t left = (*(question_t *const *) a)->number;
    uint64_t right = (*(question_t *const *) b)->number;
    return (left > right) - (left < right);
}

void asking_restore (tasks_t *self, task_t *task)
{
    if (self->questions.askings.count == 0)
        return;
    asking_t *asking = asking_find (self, task->queue->space, task->id.bytes);
    if (asking == NULL)
        return;
    asking->task = task;
    task->asks = true;
    /* Rows come in the order of their keys; an inbox goes on behind a number. */
    qsort (asking->list, asking->count, sizeof (question_t *), by_age);
    for (size_t i = 0; i < asking->count; i++)
        asking->list[i]->due_ms = question_due_ms (self, asking->list[i]);
    asking_arm (self, asking);
}

void askings_settle (tasks_t *self)
{
    asking_t **orphans = NULL; /* a map is not changed while it is walked */
    size_t count = 0;
    size_t capacity = 0;
    size_t cursor = 0;
    for (asking_t *asking = map_each (&self->questions.askings, &cursor); asking != NULL;
         asking = map_each (&self->questions.askings, &cursor)) {
        if (asking->task != NULL)
            continue;
        orphans = memory_grow (orphans, &capacity, count, sizeof (asking_t *));
        orphans[count++] = asking;
    }
    for (size_t i = 0; i < count; i++)
        asking_remove (self, orphans[i]);
    free (orphans);
}

void askings_clear (tasks_t *self)
{
    size_t cursor = 0;
    for (asking_t *asking = map_each (&self->questions.askings, &cursor); asking != NULL;
         asking = map_each (&self->questions.askings, &cursor))
        asking_free (self, asking);
    map_free (&self->questions.askings);
    self->questions.bytes = 0;
}
