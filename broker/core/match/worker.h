/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker's places at its queues. */
#ifndef TASKMQ_CORE_WORKER_H
#define TASKMQ_CORE_WORKER_H

#include "core/match/match.h"

/* It serves these queues from now on. */
void worker_sit (match_t *self, worker_t *worker, char *const *queues, size_t count);
/* Takes it from its link and its queues. */
void worker_detach (match_t *self, worker_t *worker);
/* Puts a worker's seats into the waiting lists or takes them out, as its state asks. */
void worker_update (match_t *self, worker_t *worker);
void worker_update_link (match_t *self, link_t *link); /* … all of a link's */
/* Gives back everything that the worker holds: returned (not counted) or lost. */
void worker_drop_leases (match_t *self, worker_t *worker, bool lost, const char *why);
/* Looks at the workers that tasks marked; frees those that are gone. */
void workers_follow (match_t *self);
void workers_clear (match_t *self); /* frees all of them */

#endif
