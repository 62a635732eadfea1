/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/tasks/members.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/tasks/session.h"

struct member {
    uint64_t serial;
    name_t *session;
    uint32_t hash;
    uint32_t leases;
};

static uint32_t hash_of (const tasks_t *self, uint64_t serial, const char *session)
{
    return secrets_hash (&self->base->secrets, session, strlen (session)) ^ (uint32_t) serial;
}

static member_t *find (const tasks_t *self, uint64_t serial, const char *session, uint32_t hash)
{
    size_t cursor = MAP_START;
    member_t *member = map_next (&self->members, hash, &cursor);
    while (member != NULL &&
           (member->serial != serial || strcmp (member->session->text, session) != 0))
        member = map_next (&self->members, hash, &cursor);
    return member;
}

bool members_have (const tasks_t *self, uint64_t serial, const char *session)
{
    return self->members.count > 0 && session[0] != '\0' &&
           find (self, serial, session, hash_of (self, serial, session)) != NULL;
}

void members_add (tasks_t *self, const worker_t *worker, const task_t *task)
{
    if (task->session == NULL || worker->link == NULL)
        return;
    name_t *session = task->session->name;
    uint32_t hash = hash_of (self, worker->serial, session->text);
    member_t *member = find (self, worker->serial, session->text, hash);
    if (member == NULL) {
        member = memory_alloc (sizeof (*member));
        *member = (member_t){worker->serial, names_share (session), hash, 0};
        map_insert (&self->members, hash, member);
    }
    member->leases++;
    task->detail->member = member;
}

static void free_member (tasks_t *self, member_t *member)
{
    map_remove (&self->members, member->hash, member);
    names_drop (&self->base->names, member->session);
    free (member);
}

void members_remove (tasks_t *self, detail_t *detail)
{
    member_t *member = detail->member;
    detail->member = NULL;
    if (member != NULL && --member->leases == 0)
        free_member (self, member);
}

void members_move (tasks_t *self, const worker_t *worker)
{
    for (node_t *node = worker->leases.next; node != &worker->leases; node = node->next) {
        detail_t *detail = LIST_ITEM (node, detail_t, held);
        members_remove (self, detail);
        members_add (self, worker, detail->task);
    }
}

void members_clear (tasks_t *self)
{
    size_t cursor = 0;
    for (member_t *member = map_each (&self->members, &cursor); member != NULL;
         member = map_each (&self->members, &cursor)) {
        names_drop (&self->base->names, member->session);
        free (member);
    }
    map_free (&self->members);
}
