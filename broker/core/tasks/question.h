/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The questions of live tasks and their answers, in memory and as rows; and the index of open ones
 * that the inbox reads. What they do to the task's status is asking.h. */
#ifndef TASKMQ_CORE_QUESTION_H
#define TASKMQ_CORE_QUESTION_H

#include "core/tasks/tasks.h"

typedef struct asking asking_t;

/* One question of a task. Texts are never NULL. */
typedef struct question {
    asking_t *asking;
    uint64_t number; /* of all questions, in the order of asking: the inbox's order */
    char *key;
    char *request;
    char *default_answer;
    char *worker;
    int64_t asked_at;
    int64_t deadline;
    int64_t due_ms;   /* mono: when the deadline has passed */
    uint32_t attempt; /* that asked */
    bool has_default;
    bool default_text;
    bool answer_text;
    bool by_default;
    uint32_t answer_number; /* of the task's answers, from 1; 0: it is open */
    buf_t *answer;          /* NULL: empty, or none yet */
    char *by;
    int64_t answered_at;
} question_t;

/* All questions of one task. */
struct asking {
    space_t *space;
    tmq_id_t id;
    uint32_t hash;
    task_t *task; /* NULL at a start, until the task comes in */
    question_t **list;
    size_t count;
    size_t capacity;
    uint32_t open;
    uint32_t answers; /* number of the newest */
    uint32_t seen;    /* … that the holder has */
    uint32_t told;    /* … that it was told of */
    size_t bytes;
    alarm_t alarm; /* the earliest deadline of an open one */
};

asking_t *asking_find (const tasks_t *self, const space_t *space, const uint8_t *id);
/* The task has a question of this key, open or answered; else NULL. */
question_t *question_find (const asking_t *self, const char *key);
/* A new open question; copies the texts of spec, gives it its number. Its row is the caller's. */
question_t *question_add (tasks_t *self, task_t *task, const question_t *spec);
/* By the monotonic clock, when its deadline was given by the wall clock. */
int64_t question_due_ms (const tasks_t *self, const question_t *question);
/* The question as it is now goes with the open batch. */
void question_store (tasks_t *self, const question_t *question);
/* It has its answer: it leaves the inbox. Keeps the buffer. */
void question_close (tasks_t *self, question_t *question, buf_t *answer, bool text, const char *by);
/* What it may still take of memory, of all tasks together. */
bool questions_have_room (const tasks_t *self, size_t bytes);
/* Arms the alarm for the earliest deadline of what is open. */
void asking_arm (tasks_t *self, asking_t *asking);
/* A new attempt has seen no answer. */
void asking_begin_attempt (tasks_t *self, const task_t *task);
/* Number of the newest answer while the holder has not taken it, else 0. */
uint32_t asking_news (const tasks_t *self, const task_t *task);
/* The task has ended: its questions go, with their rows. */
void asking_end (tasks_t *self, task_t *task);

/* A row at a start; it waits for its task. */
void question_load (tasks_t *self, const row_t *row);
/* The task has come in. */
void asking_restore (tasks_t *self, task_t *task);
/* Every task has: what no task came for goes. */
void askings_settle (tasks_t *self);
void askings_clear (tasks_t *self);

#endif
