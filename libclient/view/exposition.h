/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers of the broker in the text format that Prometheus reads. */
#ifndef TASKMQ_VIEW_EXPOSITION_H
#define TASKMQ_VIEW_EXPOSITION_H

#include "bytes.h"
#include "taskmq.h"

enum { EXPOSITION_QUEUES_MAX = 1000 };

/* HELP and TYPE of the family taskmq_NAME. */
void exposition_head (bytes_t *out, const char *name, const char *type, const char *help);
/* A counter is taskmq_NAME_total, a state taskmq_NAME; both have HELP from their meaning. */
void exposition_broker (bytes_t *out, const tmq_stats_t *stats, const char *broker);
/* A namespace with what was told of it. */
typedef struct exposition_space {
    const char *ns;
    const tmq_stats_t *stats;
    tmq_queue_report_t *const *pages; /* of its queues, borrowed; of exposition_serving alone */
    size_t pages_count;
} exposition_space_t;
/* The depths and totals of their queues, with labels. Of a namespace with more than
 * EXPOSITION_QUEUES_MAX queues the others are one, "_other": their sums, and the oldest of their
 * tasks. */
void exposition_queues (bytes_t *out, const exposition_space_t *spaces, size_t count);
/* Who serves them, and whether they are paused: the first EXPOSITION_QUEUES_MAX of a namespace. A
 * worker may serve several queues, so there is no sum of the others. */
void exposition_serving (bytes_t *out, const exposition_space_t *spaces, size_t count);

#endif
