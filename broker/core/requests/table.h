/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One row for each request: who handles it, and what it wants of the tables. */
#ifndef TASKMQ_CORE_TABLE_H
#define TASKMQ_CORE_TABLE_H

#include "core/reads/want.h"
#include "core/requests/requests.h"

/* Appends the keys that the request needs and memory does not answer. link: established. */
void request_want (requests_t *self, link_t *link, const Taskmq__Request *request,
                   const verdict_t *items, key_list_t *keys);
/* What it takes of a round's allowance of requests. link: established, or NULL. Changes nothing. */
size_t request_cost (const requests_t *self, const link_t *link, const Taskmq__Request *request);
/* Handles one request of a link that showed its token (linked) or did not. call->link may be
 * another one, or dead, afterwards. */
void request_handle (call_t *call, bool linked);

#endif
