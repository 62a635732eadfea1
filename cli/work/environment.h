/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The environment of a program: ours, without what an outer worker said of its own task, and what
 * belongs to this task. */
#ifndef TASKCTL_ENVIRONMENT_H
#define TASKCTL_ENVIRONMENT_H

#include "work/job.h"

/* NULL-terminated. Freed by environment_free. */
char **environment_make (const job_plan_t *plan, const work_job_t *job);
void environment_free (char **environment);

#endif
