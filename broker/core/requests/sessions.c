/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions, as clients set and read them. */
#include "core/requests/sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/extra.h"
#include "core/requests/answer.h"
#include "core/requests/deeds.h"
#include "core/requests/quota.h"
#include "core/requests/shared.h"
#include "core/tasks/entries.h"
#include "core/tasks/journal.h"
#include "core/tasks/lanes.h"
#include "core/tasks/makers.h"
#include "core/tasks/session.h"
#include "types.h"

enum { SEES = RIGHT_READ | RIGHT_OBSERVE };

bool session_is_seen (const requests_t *self, const link_t *link, const session_t *session)
{
    const char *name = session->name->text;
    const char *owner = session->stored->owner;
    return !session->stored->leaving && (shared_sees (self, link, name, owner, SEES) ||
                                         shared_may_change (self, link, name, owner));
}

/* Tasks that come. */

tmq_code_t session_refuses (const requests_t *self, const space_t *space, const link_t *link,
                            const char *name, char text[SESSION_REFUSAL_SIZE])
{
    if (name[0] == '\0')
        return TMQ_OK;
    size_t limit;
    const session_t *session = session_find (space, name);
    const char *full = session == NULL ? sessions_are_full (self->tasks, space, NULL,
                                                            2 * TMQ_NAME_LENGTH_MAX, &limit)
                                       : NULL;
    if (full != NULL) {
        limit_text (text, full, limit);
        return TMQ_LIMIT;
    }
    const Taskmq__Session *stored = session == NULL ? NULL : session->stored;
    if (stored != NULL && stored->leaving) {
        snprintf (text, SESSION_REFUSAL_SIZE, "session %s is being removed", name);
        return TMQ_LIMIT;
    }
    if (stored != NULL && stored->status == TMQ_SESSION_STATUS_COMPLETE) {
        snprintf (text, SESSION_REFUSAL_SIZE, "session %s is complete, and takes no tasks", name);
        return TMQ_WRONG_STATUS;
    }
    if (stored != NULL && stored->status == TMQ_SESSION_STATUS_FROZEN) {
        bool told =
            stored->status_why[0] != '\0' && link != NULL && session_is_seen (self, link, session);
        snprintf (text, SESSION_REFUSAL_SIZE, "session %s is frozen, and takes no tasks%s%s", name,
                  told ? ": " : "", told ? stored->status_why : "");
        return TMQ_LIMIT;
    }
    return TMQ_OK;
}

/* Reading. */

static bool is_seen (const call_t *call, const session_t *session)
{
    return session_is_seen (call->requests, call->link, session);
}

/* As it is shown: without what only the store needs. */
static Taskmq__Session shown (const session_t *session, bool context)
{
    Taskmq__Session out = *session->stored;
    out.n_request_ids = 0;
    out.tasks = session->live;
    if (!context)
        out.context = (char *) protobuf_c_empty_string;
    return out;
}

static void answer (call_t *call, const session_t *session)
{
    bytes_mark_t mark;
    bytes_t *out = reply_open (call->requests, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    Taskmq__Session message = shown (session, true);
    bytes_append_message (out, TASKMQ__REPLY__BODY_SESSION, &message.base);
    reply_close (call->requests, call->link, mark, journal_batch (call->requests->tasks), NULL);
}

/* NULL: it was answered. */
static session_t *find (call_t *call, const char *name)
{
    session_t *session = session_find (call->link->space, name);
    if (session != NULL && is_seen (call, session))
        return session;
    reply_code (call, TMQ_NOT_FOUND, "no such session");
    return NULL;
}

void on_session_show (call_t *call)
{
    const session_t *session = find (call, call->request->session_show->name);
    if (session != NULL)
        answer (call, session);
}

void on_session_list (call_t *call)
{
    requests_t *self = call->requests;
    const Taskmq__SessionList *request = call->request->session_list;
    size_t count;
    session_t *const *sessions = sessions_behind (call->link->space, request->after, &count);
    if (quota_answered (call, quota_read (self, call->link)))
        return;
    size_t left = request->limit == 0 ? TMQ_LIST_LIMIT_DEFAULT : request->limit;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_mark_t page = bytes_open (out, TASKMQ__REPLY__BODY_SESSION_PAGE);
    for (size_t i = 0; i < count; i++) {
        if (!is_seen (call, sessions[i]))
            continue;
        Taskmq__Session message = shown (sessions[i], false);
        if (!reply_page_add (out, &message.base, &left))
            break;
    }
    bytes_close (out, page);
    reply_close (self, call->link, mark, journal_batch (self->tasks), NULL);
}

/* Changes. */

/* The link may change it; else the request was answered. */
static bool may_change (call_t *call, const session_t *session)
{
    const char *name = session->name->text;
    if (shared_may_change (call->requests, call->link, name, session->stored->owner))
        return true;
    deny (call);
    reply_code (call, TMQ_DENIED, "the session belongs to somebody else");
    return false;
}

static void changed (call_t *call, session_t *session, const char *message)
{
    tasks_t *tasks = call->requests->tasks;
    session->stored->chosen = true;
    session_remember (session, &call->request->request_id);
    journal_input (tasks);
    session_changed (tasks, session, name_text (call->link->identity), message);
    answer (call, session);
}

/* set. */

static bool is_label_named (const Taskmq__SessionSet *set, const char *key)
{
    for (size_t i = 0; i < set->n_labels; i++)
        if (strcmp (set->labels[i]->key, key) == 0)
            return true;
    for (size_t i = 0; i < set->n_drop_labels; i++)
        if (strcmp (set->drop_labels[i], key) == 0)
            return true;
    return false;
}

static size_t labels_count (const Taskmq__Session *stored, const Taskmq__SessionSet *set)
{
    size_t count = set->n_labels;
    for (size_t i = 0; stored != NULL && i < stored->n_labels; i++)
        count += !is_label_named (set, stored->labels[i]->key);
    return count;
}

static Taskmq__Label *copy_label (const Taskmq__Label *label)
{
    Taskmq__Label *copy = memory_alloc (sizeof (*copy));
    taskmq__label__init (copy);
    extra_set_text (&copy->key, label->key);
    extra_set_text (&copy->value, label->value);
    return copy;
}

static void set_labels (Taskmq__Session *stored, const Taskmq__SessionSet *set)
{
    size_t count = 0;
    Taskmq__Label **labels =
        memory_alloc ((stored->n_labels + set->n_labels) * sizeof (Taskmq__Label *));
    for (size_t i = 0; i < stored->n_labels; i++)
        if (is_label_named (set, stored->labels[i]->key))
            taskmq__label__free_unpacked (stored->labels[i], NULL);
        else
            labels[count++] = stored->labels[i];
    for (size_t i = 0; i < set->n_labels; i++)
        labels[count++] = copy_label (set->labels[i]);
    free (stored->labels);
    stored->labels = labels;
    stored->n_labels = count;
}

static void take_fields (Taskmq__Session *stored, const Taskmq__SessionSet *set)
{
    for (size_t i = 0; i < set->n_fields; i++) {
        switch (set->fields[i]) {
        case TMQ_SESSION_FIELD_GOAL: extra_set_text (&stored->goal, set->goal); break;
        case TMQ_SESSION_FIELD_SALIENCE: stored->salience = set->salience; break;
        case TMQ_SESSION_FIELD_CONTEXT: extra_set_text (&stored->context, set->context); break;
        default: break;
        }
    }
    if (set->n_labels > 0 || set->n_drop_labels > 0)
        set_labels (stored, set);
}

/* There is no room for what is to be set, or for the session. */
static bool refuse_more (call_t *call, const session_t *session)
{
    requests_t *self = call->requests;
    const Taskmq__SessionSet *set = call->request->session_set;
    size_t labels = labels_count (session == NULL ? NULL : session->stored, set);
    size_t bytes = taskmq__session_set__get_packed_size (set);
    size_t limit;
    if (labels > TMQ_LABELS_MAX) {
        char text[LIMIT_TEXT_SIZE];
        snprintf (text, sizeof (text), "labels: %zu of them, at most %d", labels, TMQ_LABELS_MAX);
        reply_code (call, TMQ_TOO_LARGE, text);
        return true;
    }
    if (session != NULL)
        bytes += taskmq__session__get_packed_size (session->stored);
    const char *full = sessions_are_full (self->tasks, call->link->space, session, bytes, &limit);
    if (full != NULL)
        reply_limit (call, full, limit);
    return full != NULL;
}

/* There is one of this name, and the link may not set it. */
static bool refuse_name (call_t *call, const session_t *session)
{
    if (shared_is_leaving (call, session->name->text))
        return true;
    if (is_seen (call, session))
        return !may_change (call, session);
    reply_code (call, TMQ_CONFLICT, "the name is in use");
    return true;
}

static session_t *make (call_t *call, const char *name)
{
    requests_t *self = call->requests;
    space_t *space = call->link->space;
    makers_count (self->tasks, space, call->link->identity);
    return session_make (self->tasks, space, name, name_text (call->link->identity));
}

void on_session_set (call_t *call)
{
    const Taskmq__SessionSet *set = call->request->session_set;
    session_t *session = session_find (call->link->space, set->name);
    if (session != NULL && is_seen (call, session) &&
        session_was_changed_by (session, &call->request->request_id)) {
        answer (call, session);
        return;
    }
    if (new_is_refused (call) || (session != NULL && refuse_name (call, session)))
        return;
    if (session == NULL && !shared_may_make (call->requests, call->link, set->name)) {
        deny (call);
        reply_code (call, TMQ_DENIED, "no right to make a session here");
        return;
    }
    if (refuse_more (call, session))
        return;
    if (session == NULL)
        session = make (call, set->name);
    uint32_t salience = session->stored->salience;
    take_fields (session->stored, set);
    if (session->stored->salience != salience)
        lanes_weigh (call->requests->tasks, session);
    changed (call, session, "set");
}

/* status. */

void on_session_status (call_t *call)
{
    const Taskmq__SessionStatus *request = call->request->session_status;
    session_t *session = find (call, request->name);
    if (session == NULL || !may_change (call, session))
        return;
    Taskmq__Session *stored = session->stored;
    if (session_was_changed_by (session, &call->request->request_id) ||
        stored->status == request->status) { /* that is no mistake */
        answer (call, session);
        return;
    }
    char message[TMQ_SESSION_WHY_BYTES_MAX + 16];
    bool why = request->why[0] != '\0';
    snprintf (message, sizeof (message), "%s%s%s", session_status_text (request->status),
              why ? ": " : "", request->why);
    extra_set_text (&stored->status_by, name_text (call->link->identity));
    extra_set_text (&stored->status_why, request->why);
    session_status (call->requests->tasks, session, (tmq_session_status_t) request->status);
    changed (call, session, message);
}

/* remove. */

void on_session_remove (call_t *call)
{
    requests_t *self = call->requests;
    space_t *space = call->link->space;
    const uint8_t *request_id = call->request->request_id.data;
    if (entries_removed_by (space, request_id) != 0) {
        reply_code (call, TMQ_OK, NULL);
        return;
    }
    session_t *session = find (call, call->request->session_remove->name);
    if (session == NULL || !may_change (call, session))
        return;
    if (session->live > 0) {
        char text[96];
        snprintf (text, sizeof (text), "the session has live tasks, %u of them", session->live);
        reply_code (call, TMQ_CONFLICT, text);
        return;
    }
    journal_input (self->tasks);
    entries_note_removal (self->tasks, space, request_id, 1);
    session_leave (self->tasks, session);
    reply_code (call, TMQ_OK, NULL);
}
