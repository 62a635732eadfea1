/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests about turns. */
#ifndef TASKMQ_CORE_REQUESTS_TURNS_H
#define TASKMQ_CORE_REQUESTS_TURNS_H

#include "core/requests/requests.h"

/* The key of the row that such a turn has if it was told before; false: it was not. */
bool turn_told_key (const requests_t *self, const space_t *space, const Taskmq__Turn *turn,
                    row_key_t *out);
/* Answers a `turns` whose rows were read. */
void turns_answer (requests_t *self, read_job_t *job);

#endif
