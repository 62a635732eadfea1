/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What became of a task's attempts. */
#ifndef TASKMQ_CORE_ATTEMPTS_H
#define TASKMQ_CORE_ATTEMPTS_H

#include "core/reads/jobs.h"
#include "core/requests/requests.h"

/* The rows of a page have been read. */
void attempts_answer (requests_t *self, read_job_t *job);

#endif
