/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Page reads: those that wait and those that readers have. */
#ifndef TASKMQ_CORE_JOBS_H
#define TASKMQ_CORE_JOBS_H

#include "core/reads/reads.h"

/* A read in the link's namespace, to be given away once the batch `need` is written back. */
read_job_t *job_new (reads_t *self, link_t *link, const char *ns, read_kind_t kind, uint64_t need);
void job_free (reads_t *self, read_job_t *job);
/* The next one to be done, or NULL. It belongs to the caller until it is done. */
read_t *jobs_next (reads_t *self);
bool jobs_want_flush (const reads_t *self);

#endif
