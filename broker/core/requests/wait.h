/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waits for the end of tasks. */
#ifndef TASKMQ_CORE_WAIT_H
#define TASKMQ_CORE_WAIT_H

#include "core/requests/requests.h"

typedef struct wait wait_t;

typedef struct wait_entry {
    wait_t *wait;
    task_t *task;            /* NULL: answered */
    struct wait_entry *next; /* of the same task */
    struct wait_entry *prev;
} wait_entry_t;

struct wait {
    node_t node; /* in the link's list */
    link_t *link;
    uint64_t request;
    alarm_t alarm; /* its deadline */
    size_t open;   /* entries without an answer */
    size_t entries_count;
    wait_entry_t entries[];
};
void wait_drop (requests_t *self, wait_t *wait);
/* Tells those who wait for a task that ended. */
void waits_follow (requests_t *self, const fact_t *fact);

#endif
