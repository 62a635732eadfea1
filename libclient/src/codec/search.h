/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Searches: records. */
#ifndef TASKMQ_CLIENT_SEARCH_H
#define TASKMQ_CLIENT_SEARCH_H

#include "taskmq.h"
#include "taskmq.pb-c.h"

/* The tasks of a page; NULL: memory is exhausted. */
tmq_task_list_t *core_found_tasks_record (const Taskmq__FoundPage *page);
/* All but the tasks, in one piece of memory; NULL when it is exhausted, or the page is not what it
 * has to be. */
tmq_found_list_t *core_found_list_record (const Taskmq__FoundPage *page);

#endif
