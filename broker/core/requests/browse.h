/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Reads that the tables have to answer: list, count, short ids, the history of a task. */
#ifndef TASKMQ_CORE_BROWSE_H
#define TASKMQ_CORE_BROWSE_H

#include "core/requests/requests.h"

/* Answers the request that the read was for. */
void browse_answer (requests_t *self, read_job_t *job);

#endif
