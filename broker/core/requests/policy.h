/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What follows from a new policy, and from the end of somebody's time. */
#ifndef TASKMQ_CORE_REQUESTS_POLICY_H
#define TASKMQ_CORE_REQUESTS_POLICY_H

#include "core/requests/requests.h"

/* Judges every link and worker by it; keeps it. Those whose rights are the same notice nothing. */
void policy_take (requests_t *self, policy_t *policy);
/* Judges them again when a principal's time has ended. */
void policy_judge_ends (requests_t *self);
/* Ends all links without a goodbye: who is there says hello again, and hears what is new. */
void policy_greet_again (requests_t *self);
/* When that will be on the monotonic clock, INT64_MAX for never. */
int64_t policy_next_judgement_ms (const requests_t *self);

#endif
