/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a link may do, and what it sees. */
#include "core/access/access.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* Somebody whom a gateway acts for: a principal of his own name, with the gateway's quotas and
 * those of its grants that let it act for others. */
struct behalf {
    _Atomic unsigned users;
    principal_t principal;
    grant_t everything; /* of a gateway that needs no grant */
    char name[];
};

behalf_t *behalf_keep (behalf_t *self)
{
    if (self != NULL)
        self->users++;
    return self;
}

static void behalf_drop (behalf_t *self)
{
    if (self != NULL && --self->users == 0)
        free (self);
}

static role_t role_in (const access_t *self, const grant_t *grant)
{
    return self->behalf != NULL ? ROLE_CLIENT : grant->role;
}

/* A client ends and sees its own tasks alone; that it submits is asked of the queue. */
static unsigned rights_over_all (const access_t *self, const grant_t *grant)
{
    role_t role = role_in (self, grant);
    return role == ROLE_CLIENT ? role_rights (role) & RIGHT_SUBMIT : role_rights (role);
}

static void add_grant (access_t *self, size_t i)
{
    const grant_t *grant = &self->principal->grants[i];
    self->grants |= UINT64_C (1) << i;
    self->rights |= RIGHT_LINK | role_rights (role_in (self, grant));
    if (glob_is_open (&grant->queue))
        self->everywhere |= RIGHT_LINK | rights_over_all (self, grant);
}

static bool is_user_of_broker (const policy_t *policy, const char *identity)
{
    if (strncmp (identity, "uid:", 4) != 0)
        return false;
    return policy_is_own_uid (policy, (uint32_t) strtoul (identity + 4, NULL, 10));
}

static behalf_t *behalf_new (const principal_t *gateway, const char *name)
{
    size_t size = strlen (name) + 1;
    behalf_t *self = memory_zero (1, sizeof (*self) + size);
    self->users = 1;
    memcpy (self->name, name, size);
    if (gateway != NULL) {
        self->principal = *gateway; /* texts and grants are the policy's, which access keeps */
    } else {
        self->everything = (grant_t){.role = ROLE_GATEWAY, .space.open = true, .queue.open = true};
        self->principal.grants = &self->everything;
        self->principal.grants_count = 1;
        self->principal.may = self->principal.same = "";
        for (size_t i = 0; i < QUOTAS; i++)
            self->principal.quotas[i] = UINT64_MAX;
    }
    self->principal.name = self->name;
    self->principal.owns_count = 0;
    return self;
}

static bool link_behalf (access_t *out, policy_t *policy, const char *identity, size_t length,
                         const char *space, int64_t now_ms)
{
    char name[IDENTITY_SIZE] = "";
    access_t gateway;
    *out = (access_t){0};
    if (length >= sizeof (name))
        return false;
    memcpy (name, identity, length);
    if (access_link (&gateway, policy, name, space, now_ms) &&
        access_may (&gateway, RIGHT_BEHALF)) {
        out->policy = policy_keep (policy);
        out->behalf = behalf_new (gateway.principal, identity);
        out->principal = &out->behalf->principal;
        for (size_t i = 0; i < out->principal->grants_count; i++)
            if ((gateway.principal == NULL || (gateway.grants >> i & 1) != 0) &&
                (role_rights (out->principal->grants[i].role) & RIGHT_BEHALF) != 0)
                add_grant (out, i);
    }
    access_clear (&gateway);
    return out->rights != 0;
}

bool access_link (access_t *out, policy_t *policy, const char *identity, const char *space,
                  int64_t now_ms)
{
    if (access_is_behalf (identity))
        return link_behalf (out, policy, identity,
                            (size_t) (strchr (identity, BEHALF_MARK) - identity), space, now_ms);
    *out = (access_t){.policy = policy_keep (policy)};
    if (policy == NULL || is_user_of_broker (policy, identity)) {
        out->rights = out->everywhere = RIGHTS_ALL;
        return true;
    }
    bool invited = strncmp (identity, "invite:", 7) == 0;
    const principal_t *principal = policy_by_name (policy, invited ? identity + 7 : identity);
    if (principal == NULL || principal->is_invitation != invited ||
        (principal->until_ms != 0 && principal->until_ms <= now_ms))
        return false;
    out->principal = principal;
    if (invited)
        out->rights = RIGHT_LINK | RIGHT_ENROLL;
    for (size_t i = 0; i < principal->grants_count && !invited; i++) {
        if (glob_takes (&principal->grants[i].space, space))
            add_grant (out, i);
    }
    return out->rights != 0;
}

void access_clear (access_t *self)
{
    policy_drop (self->policy);
    behalf_drop (self->behalf);
    *self = (access_t){0};
}

/* The link's grants in the queue, kept for the next question. */
static void ask_queue (access_t *self, const char *queue)
{
    if (self->principal == NULL || strcmp (self->queue, queue) == 0)
        return;
    self->in_queue = self->everywhere;
    self->in_queue_own = 0;
    for (size_t i = 0; i < self->principal->grants_count; i++) {
        const grant_t *grant = &self->principal->grants[i];
        if ((self->grants >> i & 1) == 0 || !glob_takes (&grant->queue, queue))
            continue;
        self->in_queue |= rights_over_all (self, grant);
        self->in_queue_own |= role_rights (role_in (self, grant));
    }
    strncpy (self->queue, queue, sizeof (self->queue) - 1);
}

bool access_queue (access_t *self, const char *queue, unsigned rights)
{
    ask_queue (self, queue);
    return ((self->everywhere | self->in_queue | self->in_queue_own) & rights) != 0;
}

bool access_sees_entry (const access_t *self, const char *owner, unsigned rights)
{
    return (self->everywhere & rights) != 0 ||
           ((self->rights & rights) != 0 && principal_is (self->principal, owner));
}

bool access_sees_task (access_t *self, const char *queue, const char *owner, const char *holder,
                       unsigned rights)
{
    ask_queue (self, queue);
    if ((self->in_queue & rights) != 0)
        return true;
    if ((self->in_queue_own & rights) != 0 && principal_is (self->principal, owner))
        return true;
    return (self->in_queue & RIGHT_WORK) != 0 && (rights & (RIGHT_READ | RIGHT_BODY)) != 0 &&
           holder != NULL && principal_is (self->principal, holder);
}
