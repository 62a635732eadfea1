/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that have ended and are changed all the same. They may be in the tables alone: then they
 * come back to memory (task_restore), and leave it again when the change is written. */
#ifndef TASKMQ_CORE_REVIVE_H
#define TASKMQ_CORE_REVIVE_H

#include "core/tasks/change.h"
#include "core/tasks/quarantine.h"
#include "core/tasks/tasks.h"

/* A task that failed or was cancelled waits in its queue again, with all its attempts before it.
 * input: RETRY or RESUME. While the lease of its last attempt stands beside it, it is blocked. */
void revive_queue (tasks_t *self, task_t *task, task_input_t input, const cause_t *cause);

/* The late success of an attempt, with its bytes, is the outcome: that of one more attempt, which
 * has ended at once, so whoever works on the task has lost it (S35). The table permits it. */
void adopt (tasks_t *self, task_t *task, const kept_t *kept, const buf_t *bytes,
            const cause_t *cause);

/* What a client may change; what is not given stays as it is. */
typedef struct revision {
    bool ttl;       /* counts from now on; */
    int64_t ttl_ms; /* 0: never */
    int priority;   /* -1: not given */
    uint32_t max_attempts;
    int64_t not_before; /* -1: not given; 0: at once */
    const label_t *labels;
    size_t labels_count;
    const char *const *drop_labels;
    size_t drop_labels_count;
} revision_t;
/* So many labels one with these would have then. */
size_t revision_labels_count (const label_t *labels, size_t count, const revision_t *revision);
void revise (tasks_t *self, task_t *task, const revision_t *revision, const cause_t *cause);

#endif
