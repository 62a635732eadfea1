/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What ends with a link: its subscriptions, waits, workers and what waits to leave for it. */
#ifndef TASKMQ_CORE_PARTING_H
#define TASKMQ_CORE_PARTING_H

#include "core/requests/requests.h"

/* Ends a link. Leases are given back only after a goodbye: otherwise the worker may come back. What
 * waits to leave for it still does after a goodbye, and is dropped without. */
void parting_end (requests_t *self, link_t *link, bool goodbye);
/* Ends a link without a goodbye. May free it. */
void parting_close (requests_t *self, link_t *link);
/* … because its principal may do nothing any more: leases are given back at once, not counted. May
 * free it. */
void parting_revoke (requests_t *self, link_t *link);
/* … the same for a worker without a link. May free it. */
void parting_revoke_worker (requests_t *self, worker_t *worker);
/* An answer to it could not leave: what it asks next is told NO_LINK. May free it. */
void parting_lose (requests_t *self, link_t *link);
/* The end of the grace of a worker whose link ended otherwise. May free it. */
void parting_worker_alarm (requests_t *self, worker_t *worker);
/* Silence, or the end of the grace. May free it. */
void parting_alarm (requests_t *self, link_t *link);

#endif
