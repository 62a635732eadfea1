/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* One live task in memory, and the state machine that every task obeys.
 *
 * THE table of transitions stands at the head of task.c and nowhere else; who wants to change a
 * status asks transition_find. What follows from a transition (queue, lease, events) is the
 * engine's work (change.h). */
#ifndef TASKMQ_CORE_TASK_H
#define TASKMQ_CORE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/list.h"
#include "core/base/names.h"
#include "core/base/wheel.h"
#include "core/data/batch.h"
#include "core/data/extra.h"

/* The state machine. */

/* What can happen to a task. */
typedef enum task_input {
    INPUT_SUBMIT = 0,    /* accepted */
    INPUT_CLAIM,         /* assigned to a worker */
    INPUT_COMPLETE,      /* its worker has a result */
    INPUT_FAIL,          /* its worker reports a failure, attempts are left */
    INPUT_FAIL_FINALLY,  /* … for good, or no attempts are left; also MAX_RUNTIME, INTERRUPTED */
    INPUT_RELEASE,       /* its worker gives it back, not counted */
    INPUT_LOSE,          /* its lease ended, attempts are left */
    INPUT_LOSE_FINALLY,  /* its lease ended, no attempts are left */
    INPUT_EXPIRE,        /* its time to live ended, or its payload was lost, unclaimed */
    INPUT_CANCEL,        /* a client cancels it */
    INPUT_CANCEL_ACK,    /* its worker has stopped */
    INPUT_CHANGE,        /* its worker reports a status message */
    INPUT_REMOVE,        /* past its time to live after its end */
    INPUT_DEPENDENCY,    /* a task that it depends on did not complete */
    INPUT_UNBLOCK,       /* what it waited for has ended */
    INPUT_ASK,           /* its worker asks a question */
    INPUT_ANSWER_SOME,   /* a question is answered, others are open */
    INPUT_ANSWER,        /* the last open one is answered, its worker goes on */
    INPUT_ANSWER_FREE,   /* … nobody holds its lease */
    INPUT_MISS_START,    /* still queued at its start_by */
    INPUT_RETRY,         /* a client has it done again, from the beginning … */
    INPUT_RESUME,        /* … or from where it was */
    INPUT_SET,           /* a client changes what may be changed */
    INPUT_PURGE,         /* removed by hand */
    INPUT_LATE,          /* an attempt that is over brings a success, which is kept */
    INPUT_ADOPT,         /* a client makes it the outcome */
    INPUT_TURN,          /* its worker tells of a turn, … */
    INPUT_ARTIFACT,      /* … or attaches a body */
    INPUT_IMPORT,        /* it comes from elsewhere, and waits … */
    INPUT_IMPORT_ASKING, /* … for an answer … */
    INPUT_IMPORT_COMPLETED, /* … or has ended so */
    INPUT_IMPORT_FAILED,
    INPUT_IMPORT_CANCELLED,
    INPUT_COUNT
} task_input_t;

typedef struct transition {
    tmq_status_t to;        /* NONE: the task is removed */
    tmq_event_kind_t event; /* NONE: not permitted */
} transition_t;

/* The row for this pair, or NULL when it is not permitted. from is NONE for a new task. */
const transition_t *transition_find (tmq_status_t from, task_input_t input);

/* A live task. */

typedef struct queue queue_t;
typedef struct worker worker_t;
typedef struct lane lane_t;
typedef struct lanes lanes_t;

enum { RETURNS_MAX = UINT16_MAX };
enum { PUSHES_KEPT = 7 }; /* beside the newest: so many may be repeated after a cut */

/* What a task gains when it is first touched: one that only waits to be claimed has none. */
typedef struct detail {
    struct task *task;
    node_t lazy;            /* in the engine's list of changes that may wait to be written */
    int64_t lazy_due_ms;    /* mono: but no longer than this */
    node_t noticed;         /* in the list of those with progress to tell */
    worker_t *holder;       /* who has the lease; NULL: nobody */
    struct fair *fair;      /* the fair key that the lease counts for; NULL: none */
    node_t held;            /* in the holder's list of leases */
    struct member *member;  /* … as which the lease is counted (members.h); NULL: as none */
    uint64_t assignment;    /* its number for the holder; 0: unknown (given before a restart) */
    int64_t lease_due_ms;   /* clocks_awake_ms */
    int64_t runtime_due_ms; /* mono: the attempt ends then; 0: no bound, or not started */
    name_t *worker;         /* name of the worker of the current attempt */
    name_t *identity;       /* … and who the broker took it for */
    name_t *result_type;    /* a content type: few different ones */
    uint8_t secret[16];
    uint8_t worker_id[16];
    uint8_t request_id[16];
    uint8_t *pushed; /* request ids of the messages before, PUSHES_KEPT of 16 bytes; NULL: none */
    int64_t started_at;
    int64_t finished_at;
    char *status_message; /* this and the following texts: NULL for empty */
    double progress_done;
    double progress_total;
    char *progress_unit;
    char *progress_message;
    char *error_message;
    char *error_data;
    buf_t *result;
    uint32_t result_bytes;
    uint32_t error_data_bytes;
    int32_t error_code;
    tmq_outcome_kind_t outcome;
    bool listed;       /* while its worker registers: the worker has it */
    struct flow *flow; /* of its log (flow.h); NULL: its worker has sent none */
} detail_t;

typedef struct task {
    node_t place;          /* in its queue's FIFO list, or among the delayed tasks */
    struct task *returned; /* third link of the queue's heap, see queue.c */
    alarm_t alarm;         /* for whatever is due first (due.h) */
    int64_t number;
    tmq_id_t id;
    queue_t *queue; /* implies the namespace */
    name_t *owner;
    struct session *session; /* NULL: none */
    char *texts; /* packed: their length, method, content type, dedup key, meta, labels; NULL: all
                  * empty */
    buf_t *payload;
    extra_t *extra; /* what few tasks have (extras.h); NULL: none of it */
    detail_t *detail;
    struct lane *lane; /* while it is ready: where it stands (lanes.h); NULL: in the plain order */
    struct wait_entry *waits; /* who waits for its end */
    int64_t created_at;
    int64_t updated_at;
    int64_t expires_at;
    int64_t not_before;
    int64_t ttl_ms;
    uint64_t last_seq;
    uint64_t changed; /* newest batch with a change of it */
    uint32_t version;
    uint32_t payload_bytes;
    uint32_t poll_interval_ms;
    uint32_t lease_ms;
    uint32_t backoff_ms;
    uint32_t max_attempts;
    uint32_t attempt;
    uint32_t failures;
    uint8_t digest[RECORD_DIGEST_BYTES];
    uint16_t returns; /* no more than RETURNS_MAX are counted */
    uint8_t priority;
    uint8_t status; /* tmq_status_t */
    uint8_t labels_count;
    bool dead : 1;
    bool ready : 1;      /* in its queue's order */
    bool in_heap : 1;    /* … among the returned ones */
    bool held : 1;       /* ready, but its session holds it back (session.h) */
    bool due : 1;        /* not_before has passed on the monotonic clock */
    bool scheduled : 1;  /* waits for not_before */
    bool by_wall : 1;    /* … which is a time of day, not a duration (due.c) */
    bool ends_first : 1; /* … and the alarm is for its end, which comes before */
    bool leased : 1;     /* detail->holder has it */
    bool started : 1;    /* by the holder of the current attempt */
    bool has_dedup_key : 1;
    bool in_batch : 1;       /* in the open batch */
    bool payload_stored : 1; /* in a batch that was taken, or in the tables */
    bool payload_cached : 1; /* counted in the engine's cache */
    bool payload_wanted : 1; /* to be looked up before it can be assigned */
    bool result_stored : 1;
    bool blocked : 1;    /* waits for others to end (edges.h) */
    bool awaited : 1;    /* others wait for its end */
    bool leaving : 1;    /* in the list of those to be forgotten */
    bool asks : 1;       /* it has asked something (question.h) */
    bool removed : 1;    /* and found no more; its memory waits for its rows */
    bool relabelled : 1; /* its labels are not those of the submit */
    bool side : 1;       /* while it is ready: on which side of its queue (queue->side) */
} task_t;

/* The strings of a task that never change, taken apart. They point into the task. */
typedef struct task_texts {
    const char *method;
    const char *content_type;
    const char *dedup_key;
    const char *meta;
    label_t labels[TMQ_LABELS_MAX];
} task_texts_t;
void task_texts (const task_t *self, task_texts_t *out);
/* What they take when they are packed. */
size_t task_texts_bytes (const task_texts_t *texts, size_t labels_count);
/* Packs them; takes copies. */
void task_set_texts (task_t *self, const task_texts_t *texts, size_t labels_count);
/* Packs others in their place; they may point into the old ones. */
void task_replace_texts (task_t *self, const task_texts_t *texts, size_t labels_count);
/* What its texts take. */
uint32_t task_texts_length (const task_t *self);
/* The dedup key alone, empty when there is none. */
const char *task_dedup_key (const task_t *self);

/* Replaces one of the detail's texts; an empty one becomes NULL. */
void detail_set_text (char **place, const char *text);
static inline bool task_is_terminal (const task_t *self)
{
    return self->status >= TMQ_STATUS_COMPLETED;
}
/* It was cancelled, and perhaps queued again, but its worker has not stopped yet (S5). */
static inline bool task_is_withdrawn (const task_t *self)
{
    return self->leased &&
           (self->status == TMQ_STATUS_CANCELLED || self->status == TMQ_STATUS_QUEUED);
}

/* Memory for tasks. */

/* Slab of tasks: chunks that never move, a list of free places, and a list of details to be used
 * again. */
typedef struct slab {
    task_t **chunks;
    size_t chunks_count;
    size_t chunks_capacity;
    node_t free;
    size_t used;    /* tasks handed out */
    node_t details; /* spare ones */
    size_t details_count;
} slab_t;
void slab_init (slab_t *self);
task_t *slab_take (slab_t *self); /* zeroed */
void slab_give (slab_t *self, task_t *task);
void slab_free (slab_t *self);
/* The detail, made when it is not there yet. */
detail_t *task_detail (slab_t *slab, task_t *self);
/* Frees what the task owns except its names. */
void task_clear (slab_t *slab, task_t *self);

#endif
