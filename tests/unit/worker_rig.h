/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker on the rig of the library's core, and a broker's part of its leases. */
#ifndef TASKMQ_TEST_WORKER_RIG_H
#define TASKMQ_TEST_WORKER_RIG_H

#include "lib_rig.h"

enum { LEASE_MS = 30000 }; /* of each lease that the rig gives */

/* A worker of queues "a" and "b"; it is not registered yet. */
core_worker_t *rig_worker (rig_t *rig, uint32_t capacity, bool notify);
/* Answers the register that has to be next; it lists so many leases, and each gets this code. */
void rig_registered (rig_t *rig, size_t leases, int code);
/* Gives task number, counted by assignment, to the worker that registered last. */
void rig_assign (rig_t *rig, uint64_t assignment, uint32_t task);
/* The worker's next assignment, which has to be that task; to be freed. */
tmq_assignment_t *rig_task (core_worker_t *worker, uint32_t task);
/* The broker tells the worker that its attempt is over, with this error code; 0: a cancel. */
void rig_end_task (rig_t *rig, uint32_t task, int32_t code);
/* The next change of an attempt of the worker's, which has to be this one. */
void rig_change (core_worker_t *worker, tmq_attempt_state_t expected);
/* A linked rig with one registered worker that holds task 1. */
rig_t *rig_working (core_worker_t **worker, tmq_assignment_t **assignment);
void rig_finish (rig_t *rig, tmq_assignment_t *assignment);
/* Says how an attempt ended; the library's code. */
int rig_end (core_worker_t *worker, rig_t *rig, tmq_op_t op, const tmq_assignment_t *of,
             const char *result);

#endif
