/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Who works in which session: a link is a member of it while one of its workers holds a lease of a
 * task there. Leases are counted by link and session, so that the question costs one look. */
#ifndef TASKMQ_CORE_MEMBERS_H
#define TASKMQ_CORE_MEMBERS_H

#include "core/tasks/tasks.h"

/* serial: of the link. session: its name. */
bool members_have (const tasks_t *self, uint64_t serial, const char *session);
/* The worker has the lease, or has it no more. */
void members_add (tasks_t *self, const worker_t *worker, const task_t *task);
void members_remove (tasks_t *self, detail_t *detail);
/* … all its leases, whose link is another one now, or is none. Those of a link that ended need not
 * be removed: nobody asks for its serial again. */
void members_move (tasks_t *self, const worker_t *worker);
/* Frees all; the tasks have gone. */
void members_clear (tasks_t *self);

#endif
