/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What lanes are made of, for lanes.c and needs.c alone. */
#ifndef TASKMQ_CORE_LANES_PARTS_H
#define TASKMQ_CORE_LANES_PARTS_H

#include "core/tasks/session.h"
#include "core/tasks/tasks.h"

/* A fair key of a queue. */
typedef struct fair {
    name_t *name; /* NULL: of tasks without a key; they have no cap */
    uint32_t lanes;
    uint32_t running;
    node_t parked; /* lanes that wait for a lease of it to end */
    node_t node;   /* in the list of keys with parked lanes */
} fair_t;

typedef struct order order_t;
typedef struct track track_t;

struct lane {
    level_t own;
    level_t *line; /* own; of those without key and requirements the queue's level */
    fair_t *fair;
    order_t *order;
    unsigned priority;
    bool side;          /* of its queue when it was made (queue->side) */
    uint64_t due;       /* virtual time of its turn */
    uint64_t step;      /* … from one turn to the next, when due was reckoned */
    uint64_t turn;      /* among those that are due at the same time */
    size_t place;       /* 1 + in its level's heap; 0: it is not in it */
    node_t parked;      /* in its key's list */
    node_t of_side;     /* in the list of those of its side */
    session_t *session; /* whose salience is its weight; NULL: nobody's */
    node_t weighed;     /* in that session's list, or among those to be weighed anew */
};

/* The lanes of a priority that have tasks: a heap, the next one first. */
typedef struct lane_level {
    struct lane **lanes;
    size_t count;
    size_t capacity;
} lane_level_t;

struct order {
    lanes_t *lanes;
    name_t *needs[TMQ_NEEDS_MAX]; /* "key=value", by their addresses */
    size_t needs_count;
    size_t slot;
    uint64_t serial; /* it is the so-manieth set that was made */
    uint32_t tasks;  /* live ones that have it */
    uint64_t used[4];
    lane_level_t *groups[LEVEL_GROUPS];
};

/* A priority of all orders. */
struct track {
    struct lane *plain; /* of the queue's own level; NULL: that is empty */
    struct lane *aside; /* of what stood there when the sides changed; NULL: nothing */
    uint64_t now;       /* virtual time */
};

struct lanes {
    queue_t *queue;
    size_t bytes;    /* what all this takes, about */
    map_t fairs;     /* by the name's hash */
    map_t keyed;     /* lanes but the plain ones, by key, order and priority */
    node_t sides[2]; /* all lanes, by their side */
    fair_t none;
    node_t capped;    /* keys with parked lanes */
    order_t **orders; /* by slot; NULL: free */
    size_t slots;     /* so many places */
    size_t sets;      /* orders beside the first one */
    uint64_t newest;  /* serial of the one that was made last */
    uint64_t turns;
    track_t *tracks[LEVEL_GROUPS];
};

enum { ORDER_BYTES = sizeof (order_t) + ALLOCATION_BYTES };

static inline void lanes_count (lanes_t *self, size_t more, size_t less)
{
    self->bytes += more - less;
    queue_count (self->queue, more, less);
}

/* What is queued already has lanes from now on. */
lanes_t *lanes_make (queue_t *queue);
/* What nobody needs any more: a key, or all of it. What has no key stays where it is. */
void lanes_tidy (tasks_t *self, queue_t *queue, fair_t *fair);
void order_free (order_t *order);

#endif
