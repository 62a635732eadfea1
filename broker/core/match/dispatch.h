/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ready tasks to waiting workers. */
#ifndef TASKMQ_CORE_DISPATCH_H
#define TASKMQ_CORE_DISPATCH_H

#include "core/match/match.h"

/* Looks at the workers and queues that were marked, and gives away what it can. */
void dispatch_run (match_t *self);

#endif
