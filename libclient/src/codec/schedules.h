/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Schedules: requests and records. */
#ifndef TASKMQ_CLIENT_SCHEDULES_H
#define TASKMQ_CLIENT_SCHEDULES_H

#include "codec/request.h"
#include "taskmq.pb-c.h"

/* Refuses what can be judged without the broker. */
int core_request_schedule (core_request_t **out, const tmq_schedule_spec_t *spec,
                           tmq_error_t *error);
/* body: of a single one its payload, else NULL. NULL when memory is exhausted. */
tmq_schedule_report_t *core_schedules_record (const Taskmq__SchedulePage *page,
                                              const uint8_t *body);

#endif
