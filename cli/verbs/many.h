/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Commands for many tasks: those that ids name, or those that match the filter options. */
#ifndef TASKCTL_MANY_H
#define TASKCTL_MANY_H

#include "line/app.h"

/* 0 if there are either ids or conditions; else an exit code. */
int many_check (const app_t *app);
/* The ids of all tasks that match, newest first; freed by free (). 0 or an exit code. */
int many_ids (app_t *app, const tmq_filter_t *filter, tmq_id_t **ids, size_t *count);

#endif
