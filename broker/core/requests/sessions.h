/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What sessions have to say about tasks that come. */
#ifndef TASKMQ_CORE_REQUESTS_SESSIONS_H
#define TASKMQ_CORE_REQUESTS_SESSIONS_H

#include "core/requests/requests.h"

enum { SESSION_REFUSAL_SIZE = 400 };

/* Why a session takes no task now: LIMIT, or WRONG_STATUS of one that is complete. OK: it takes
 * one, or will be made by it. What somebody wrote as the reason is told to who sees the session;
 * link: NULL for nobody. */
tmq_code_t session_refuses (const requests_t *self, const space_t *space, const link_t *link,
                            const char *name, char text[SESSION_REFUSAL_SIZE]);
bool session_is_seen (const requests_t *self, const link_t *link, const session_t *session);

#endif
