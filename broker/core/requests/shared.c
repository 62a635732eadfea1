/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "core/requests/shared.h"

#include "core/peers/link.h"
#include "core/requests/answer.h"
#include "core/tasks/members.h"
#include "core/tasks/session.h"

/* One of its workers works in the session. */
static bool holds_in (const requests_t *self, const link_t *link, const char *session)
{
    return access_may (&link->access, RIGHT_WORK) &&
           members_have (self->tasks, link->serial, session);
}

static bool is_own (const link_t *link, const char *owner, unsigned rights)
{
    return access_may (&link->access, rights) && link_is (link, owner);
}

bool shared_sees (const requests_t *self, const link_t *link, const char *session,
                  const char *owner, unsigned rights)
{
    return (link->access.everywhere & rights) != 0 || is_own (link, owner, rights) ||
           holds_in (self, link, session);
}

bool shared_is_leaving (call_t *call, const char *name)
{
    const session_t *session = name[0] == '\0' ? NULL : session_find (call->link->space, name);
    if (session == NULL || !session->stored->leaving)
        return false;
    reply_code_at_once (call, TMQ_LIMIT, "the session is being removed", LIMIT_RETRY_MS);
    return true;
}

bool shared_may_make (const requests_t *self, const link_t *link, const char *session)
{
    return access_may (&link->access, RIGHT_SUBMIT) || holds_in (self, link, session);
}

bool shared_may_change (const requests_t *self, const link_t *link, const char *session,
                        const char *owner)
{
    return (link->access.everywhere & RIGHT_CANCEL) != 0 ||
           is_own (link, owner, RIGHT_SUBMIT | RIGHT_WORK) || holds_in (self, link, session);
}
