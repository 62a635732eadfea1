/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers of the broker in the text format that Prometheus reads. */
#ifndef TASKCTL_PROMETHEUS_H
#define TASKCTL_PROMETHEUS_H

#include "line/app.h"

/* On stdout. A counter is taskmq_NAME_total, a state taskmq_NAME; both have HELP from their
 * meaning. The depths of the namespace's queues have labels. */
void prometheus_print (const app_t *app, const tmq_stats_t *stats, const char *broker);

#endif
