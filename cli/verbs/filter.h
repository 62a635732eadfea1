/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The filter options that list, count, watch and the commands for many tasks share. */
#ifndef TASKCTL_FILTER_H
#define TASKCTL_FILTER_H

#include "line/app.h"
#include "line/labels.h"

/* A filter of the library with the arrays that it points into. */
typedef struct filter {
    tmq_filter_t filter;
    const char *queues[TMQ_FILTER_VALUES_MAX];
    tmq_status_t statuses[TMQ_FILTER_VALUES_MAX];
    const char *sessions[TMQ_FILTER_VALUES_MAX];
    tmq_id_t parents[TMQ_FILTER_VALUES_MAX];
    const char *owners[TMQ_FILTER_VALUES_MAX];
    const char *agents[TMQ_LABELS_MAX];
    const char *files[TMQ_LABELS_MAX];
    labels_t labels;
} task_filter_t;

/* --queue (also as operands, where these name queues), --status, --session, --label; with_times:
 * also --since, --until and --parent (whole ids, see app_resolve_options). 0 or an exit code. The
 * result must stay where it is. */
int filter_from_args (task_filter_t *out, const app_t *app, bool with_times);

/* True if any condition is among the options. */
bool filter_is_given (const app_t *app);

#endif
