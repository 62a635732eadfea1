/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests for stats that take more than one round. */
#ifndef TASKMQ_CORE_STATS_H
#define TASKMQ_CORE_STATS_H

#include "core/requests/requests.h"

/* Goes on with what was asked for, as far as the round allows. */
void stats_run (requests_t *self);
bool stats_are_owed (const requests_t *self);
/* Nobody waits for the link's any more. */
void stats_drop_link (requests_t *self, link_t *link);

#endif
