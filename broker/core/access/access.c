/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What a link may do, and what it sees. */
#include "core/access/access.h"

#include <stdlib.h>
#include <string.h>

/* A client ends and sees its own tasks alone; that it submits is asked of the queue. */
static unsigned rights_over_all (const grant_t *grant)
{
    unsigned rights = role_rights (grant->role);
    return grant->role == ROLE_CLIENT ? rights & RIGHT_SUBMIT : rights;
}

static bool is_user_of_broker (const policy_t *policy, const char *identity)
{
    if (strncmp (identity, "uid:", 4) != 0)
        return false;
    return policy_is_own_uid (policy, (uint32_t) strtoul (identity + 4, NULL, 10));
}

bool access_link (access_t *out, policy_t *policy, const char *identity, const char *space,
                  int64_t now_ms)
{
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
        const grant_t *grant = &principal->grants[i];
        if (!glob_takes (&grant->space, space))
            continue;
        out->grants |= UINT64_C (1) << i;
        out->rights |= RIGHT_LINK | role_rights (grant->role);
        if (glob_is_open (&grant->queue))
            out->everywhere |= RIGHT_LINK | rights_over_all (grant);
    }
    return out->rights != 0;
}

void access_clear (access_t *self)
{
    policy_drop (self->policy);
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
        self->in_queue |= rights_over_all (grant);
        self->in_queue_own |= role_rights (grant->role);
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
