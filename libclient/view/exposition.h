/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers of the broker in the text format that Prometheus reads. */
#ifndef TASKMQ_VIEW_EXPOSITION_H
#define TASKMQ_VIEW_EXPOSITION_H

#include "bytes.h"
#include "taskmq.h"

enum { EXPOSITION_QUEUES_MAX = 1000 };

/* A counter is taskmq_NAME_total, a state taskmq_NAME; both have HELP from their meaning. */
void exposition_broker (bytes_t *out, const tmq_stats_t *stats, const char *broker);
/* A namespace with what was told of it. */
typedef struct exposition_space {
    const char *ns;
    const tmq_stats_t *stats;
} exposition_space_t;
/* The depths and totals of their queues, with labels. Of a namespace with more than
 * EXPOSITION_QUEUES_MAX queues the others are one, "_other": their sums, and the oldest of their
 * tasks. */
void exposition_queues (bytes_t *out, const exposition_space_t *spaces, size_t count);

#endif
