/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker's places at its queues. */
#ifndef TASKMQ_CORE_WORKER_H
#define TASKMQ_CORE_WORKER_H

#include "core/match/match.h"

/* It serves these queues from now on. */
void worker_sit (match_t *self, worker_t *worker, char *const *queues, size_t count);
/* What so many places at queues take. */
size_t worker_seats_bytes (size_t count);
/* Takes it from its link and its queues. */
void worker_detach (match_t *self, worker_t *worker);
/* Puts a worker's seats into the waiting lists or takes them out, as its state asks. */
void worker_update (match_t *self, worker_t *worker);
void worker_update_link (match_t *self, link_t *link); /* … all of a link's */
/* How a lease is given back: not counted, or as a lost one. */
typedef enum worker_drop { WORKER_RETURNS, WORKER_LOSES } worker_drop_t;
/* Everything that the worker holds is given back, in as many rounds as it takes. why: static. */
void worker_drop_leases (match_t *self, worker_t *worker, worker_drop_t how, const char *why);
/* … but what is marked as listed; the marks go. */
void worker_drop_unlisted (match_t *self, worker_t *worker, const char *why);
/* It came back before all that it had dropped was given back: it has the rest again. */
void worker_take_back (worker_t *worker);
/* Gives back what was dropped, as far as this round's allowance goes. */
void workers_give_back (match_t *self);
/* Looks at the workers that tasks marked; frees those that are gone. */
void workers_follow (match_t *self);
void workers_clear (match_t *self); /* frees all of them */

#endif
