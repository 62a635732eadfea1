/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Retention: at a start, daily and when an operator wants it, a pass goes through what has ended in
 * a namespace and no time to live ends, page by page, and removes what the rules of the namespace
 * and of its queues let go (S37). */
#ifndef TASKMQ_CORE_CLEANUP_H
#define TASKMQ_CORE_CLEANUP_H

#include "core/reads/reads.h"
#include "core/requests/requests.h"

void cleanup_init (cleanup_t *self);
/* Before the namespaces are freed: a start begins anew. */
void cleanup_reset (cleanup_t *self);
/* Begins what is due, asks for the next page. */
void cleanup_run (requests_t *self);
/* When it wants to be run, at the latest; mono. */
int64_t cleanup_next_ms (const requests_t *self);
/* The pass has its page. */
void cleanup_page (requests_t *self, read_job_t *job);
/* A request that looks what would go: true if the job goes on, else it is to be answered. */
bool cleanup_looks_on (requests_t *self, read_job_t *job);
void cleanup_answer (requests_t *self, read_job_t *job);

#endif
