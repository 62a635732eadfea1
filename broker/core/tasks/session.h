/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions: threads of work. Each is a row of its kind and lives in memory, made by the first task
 * that names it, or by hand. A task points to its session, so one without costs nothing.
 *
 * A session that is paused or frozen holds its ready tasks back: they stand in its own list in
 * place of the order of their queue. One that is in the order already is taken out of it when it
 * comes to the head. When the session goes on, they are judged anew, some in each round. */
#ifndef TASKMQ_CORE_SESSION_H
#define TASKMQ_CORE_SESSION_H

#include "core/tasks/tasks.h"
#include "taskmq.pb-c.h"

/* From the last task of a complete session to its removal, and of one for which nothing was ever
 * set to the moment when it is forgotten. A day more: the time of the last task is known to a
 * day. */
#define SESSION_KEPT_MS (INT64_C (31) * 24 * 60 * 60 * 1000)

enum {
    SESSION_MEMORY_BYTES = 512, /* of one, about, beside its row */
    SESSION_REQUESTS_MAX = 8    /* changes that it remembers by their request ids */
};

struct session {
    Taskmq__Session *stored; /* as its row has it; its own */
    space_t *space;
    name_t *name;
    node_t held;     /* ready tasks that it holds back */
    node_t lanes;    /* whose weight is its salience (lanes.h) */
    alarm_t alarm;   /* when it may go by itself */
    node_t of_tasks; /* in the list of those that leave, or of those that are gone and still used */
    size_t bytes;    /* of its row, and in memory */
    uint32_t uses;   /* tasks in memory that point to it */
    uint32_t live;   /* … that have not ended */
    bool gone;       /* it is in no list of a namespace */
};

session_t *session_find (const space_t *space, const char *name);
/* Those behind a name, in the order of bytes, until one is made or removed. */
session_t *const *sessions_behind (const space_t *space, const char *name, size_t *count);
/* A new one without a row, which follows by session_changed. There must be none of this name. */
session_t *session_make (tasks_t *self, space_t *space, const char *name, const char *owner);
/* It was changed: the row goes with the open batch, and an event tells of it. */
void session_changed (tasks_t *self, session_t *session, const char *actor, const char *message);
/* The request has changed it already; and remembers one that does. */
bool session_was_changed_by (const session_t *session, const ProtobufCBinaryData *request_id);
void session_remember (session_t *session, const ProtobufCBinaryData *request_id);
/* What follows from another status, for its tasks. The row follows by session_changed. */
void session_status (tasks_t *self, session_t *session, tmq_session_status_t status);
/* Nobody sees it any more; what belongs to it goes in slices (sessions/leaving.h), it last. */
void session_leave (tasks_t *self, session_t *session);
void session_remove (tasks_t *self, session_t *session, const char *message);
/* What it takes for one more, with a row of so many bytes in place of one of before bytes. NULL, or
 * what there is too much of, with *limit. */
const char *sessions_are_full (const tasks_t *self, const space_t *space, const session_t *session,
                               size_t bytes, size_t *limit);

/* A new task is of this session; it is made if need be. An empty name: of none. */
void session_take (tasks_t *self, task_t *task, space_t *space, const char *name,
                   const char *owner);
/* A live task will be of this session: it is made if need be. An empty name: of none. */
void session_begin (tasks_t *self, space_t *space, const char *name, const char *owner);
/* … a task of the store, of which the row of the session may be gone. */
void session_take_back (tasks_t *self, task_t *task, space_t *space, const char *name,
                        const char *owner);
/* The task leaves memory. */
void session_drop (tasks_t *self, task_t *task);
/* The task lives, or has ended. */
void session_add_task (tasks_t *self, task_t *task);
void session_end_task (tasks_t *self, const task_t *task);

/* Its ready tasks wait. Accepts NULL. */
static inline bool session_holds (const session_t *session)
{
    return session != NULL && (session->stored->status == TMQ_SESSION_STATUS_PAUSED ||
                               session->stored->status == TMQ_SESSION_STATUS_FROZEN);
}
/* A ready task that is in no order waits in the list of its session, or leaves it. */
void session_hold (tasks_t *self, task_t *task);
void session_unhold (tasks_t *self, task_t *task);
/* Empty for NULL. */
static inline const char *session_text (const session_t *session)
{
    return session == NULL ? "" : session->name->text;
}

/* It may be time for it to go. */
void session_alarm (tasks_t *self, session_t *session);
/* A row of a start. */
void session_load (tasks_t *self, const row_t *row);
void sessions_clear (tasks_t *self); /* frees all of them; the tasks have gone */

#endif
