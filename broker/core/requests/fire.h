/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What happens when a schedule is due. */
#ifndef TASKMQ_CORE_FIRE_H
#define TASKMQ_CORE_FIRE_H

#include "core/requests/requests.h"
#include "core/tasks/schedule.h"

/* Its alarm: decides the instants that have come, a few in a round. */
void fire_alarm (requests_t *self, schedule_t *schedule);
/* Schedules wait for their turn, and it may have come. */
void fire_turns (requests_t *self);
/* Tells those who watch that the schedule changed, fired or is gone. actor NULL: the broker. */
void fire_event (requests_t *self, const schedule_t *schedule, tmq_event_kind_t kind,
                 const char *actor, const char *message);

#endif
