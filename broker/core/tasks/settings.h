/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is set for a queue: pause, caps, rates, limits, defaults of its tasks. A queue without any
 * has none and costs nothing. They are rows that live in memory (kind QUEUE, key: namespace and
 * queue), and close the queue's gate; who opens it again has the queue looked at. */
#ifndef TASKMQ_CORE_SETTINGS_H
#define TASKMQ_CORE_SETTINGS_H

#include "core/base/bucket.h"
#include "core/tasks/tasks.h"
#include "taskmq.pb-c.h"

typedef struct settings {
    queue_t *queue;
    alarm_t alarm;   /* when the next task may begin, by the rate */
    bucket_t bucket; /* … of which these have begun; full after a start */
    bool paused;
    int64_t paused_at;
    char *paused_by; /* NULL: nobody, … */
    char *why;       /* … no reason */
#define X(number, NAME, member) uint64_t member;
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
    uint8_t request_id[16]; /* of the newest change */
} settings_t;

/* How many queues of all namespaces may have settings. */
enum { SETTINGS_ALL_MAX = 100000 };

/* The row of a start, before any task is there. */
void settings_restore (tasks_t *self, const row_t *row);
/* The queue's, made when it has none; the row follows by settings_put. */
settings_t *settings_make (tasks_t *self, queue_t *queue);
/* They have changed: the row goes with the open batch, gates are judged anew. If nothing is set any
 * more, they go, and the queue with them if nobody needs it. */
void settings_put (tasks_t *self, settings_t *settings);
/* … if nothing is set, without a row: there was none. */
void settings_drop_empty (tasks_t *self, settings_t *settings);
/* The row follows by settings_put. A pause that is repeated keeps its time. */
void settings_pause (const tasks_t *self, settings_t *settings, const char *by, const char *why);
void settings_resume (settings_t *self);
/* Takes the members that `fields` names. NULL, or why not: then nothing is taken. */
const char *settings_take (tasks_t *tasks, settings_t *self, const Taskmq__QueueSettings *in,
                           const uint32_t *fields, size_t count);
/* Without what is in the store alone. Borrows from self. */
void settings_message (const settings_t *self, Taskmq__QueueSettings *out);
/* What it says of tasks that have ended. */
retention_t settings_retention (const settings_t *self);
void settings_clear (tasks_t *self); /* all of them; the queues follow */

/* A task of the queue was given to a worker, or its lease ended. */
void settings_given (tasks_t *self, queue_t *queue);
void settings_lease_ended (tasks_t *self, queue_t *queue);
void settings_alarm (tasks_t *self, settings_t *settings);
/* Judged anew after a start. */
void settings_judge (tasks_t *self, queue_t *queue);

#endif
