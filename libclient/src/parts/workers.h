/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers: registration on every new link, assignments, leases and their renewal. */
#ifndef TASKMQ_CLIENT_WORKERS_H
#define TASKMQ_CLIENT_WORKERS_H

#include "base/bodies.h"
#include "parts/attempts.h"

void core_workers_link (core_workers_t *all);
void core_workers_unlink (core_workers_t *all);
/* A heartbeat is sent: credit goes with it. */
void core_workers_beat (core_workers_t *all);
/* The broker does not know the worker to which this credit belonged. */
void core_workers_refused (core_workers_t *all, uint64_t number);
void core_workers_output (core_workers_t *all);
/* True if core_workers_output has something that cannot wait for other messages. */
bool core_workers_waiting (const core_workers_t *all);
void core_workers_reply (core_workers_t *all, const core_request_t *request,
                         const Taskmq__Reply *reply);
bool core_workers_assign (core_workers_t *all, const Taskmq__Assignment *assignment,
                          core_bodies_t *bodies);
void core_workers_cancel (core_workers_t *all, const Taskmq__CancelNotice *notice);
/* Somebody wants the worker to end: as if the application had drained it. */
void core_workers_drain (core_workers_t *all, const Taskmq__DrainNotice *notice);
void core_attempt_due (core_attempt_t *attempt); /* its lease */
void core_workers_end (core_workers_t *all, int code, const char *text);
void core_workers_free (core_workers_t *all);

/* The application's side. */

/* owner is what core_parts_woken names. */
int core_workers_add (core_worker_t **out, core_workers_t *all, const tmq_worker_options_t *options,
                      void *owner, tmq_error_t *error);
/* Gives back what it holds and leaves; what was taken is forgotten. */
void core_worker_free (core_worker_t *self);
/* The next assignment; TMQ_TIMEOUT when there is none, any other code when none will come. */
int core_worker_next (tmq_assignment_t **out, core_worker_t *self, tmq_error_t *error);
int core_worker_drain (core_worker_t *self, tmq_error_t *error);
/* Told with the leave of core_worker_free. */
void core_worker_exit (core_worker_t *self, int status, int signal);
size_t core_worker_held (const core_worker_t *self);
/* TMQ_TIMEOUT when nothing changed. */
int core_worker_changed (tmq_attempt_change_t *out, core_worker_t *self);
/* The answer by which it tells that it has something; embedded. */
core_answer_t *core_worker_answer (core_worker_t *self);

#endif
