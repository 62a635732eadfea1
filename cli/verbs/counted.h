/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the broker counts, by the names of `taskctl stats`. */
#ifndef TASKCTL_COUNTED_H
#define TASKCTL_COUNTED_H

#include <stdint.h>

#include "line/app.h"

/* absent: where it has no such counter. */
uint64_t counted_value (const tmq_stats_t *stats, const char *name, uint64_t absent);
/* Brokers that wait for the database of the connected one; UINT64_MAX: it does not tell. */
uint64_t counted_standbys (const app_t *app, uint32_t timeout_ms);

#endif
