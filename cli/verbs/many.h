/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Commands for many tasks: those that ids name, or those that match the filter options. */
#ifndef TASKCTL_MANY_H
#define TASKCTL_MANY_H

#include "base/exit.h"
#include "line/app.h"

/* 0 if there are either ids or conditions, and what asks or counts goes with conditions; else an
 * exit code. */
int many_check (const app_t *app);

/* What is to be done with many tasks. */
typedef struct many {
    const char *verb;             /* "cancel" */
    const char *past;             /* "cancelled" */
    const tmq_status_t *statuses; /* with which it can be done, where no --status is given */
    size_t statuses_count;
    bool strict; /* with no other status it can be done */
} many_t;
/* The ids that the line names, or that its conditions match: these are counted first, and somebody
 * is asked. *go_on false: nothing is to be done. *ids is freed by free (). 0 or an exit code. */
int many_find (app_t *app, const many_t *what, tmq_id_t **ids, size_t *count, tally_t *tally,
               bool *go_on);
/* The ids of all tasks that match, newest first; freed by free (). 0 or an exit code. */
int many_ids (app_t *app, const tmq_filter_t *filter, tmq_id_t **ids, size_t *count);

#endif
