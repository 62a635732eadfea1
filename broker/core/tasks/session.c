/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/tasks/rows.h"
#include "core/tasks/space.h"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

/* Rows. */

static row_key_t key_of (const session_t *session)
{
    row_key_t key = ROW_KEY_INIT;
    row_key_text (&key, session->space->name);
    row_key_text (&key, session->name->text);
    return key;
}

static void count_bytes (tasks_t *self, session_t *session, size_t bytes)
{
    self->sessions_bytes += bytes - session->bytes;
    session->bytes = bytes;
}

static void put_row (tasks_t *self, session_t *session)
{
    row_key_t key = key_of (session);
    bytes_t packed = BYTES_INIT;
    Taskmq__Session stored = *session->stored;
    if (self->base->config.planted_bug == ENGINE_BUG_FREEZE_UNWRITTEN)
        stored.status = TMQ_SESSION_STATUS_ACTIVE;
    if (self->base->config.planted_bug == ENGINE_BUG_SALIENCE_UNWRITTEN)
        stored.salience = TMQ_SALIENCE_DEFAULT;
    bytes_append_packed (&packed, &stored.base);
    count_bytes (self, session, packed.length + SESSION_MEMORY_BYTES);
    rows_put (self, row_make (ROW_KIND_SESSION, key.bytes, key.length, packed.data, packed.length));
    bytes_free (&packed);
}

/* The list of a namespace, by name. */

/* The place of the first one whose name is not before this one. */
static size_t place_of (const space_t *space, const char *name)
{
    size_t low = 0;
    size_t high = space->sessions_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp (space->sessions[middle]->name->text, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

session_t *session_find (const space_t *space, const char *name)
{
    size_t place = place_of (space, name);
    if (place == space->sessions_count || strcmp (space->sessions[place]->name->text, name) != 0)
        return NULL;
    return space->sessions[place];
}

session_t *const *sessions_behind (const space_t *space, const char *name, size_t *count)
{
    size_t place = place_of (space, name);
    if (place < space->sessions_count && strcmp (space->sessions[place]->name->text, name) == 0)
        place++;
    *count = space->sessions_count - place;
    return *count == 0 ? NULL : space->sessions + place;
}

static void enlist (space_t *space, session_t *session)
{
    size_t place = place_of (space, session->name->text);
    space->sessions = memory_grow (space->sessions, &space->sessions_capacity,
                                   space->sessions_count, sizeof (session_t *));
    memmove (space->sessions + place + 1, space->sessions + place,
             (space->sessions_count - place) * sizeof (session_t *));
    space->sessions[place] = session;
    space->sessions_count++;
}

static void delist (space_t *space, const session_t *session)
{
    size_t place = place_of (space, session->name->text);
    assert (space->sessions[place] == session);
    space->sessions_count--;
    memmove (space->sessions + place, space->sessions + place + 1,
             (space->sessions_count - place) * sizeof (session_t *));
    if (space->sessions_count > 0)
        return;
    free (space->sessions);
    space->sessions = NULL;
    space->sessions_capacity = 0;
}

/* Life. */

static session_t *new_session (tasks_t *self, space_t *space, Taskmq__Session *stored)
{
    session_t *session = memory_zero (1, sizeof (*session));
    session->stored = stored;
    session->space = space;
    session->name = names_keep (&self->base->names, stored->name);
    session->alarm.kind = ALARM_SESSION;
    list_init (&session->held);
    list_init (&session->lanes);
    count_bytes (self, session, SESSION_MEMORY_BYTES);
    return session;
}

static void free_session (tasks_t *self, session_t *session)
{
    alarm_disarm (&session->alarm);
    list_remove (&session->of_tasks);
    names_drop (&self->base->names, session->name);
    self->sessions_bytes -= session->bytes;
    taskmq__session__free_unpacked (session->stored, NULL);
    free (session);
}

static Taskmq__Session *new_stored (const tasks_t *self, const char *name, const char *owner)
{
    Taskmq__Session *stored = memory_alloc (sizeof (*stored));
    taskmq__session__init (stored);
    extra_set_text (&stored->name, name);
    extra_set_text (&stored->owner, owner);
    stored->status = TMQ_SESSION_STATUS_ACTIVE;
    stored->salience = TMQ_SALIENCE_DEFAULT;
    stored->created_at = stored->last_task_at = (uint64_t) self->base->clocks.wall_ms;
    return stored;
}

/* One that nobody finds: its tasks ended long ago. */
static session_t *make_detached (tasks_t *self, space_t *space, const char *name, const char *owner)
{
    session_t *session = new_session (self, space, new_stored (self, name, owner));
    session->gone = true;
    list_push_back (&self->sessions_gone, &session->of_tasks);
    return session;
}

session_t *session_make (tasks_t *self, space_t *space, const char *name, const char *owner)
{
    session_t *session = new_session (self, space, new_stored (self, name, owner));
    enlist (space, session);
    return session;
}

/* It goes by itself when nobody has used it for long. */
static void arm (tasks_t *self, session_t *session)
{
    const Taskmq__Session *stored = session->stored;
    bool may_go = stored->status == TMQ_SESSION_STATUS_COMPLETE || !stored->chosen;
    alarm_disarm (&session->alarm);
    if (session->live == 0 && may_go && !stored->leaving && !session->gone)
        base_arm_expiry (self->base, &session->alarm,
                         (int64_t) stored->last_task_at + SESSION_KEPT_MS);
}

static void tell (tasks_t *self, session_t *session, tmq_event_kind_t kind, const char *actor,
                  const char *message)
{
    event_t event = {.kind = kind,
                     .subject = TMQ_SUBJECT_SESSION,
                     .name = session->name->text,
                     .queue = "",
                     .session = session->name->text,
                     .worker = "",
                     .actor = actor == NULL ? "taskmqd" : actor,
                     .message = message,
                     .owner = session->stored->owner};
    history_add (self->history, &session->space->log, &event);
    session->stored->version = event.seq;
}

void session_changed (tasks_t *self, session_t *session, const char *actor, const char *message)
{
    session->stored->updated_at =
        (uint64_t) clocks_wall_ms (&self->base->clocks, (int64_t) session->stored->updated_at);
    tell (self, session, TMQ_EVENT_CHANGED, actor, message);
    put_row (self, session);
    arm (self, session);
}

bool session_was_changed_by (const session_t *session, const ProtobufCBinaryData *request_id)
{
    const Taskmq__Session *stored = session->stored;
    for (size_t i = 0; i < stored->n_request_ids; i++)
        if (stored->request_ids[i].len == request_id->len &&
            memcmp (stored->request_ids[i].data, request_id->data, request_id->len) == 0)
            return true;
    return false;
}

void session_remember (session_t *session, const ProtobufCBinaryData *request_id)
{
    Taskmq__Session *stored = session->stored;
    ProtobufCBinaryData *ids = stored->request_ids;
    if (stored->n_request_ids >= SESSION_REQUESTS_MAX) {
        free (ids[0].data);
        memmove (ids, ids + 1, --stored->n_request_ids * sizeof (*ids));
    }
    ids = memory_resize (ids, stored->n_request_ids + 1, sizeof (*ids));
    ProtobufCBinaryData *place = &ids[stored->n_request_ids++];
    *place = (ProtobufCBinaryData){request_id->len, memory_alloc (request_id->len)};
    memcpy (place->data, request_id->data, request_id->len);
    stored->request_ids = ids;
}

void session_status (tasks_t *self, session_t *session, tmq_session_status_t status)
{
    session->stored->status = status;
    session->stored->status_at = (uint64_t) self->base->clocks.wall_ms;
    if (!session_holds (session)) /* they are judged anew, some in each round */
        list_append (&self->delays_to_judge, &session->held);
}

static void leave (tasks_t *self, session_t *session)
{
    alarm_disarm (&session->alarm);
    if (!node_is_linked (&session->of_tasks))
        list_push_back (&self->sessions_leaving, &session->of_tasks);
}

void session_leave (tasks_t *self, session_t *session)
{
    assert (session->live == 0);
    session->stored->leaving = true;
    put_row (self, session);
    leave (self, session);
}

void session_remove (tasks_t *self, session_t *session, const char *message)
{
    space_t *space = session->space;
    row_key_t key = key_of (session);
    tell (self, session, TMQ_EVENT_REMOVED, NULL, message);
    rows_put (self, row_make_gone (ROW_KIND_SESSION, key.bytes, key.length));
    delist (space, session);
    session->gone = true;
    alarm_disarm (&session->alarm);
    list_remove (&session->of_tasks);
    if (session->uses == 0)
        free_session (self, session);
    else
        list_push_back (&self->sessions_gone, &session->of_tasks);
    space_release (self, space);
}

const char *sessions_are_full (const tasks_t *self, const space_t *space, const session_t *session,
                               size_t bytes, size_t *limit)
{
    const engine_config_t *config = &self->base->config;
    size_t before = session == NULL ? 0 : session->bytes;
    bool grows = bytes + SESSION_MEMORY_BYTES > before;
    *limit = config->space_sessions_max;
    if (session == NULL && space->sessions_count >= config->space_sessions_max)
        return "sessions of the namespace";
    *limit = config->sessions_bytes_max;
    if (grows &&
        self->sessions_bytes - before + bytes + SESSION_MEMORY_BYTES > config->sessions_bytes_max)
        return "bytes of sessions";
    return NULL;
}

/* Tasks. */

static void use (task_t *task, session_t *session)
{
    task->session = session;
    session->uses++;
}

static void unuse (tasks_t *self, session_t *session)
{
    if (--session->uses == 0 && session->gone)
        free_session (self, session);
}

/* The one of this name, with its row. */
static session_t *found_or_made (tasks_t *self, space_t *space, const char *name, const char *owner)
{
    session_t *session = session_find (space, name);
    if (session == NULL) {
        session = session_make (self, space, name, owner);
        session_changed (self, session, owner, "made");
    }
    return session;
}

void session_take (tasks_t *self, task_t *task, space_t *space, const char *name, const char *owner)
{
    if (name[0] != '\0')
        use (task, found_or_made (self, space, name, owner));
}

void session_begin (tasks_t *self, space_t *space, const char *name, const char *owner)
{
    if (name[0] != '\0')
        found_or_made (self, space, name, owner);
}

void session_take_back (tasks_t *self, task_t *task, space_t *space, const char *name,
                        const char *owner)
{
    if (name[0] == '\0')
        return;
    session_t *session = session_find (space, name);
    if (session == NULL)
        session = task_is_terminal (task) ? make_detached (self, space, name, owner)
                                          : session_make (self, space, name, owner);
    use (task, session);
}

void session_drop (tasks_t *self, task_t *task)
{
    session_t *session = task->session;
    task->session = NULL;
    if (session != NULL)
        unuse (self, session);
}

void session_add_task (tasks_t *self, task_t *task)
{
    session_t *session = task->session;
    if (session == NULL)
        return;
    if (session->gone) { /* a task of long ago is tried again */
        session_t *next =
            found_or_made (self, session->space, session->name->text, name_text (task->owner));
        use (task, next);
        unuse (self, session);
        session = next;
    }
    session->live++;
    alarm_disarm (&session->alarm);
}

void session_end_task (tasks_t *self, const task_t *task)
{
    session_t *session = task->session;
    if (session == NULL)
        return;
    uint64_t now = (uint64_t) self->base->clocks.wall_ms;
    if (--session->live > 0)
        return;
    if (now > session->stored->last_task_at + DAY_MS) { /* not with each task */
        session->stored->last_task_at = now;
        put_row (self, session);
    }
    arm (self, session);
}

void session_hold (tasks_t *self, task_t *task)
{
    assert (!task->ready && !task->held);
    task->held = true;
    task->due = true; /* what not_before was has passed for good */
    list_push_back (&task->session->held, &task->place);
    task->queue->held++;
    self->held++;
}

void session_unhold (tasks_t *self, task_t *task)
{
    list_unlink (&task->place);
    task->held = false;
    task->queue->held--;
    self->held--;
}

void session_alarm (tasks_t *self, session_t *session)
{
    const Taskmq__Session *stored = session->stored;
    int64_t due_ms = (int64_t) stored->last_task_at + SESSION_KEPT_MS;
    if (due_ms > clocks_expiry_ms (&self->base->clocks) || self->base->stopping)
        arm (self, session);
    else if (stored->chosen)
        session_leave (self, session);
    else
        session_remove (self, session, "forgotten");
    self->open.inputs++;
}

/* Start and end. */

void session_load (tasks_t *self, const row_t *row)
{
    const char *ns = (const char *) buf_bytes (row->key);
    size_t length = buf_length (row->key);
    if (row->gone || length == 0 || ns[length - 1] != '\0')
        return;
    Taskmq__Session *stored =
        taskmq__session__unpack (NULL, buf_length (row->body), buf_bytes (row->body));
    if (stored == NULL)
        return;
    if (stored->name[0] == '\0') { /* not what this version wrote */
        taskmq__session__free_unpacked (stored, NULL);
        return;
    }
    space_t *space = space_make (self, ns);
    session_t *session = new_session (self, space, stored);
    count_bytes (self, session, buf_length (row->body) + SESSION_MEMORY_BYTES);
    enlist (space, session);
    if (stored->leaving)
        leave (self, session);
    else
        arm (self, session);
}

void sessions_clear (tasks_t *self)
{
    size_t cursor = 0;
    node_t *gone = &self->sessions_gone;
    for (node_t *node = list_pop_front (gone); node != NULL; node = list_pop_front (gone))
        free_session (self, LIST_ITEM (node, session_t, of_tasks));
    for (space_t *space = map_each (&self->spaces, &cursor); space != NULL;
         space = map_each (&self->spaces, &cursor)) {
        for (size_t i = 0; i < space->sessions_count; i++)
            free_session (self, space->sessions[i]);
        free (space->sessions);
        space->sessions = NULL;
        space->sessions_count = space->sessions_capacity = 0;
    }
    list_init (&self->sessions_leaving);
    self->held = 0;
}
