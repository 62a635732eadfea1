/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the broker counts, by the names of `taskctl stats`. */
#ifndef TASKCTL_COUNTED_H
#define TASKCTL_COUNTED_H

#include <stdint.h>

#include "taskmq.h"

/* absent: where it has no such counter. */
uint64_t counted_value (const tmq_stats_t *stats, const char *name, uint64_t absent);
/* Brokers that wait for the database of this one; UINT64_MAX: it has none, or does not tell. */
uint64_t counted_standbys (const tmq_stats_t *stats);

#endif
