/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The live tasks of the engine and everything that is known of them in memory: namespaces, queues,
 * who holds which lease, the batch that grows, and what was taken and is not written back yet. */
#ifndef TASKMQ_CORE_TASKS_H
#define TASKMQ_CORE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/base.h"
#include "core/base/bucket.h"
#include "core/base/fifo.h"
#include "core/base/gate.h"
#include "core/base/list.h"
#include "core/base/map.h"
#include "core/data/batch.h"
#include "core/history/history.h"
#include "core/tasks/absent.h"
#include "core/tasks/queue.h"
#include "core/tasks/task.h"
#include "core/tasks/unanswered.h"

typedef struct schedule schedule_t;
typedef struct session session_t;
typedef struct member member_t;

/* What a namespace keeps beside its tasks (entries.h). */
typedef struct entries {
    uint64_t values;
    uint64_t items;
    uint64_t bytes;      /* of both */
    uint64_t turn_bytes; /* of turns of tasks */
    uint64_t artifact_bytes;
    struct puts *removed; /* request ids of the newest removals; NULL: none */
} entries_t;

/* Passes of retention (requests/cleanup.c). */
typedef struct cleanup_report {
    uint64_t wanted; /* so many shall be done, … */
    uint64_t done;   /* … and are */
    uint64_t looked; /* tasks of the newest that has begun … */
    uint64_t removed;
    uint64_t removed_bytes;
    bool failed; /* its tasks could not be read to the end */
} cleanup_report_t;

/* A namespace. */
struct space {
    event_log_t log;
    uint32_t hash; /* of its name alone, in other keys too: the same when it comes back */
    uint32_t links;
    uint32_t queues;
    node_t queue_list; /* in the order in which they were made */
    uint32_t workers;
    uint32_t removals; /* notes of them */
    uint32_t tasks;    /* live ones, … */
    uint64_t bytes;    /* … of their payloads */
    unanswered_t unanswered;
    uint32_t settings;           /* queues that have some */
    node_t idle;                 /* in the list of those that nobody may need */
    struct schedule **schedules; /* by name */
    size_t schedules_count;
    size_t schedules_capacity;
    uint64_t schedules_daily;  /* instants that they have in a day */
    struct session **sessions; /* by name */
    size_t sessions_count;
    size_t sessions_capacity;
    node_t kept; /* late successes (quarantine.h), the oldest first */
    size_t kept_count;
    size_t kept_bytes;
    cleanup_report_t cleanup;
    node_t cleaning; /* in the list of those that retention goes through */
    entries_t entries;
    node_t counted; /* in the list of those whose entries the open batch changes */
    char name[TMQ_NAME_LENGTH_MAX + 1];
};

/* How a worker's attempts ended. */
typedef struct worker_tally {
    uint64_t completed;
    uint64_t failed;
    uint64_t released;
    uint64_t lost;
    uint64_t cancelled;
} worker_tally_t;

/* Who holds leases. Its seats at queues are match's (worker.h there). */
struct worker {
    uint8_t id[16];
    uint32_t hash;
    space_t *space;
    struct link *link; /* NULL: it may come back and claim its leases */
    uint64_t serial;   /* of the newest link that it was on */
    node_t of_link;
    alarm_t alarm;       /* the end of its grace: its link ended and it did not register again */
    int64_t gone_due_ms; /* mono, when that is */
    name_t *name;
    name_t **labels; /* "key=value", that requirements are met with */
    size_t labels_count;
    name_t *identity; /* NULL after a restart, until it registers */
    struct seat *seats;
    size_t seats_count;
    node_t leases;   /* details */
    node_t dropped;  /* … whose leases it does not want any more, to be given back */
    bool drops_lost; /* … as lost, else as returned, … */
    const char *why; /* … because of this; static */
    node_t owing;    /* in match's list of those with dropped leases */
    uint32_t held;   /* number of leases and dropped ones */
    uint32_t capacity;
    uint64_t seen;
    uint64_t assigned;     /* number of its newest assignment */
    node_t hungry;         /* in its account's list of those that may have no further lease now */
    node_t changed;        /* in the list of those that match looks at before the input ends */
    bool lost;             /* a lease of it ran out unreported, and match has not heard of it */
    bool waiting;          /* its seats stand in the queues' lists */
    gate_t gate;           /* why it gets nothing new, wherever it is */
    worker_tally_t *tally; /* in match's roster; NULL: nobody counts */
};
#define WORKER_COUNT(worker, what)                                                                 \
    do {                                                                                           \
        if ((worker)->tally != NULL)                                                               \
            (worker)->tally->what++;                                                               \
    } while (0)

/* A transition that was made: what follows from it in higher rooms is done before the input ends
 * (engine/follow.c). */
typedef struct fact {
    task_t *task;
    task_input_t input;
    tmq_status_t from;
    tmq_status_t to;
} fact_t;

/* Who waits for whose end (edges.h). */
typedef struct edges {
    map_t awaited;  /* tasks that others wait for, by namespace and id */
    node_t ended;   /* … that have ended, with dependents to be told */
    node_t unknown; /* … of which memory does not know it; those that are looked up first */
    size_t count;   /* open edges */
} edges_t;

/* Schedules whose instants have come, when there are more of them than may be decided in a second
 * (schedule.h). */
typedef struct instants {
    node_t waiting; /* in the order in which they came */
    size_t count;
    bucket_t bucket;
    alarm_t alarm;
    uint64_t daily; /* instants that all schedules have in a day */
} instants_t;

/* The batch that grows. */
typedef struct open_batch {
    uint64_t no;
    task_t **tasks;
    size_t tasks_count;
    size_t tasks_capacity;
    attempt_t *attempts;
    size_t attempts_count;
    size_t attempts_capacity;
    removal_t *removals;
    size_t removals_count;
    size_t removals_capacity;
    row_t *rows;
    size_t rows_count;
    size_t rows_capacity;
    size_t inputs;
    size_t bytes; /* estimate of what it holds */
} open_batch_t;

/* A batch that was taken and is not yet written back. */
typedef struct taken {
    uint64_t no;
    task_t **tasks;
    size_t tasks_count;
    size_t inputs;
    size_t bytes;
    size_t attempts_count; /* notes of attempts, and of removals, to be forgotten with it */
    size_t removals_count;
} taken_t;

/* An attempt row or a removal that the tables do not show yet. */
typedef struct attempt_note {
    uint32_t hash;
    int64_t number;
    uint32_t attempt;
    tmq_event_kind_t how;
    int64_t started_at;
    name_t *name; /* of its worker, kept; NULL in a copy */
    const char *worker;
    uint8_t secret[16];
    uint8_t request_id[16];
} attempt_note_t;
typedef struct removal_note {
    uint32_t hash;
    space_t *space;
    tmq_id_t id;
    tmq_code_t code;
    uint8_t why; /* removal_t.why */
    int64_t at;
    name_t *owner; /* who may know of it */
    name_t *queue;
} removal_note_t;

/* A walk over the queues of a namespace that goes on over rounds. Queues that come are met, and one
 * that goes is left out. */
typedef struct queue_walk {
    node_t node; /* in the list of walks under way */
    space_t *space;
    node_t *next;
} queue_walk_t;

/* Questions of live tasks (question.h). */
typedef struct questions {
    map_t askings; /* by namespace and task */
    size_t bytes;
    uint64_t last_number;
} questions_t;

/* Bodies that are larger than a frame (blobs.h). */
typedef struct blobs {
    map_t by_hash;
    node_t claims;
    node_t resting;
    size_t resting_count;
    map_t shares; /* by hash and owner */
    size_t claims_count;
    size_t named; /* by tasks */
} blobs_t;

typedef struct tasks {
    base_t *base;
    history_t *history;
    slab_t slab;
    map_t spaces;
    map_t queues;
    map_t by_id;  /* live tasks, by namespace and id */
    map_t by_key; /* … by namespace, owner and dedup key */
    map_t workers;
    map_t members; /* members.h */
    node_t walks;  /* over queues, under way */
    node_t idle_spaces;
    node_t makers;   /* makers.c */
    node_t accounts; /* account.c */
    bool has_accounts;
    int64_t last_number;
    uint64_t queues_made;
    uint64_t orders_made; /* sets of requirements (lanes.h) */
    size_t settings;      /* queues that have some */
    absent_t absent;
    size_t texts_bytes; /* of live tasks, … */
    size_t order_bytes; /* … of their queues, with levels and lanes */
    size_t ready;       /* gauges: tasks in the order of their queues, … */
    size_t held;        /* … ready ones whose session holds them back */
    size_t leases;      /* … that workers have */
    size_t ended;       /* of those in memory, terminal ones */
    node_t removed;     /* tasks that are found no more and wait for their rows alone */

    edges_t edges;
    instants_t instants;
    size_t schedules_bytes;  /* of their rows */
    size_t sessions_bytes;   /* … and in memory */
    node_t sessions_leaving; /* what belongs to them goes */
    node_t sessions_gone;    /* that tasks in memory point to */

    node_t delayed;         /* tasks that wait for not_before */
    node_t delays_to_judge; /* … of whom the wall clock moved meanwhile; or their session goes on */
    node_t lazy;            /* details with a change that may wait, by due time */
    open_batch_t open;
    fifo_t closed; /* batches that are full and wait to be taken */
    size_t closed_inputs;
    fifo_t taken;
    size_t taken_durable;  /* so many of them, from the first, are durable */
    uint64_t settled;      /* written, and memory knows */
    uint64_t durable;      /* number of the newest durable batch */
    size_t pending_inputs; /* of taken batches that are not durable */
    size_t pending_bytes;
    size_t dirty_tasks; /* changed and not written back */
    size_t dirty_bytes;
    size_t cached_bytes; /* payloads that the tables have too */
    fifo_t attempt_notes;
    fifo_t removal_notes;
    map_t attempts_by_key;
    map_t removals_by_key;
    questions_t questions;
    map_t kept;        /* late successes, by namespace and task */
    map_t rows_by_key; /* their newest changes that are not written back */
    node_t rows_unwritten;
    blobs_t blobs;
    node_t debts;          /* rows of tasks that are gone (debts.h) */
    node_t counted_spaces; /* whose counts of entries go with the open batch */
    /* The newest batch with a change of what a sweep may have seen before it, or whose changes a
     * reset has forgotten. */
    uint64_t freshened;

    /* Marks: what an input leaves for the rooms above. */
    node_t changed_queues;  /* to be looked at */
    node_t moving_queues;   /* whose ready tasks go to other lanes (lanes.h) */
    node_t lanes_to_weigh;  /* whose weight has changed */
    node_t changed_workers; /* whose leases or room changed */
    fact_t *facts;          /* in the order in which they were made */
    size_t facts_count;
    size_t facts_capacity;
    node_t noticed; /* details of tasks with progress to tell, … */
    node_t flowed;  /* … and flows of logs that went on */
} tasks_t;

void tasks_init (tasks_t *self, base_t *base, history_t *history);
/* Forgets every task, worker, queue and namespace; numbers go on. */
void tasks_reset (tasks_t *self);
void tasks_free (tasks_t *self);
/* Tasks that have not ended: those that have wait in memory for their rows alone. */
static inline size_t tasks_live (const tasks_t *self)
{
    return self->by_id.count - self->ended;
}

/* Match looks at it before the input ends. */
static inline void worker_changed (tasks_t *self, worker_t *worker)
{
    if (!node_is_linked (&worker->changed))
        list_push_back (&self->changed_workers, &worker->changed);
}

#endif
