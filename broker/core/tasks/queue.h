/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The ready order of one queue: by priority, then by acceptance.
 *
 * New tasks have the highest number and go to the end of their priority's FIFO list. One that comes
 * back (after a backoff, a lost lease, a restart) may belong before others; it waits in a heap by
 * number beside the list, and the smaller head of the two comes first. So everything but taking a
 * returned task costs the same whatever the queue's length. */
#ifndef TASKMQ_CORE_QUEUE_H
#define TASKMQ_CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/gate.h"
#include "core/base/list.h"
#include "core/tasks/task.h"

typedef struct level {
    node_t fifo;      /* rising numbers */
    task_t *returned; /* root of the heap, smallest number */
} level_t;

enum { LEVEL_GROUP = 16, LEVEL_GROUPS = 256 / LEVEL_GROUP };

typedef struct space space_t;

/* Since it has been in memory: as long as it has tasks, workers or settings. */
typedef struct queue_totals {
    uint64_t submitted;
    uint64_t completed;
    uint64_t failed;
    uint64_t attempts_failed;
} queue_totals_t;

struct queue {
    space_t *space;
    uint32_t hash;
    uint32_t ready; /* tasks in this order */
    uint32_t held;  /* … ready ones that their sessions hold back */
    uint32_t tasks; /* live tasks of the queue, in whichever status */
    uint32_t seats; /* workers that serve it */
    uint32_t scheduled;
    uint32_t blocked;
    uint32_t working;
    uint32_t input_required;
    queue_totals_t totals;
    uint32_t leases;  /* that workers have of its tasks, also of cancelled ones */
    uint32_t key_cap; /* leases that tasks of one fair key may have at once; 0: any number */
    tmq_weight_of_t weight_of;     /* what their fair key is */
    bool side;                     /* changes with it: what is ready moves from one to the other */
    node_t moving;                 /* in the list of those of which some are not there yet */
    gate_t gate;                   /* closed: nothing of it is given away */
    struct lanes *lanes;           /* of fair keys and requirements (lanes.h); NULL: none */
    struct settings *settings;     /* what is set for it (settings.h); NULL: nothing */
    uint64_t serial;               /* in the order in which they were made */
    uint64_t queued_bytes;         /* of the payloads of queued tasks */
    uint32_t queued;               /* … how many they are */
    size_t *bytes;                 /* counts what its levels and lanes take; NULL: nobody counts */
    node_t of_space;               /* in its namespace's list */
    node_t waiting;                /* seats whose workers have credit left, in turn */
    node_t *look;                  /* … the next one of match's walk through them; NULL: none */
    bool look_again;               /* it has changed since that walk began */
    node_t changed;                /* in the list of queues to look at */
    node_t fetch;                  /* in match's list of queues that wait for payloads */
    uint64_t used[4];              /* priorities that may have tasks */
    level_t *groups[LEVEL_GROUPS]; /* LEVEL_GROUP levels each, made when first used */
    char name[TMQ_NAME_LENGTH_MAX + 1];
};

/* A list and a heap of one priority, or of one lane of it. task->ready must be false; becomes
 * true. */
void level_push (level_t *self, task_t *task);
void level_remove (level_t *self, task_t *task);
task_t *level_first (const level_t *self); /* NULL: it is empty */
/* As queue_peek_cold. */
size_t level_peek_cold (const level_t *self, task_t **out, size_t limit);
level_t *queue_level (queue_t *self, unsigned priority);
enum {
    ALLOCATION_BYTES = 16, /* of malloc, for each piece of memory */
    SLOT_BYTES = 32        /* of a map that has just grown, for an item */
};
/* So many bytes more, or less, are taken for the queue. */
static inline void queue_count (queue_t *self, size_t more, size_t less)
{
    if (self->bytes != NULL)
        *self->bytes += more - less;
}
/* Its payload is in the tables alone. */
static inline bool task_is_cold (const task_t *task)
{
    return task->payload_bytes > 0 && task->payload == NULL;
}

void queue_init (queue_t *self, space_t *space, const char *name);
void queue_clear (queue_t *self); /* frees the levels */
/* task->ready must be false; becomes true. */
void queue_push (queue_t *self, task_t *task);
/* Takes a task out of the order, wherever it stands. */
void queue_remove (queue_t *self, task_t *task);
/* The next one to be claimed, or NULL. */
task_t *queue_first (queue_t *self);
/* The one that was accepted first, or NULL. */
const task_t *queue_oldest (queue_t *self);
/* Writes up to limit tasks whose payload is not in memory, nearest to the head first (exactly for
 * the FIFO lists; of returned ones only the first), having looked at no more than limit of a
 * priority. */
size_t queue_peek_cold (queue_t *self, task_t **out, size_t limit);
/* About how many come before it, itself included: those of the FIFO lists, looking at no more than
 * so many. */
size_t queue_position (const queue_t *self, const task_t *task, size_t looks);
/* Whether a comes before b, also across queues. */
bool queue_before (const task_t *a, const task_t *b);

#endif
