/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Dependencies. A queued task that waits for others to end is *blocked*: it stands in no ready
 * order, and has one open edge for each task that it still waits for. Such a task is *awaited*.
 *
 * What is stored is the dependent's own list (Extra.after). Each entry gets the status of the task
 * that it names when the dependent is told of that end (dependents.h); until then it is open. So
 * nothing else has to be stored: after a start the open entries say what is still to be told, and a
 * task that is not in memory any more has ended, as the tables say. */
#ifndef TASKMQ_CORE_EDGES_H
#define TASKMQ_CORE_EDGES_H

#include "core/tasks/tasks.h"

/* A task that others wait for. It may have left memory, or not be back in it. */
typedef struct awaited {
    node_t node;  /* in edges.ended or edges.unknown */
    node_t edges; /* in the order in which they came */
    space_t *space;
    uint32_t hash;
    tmq_id_t id;
    tmq_status_t ended; /* NONE: it has not */
    bool wanted;        /* the tables are asked for it in this round */
} awaited_t;

typedef struct edge {
    node_t node; /* in the list of the task that is awaited */
    awaited_t *awaited;
    struct blocked *blocked;
    Taskmq__Dependency *entry; /* in the dependent's list */
} edge_t;

/* What a blocked task waits for. */
struct blocked {
    task_t *task;
    size_t open;
    size_t count;
    edge_t edges[];
};

void edges_init (edges_t *self);
void edges_clear (tasks_t *self); /* before the tasks go */
/* So many more may be made. */
bool edges_fit (const tasks_t *self, size_t more);

/* Dependencies that have not ended, as far as it was told, keep a queued task blocked. False: it
 * has none. */
bool edges_hold (tasks_t *self, task_t *task);
/* It is not blocked any more: nothing reaches it. */
void edges_drop (tasks_t *self, task_t *task);
/* The task was told of it. */
void edge_close (tasks_t *self, edge_t *edge);

/* The awaited task of this id, or NULL. */
awaited_t *edges_find (const tasks_t *self, const space_t *space, const uint8_t *id);
/* It ended; its dependents are to be told. */
void awaited_end (tasks_t *self, awaited_t *awaited, tmq_status_t status);
/* It lives, perhaps again. */
void awaited_live (awaited_t *awaited, task_t *task);
/* Frees it when nobody waits for it any more: true. */
bool awaited_release (tasks_t *self, awaited_t *awaited);

#endif
