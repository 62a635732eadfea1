/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests whose answer needs a file: the engine asks the server to do the work, and answers when
 * it is done. */
#ifndef TASKMQ_CORE_ERRANDS_H
#define TASKMQ_CORE_ERRANDS_H

#include "core/data/errand.h"
#include "core/requests/requests.h"

/* The request becomes one; NULL: there are too many, which was answered. */
errand_t *errand_begin (call_t *call);
void on_errand (call_t *call);
/* … about a task that the link may read, or 0 where its number is of no use: what is told of it
 * waits for its batch. */
errand_t *errand_about_task (call_t *call, int64_t number);
/* The next one to be done, or NULL; it comes back by errand_answer. */
errand_t *errand_jobs_next (requests_t *self);
/* Takes it; answers, if its link still stands. */
void errand_answer (requests_t *self, errand_t *errand);
/* The link has ended: those that are not under way are not done any more. */
void errand_jobs_drop_link (requests_t *self, link_t *link);
void errand_jobs_free (requests_t *self);

#endif
