/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Is there room for one more live task? */
#ifndef TASKMQ_CORE_ROOM_H
#define TASKMQ_CORE_ROOM_H

#include "core/requests/answer.h"
#include "core/requests/quota.h"
#include "core/requests/requests.h"

typedef struct room_refusal {
    char text[LIMIT_TEXT_SIZE];
} room_refusal_t;
/* As many as there may be: of the broker, or of the namespace. texts_bytes: of what it brings. */
bool room_refuses (const requests_t *self, const space_t *space, size_t payload_bytes,
                   size_t texts_bytes, room_refusal_t *out);
/* What there is too much of for one more task of so many bytes in the queue, by what is set for it,
 * and the *limit; NULL: there is room. */
const char *room_of_queue (const requests_t *self, const space_t *space, const char *name,
                           size_t payload_bytes, size_t *limit);
/* The disk is full, or too much is pending: answers the request, which brings live tasks. */
bool room_refused_at_once (call_t *call);

#endif
