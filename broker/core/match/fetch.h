/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Payloads of queued tasks that only the tables have. */
#ifndef TASKMQ_CORE_FETCH_H
#define TASKMQ_CORE_FETCH_H

#include "core/match/match.h"
#include "core/reads/want.h"

/* The head of the queue has no payload in memory. */
void fetch_later (match_t *self, queue_t *queue);
void fetch_want (match_t *self, key_list_t *keys);
/* What was looked up goes to its tasks, and their queues are looked at again. */
void fetch_take (match_t *self);
/* The store was out of reach: what was asked for with these keys is asked for again. */
void fetch_unread (match_t *self, const key_list_t *keys);
void fetch_clear (match_t *self); /* forgets what was read ahead */

#endif
