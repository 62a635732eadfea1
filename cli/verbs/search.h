/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches in texts. */
#ifndef TASKCTL_SEARCH_H
#define TASKCTL_SEARCH_H

#include "line/app.h"

/* list with --search: the tasks that have the words. */
int search_list (app_t *app, const tmq_list_query_t *query, uint64_t wanted);
/* count with --search: how many there are. 0, or an exit code. */
int search_count (app_t *app, const tmq_filter_t *filter, uint64_t *out);

/* Tells what is wrong with a search, and how one is written. The exit code. */
int search_failed (app_t *app, tmq_error_t *error);

#endif
