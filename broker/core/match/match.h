/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Ready tasks and waiting workers, brought together. */
#ifndef TASKMQ_CORE_MATCH_H
#define TASKMQ_CORE_MATCH_H

#include "core/peers/links.h"
#include "core/reads/reads.h"
#include "core/tasks/lanes.h"
#include "core/tasks/tasks.h"

/* A worker's place at one queue. */
typedef struct seat {
    node_t node; /* in the queue's list of waiting seats */
    worker_t *worker;
    queue_t *queue;
    order_set_t orders; /* of the queue, that its worker's labels meet */
} seat_t;

typedef struct match {
    base_t *base;
    tasks_t *tasks;
    links_t *peers;
    reads_t *reads;
    node_t fetch;   /* queues whose head waits for its payload */
    fifo_t fetched; /* payloads that were read ahead, oldest first (fetch.c) */
    size_t fetched_bytes;
    size_t seats_bytes; /* of workers' places at queues, with the queues */
    node_t owing;       /* workers with leases that are still to be given back */
    node_t roster;      /* roster.h: entries, the newest first, … */
    map_t roster_by_id;
    node_t roster_gone; /* … and those of workers that have ended, as they ended or were loaded */
    size_t roster_gone_count;
    size_t roster_bytes; /* of the entries, with what they say of themselves */
    uint64_t roster_no;
} match_t;

void match_init (match_t *self, base_t *base, tasks_t *tasks, links_t *peers, reads_t *reads);
void match_reset (match_t *self);

#endif
