/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches in texts. */
#ifndef TASKMQ_CORE_REQUESTS_SEARCH_H
#define TASKMQ_CORE_REQUESTS_SEARCH_H

#include "core/reads/reads.h"
#include "core/requests/requests.h"

/* Answers what was found. */
void search_answer (requests_t *self, read_job_t *job);

#endif
