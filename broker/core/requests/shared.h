/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who may see and change what stands in a namespace beside its tasks. */
#ifndef TASKMQ_CORE_REQUESTS_SHARED_H
#define TASKMQ_CORE_REQUESTS_SHARED_H

#include "core/requests/requests.h"

/* The link has one of the rights over what belongs to this owner: its own, all with a grant for
 * every queue, or all of a session in which one of its workers holds a lease. */
bool shared_sees (const requests_t *self, const link_t *link, const char *session,
                  const char *owner, unsigned rights);
/* The session is being removed: nothing may be put into it, which was answered. */
bool shared_is_leaving (call_t *call, const char *session);
/* It may make something in the session, or with an empty one in the namespace. */
bool shared_may_make (const requests_t *self, const link_t *link, const char *session);
/* It may change or remove what belongs to this owner. */
bool shared_may_change (const requests_t *self, const link_t *link, const char *session,
                        const char *owner);

#endif
