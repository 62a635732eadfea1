/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The inside of the engine: its structs, and what its files offer each other. Only files of
 * broker/core/ and the engine's unit tests include it.
 *
 *     engine.c     the table of requests, one message, one tick
 *     lookup.c     what a message needs of the store, and where a task is found
 *     batch.c      the open batch, images, what durable and written mean for memory
 *     change.c     one transition with all that follows from it; events
 *     dispatch.c   ready tasks to waiting workers
 *     release.c    who waits for which batch; messages to peers
 *     link.c       hello, token, heartbeat, silence, grace
 *     submit.c worker.c outcome.c query.c list.c wait.c subscribe.c stats.c   requests by family
 *     stream.c     the ring of newest events, and what a subscription is sent
 *     restore.c    start, restart, removal
 *     pack.c       events, tasks and assignments in the wire's form
 */
#ifndef TASKMQ_CORE_ENGINE_PRIVATE_H
#define TASKMQ_CORE_ENGINE_PRIVATE_H

#include "bytes.h"
#include "core/engine.h"
#include "core/list.h"
#include "core/map.h"
#include "core/memory.h"
#include "core/names.h"
#include "core/planted.h"
#include "core/queue.h"
#include "core/secrets.h"
#include "core/task.h"
#include "core/wheel.h"

typedef struct link link_t;
typedef struct subscription subscription_t;

enum {
    FINE_MS = 16,                  /* granularity of leases, delays and links: a turn of 65 s */
    COARSE_MS = 1000,              /* … of expiry: a turn of 68 min */
    LAZY_MS = 5000,                /* an uncounted change is written at the latest then (S4, S23) */
    OVERLOAD_RETRY_MS = 100,       /* the write-back's own interval */
    FULL_RETRY_MS = 1000,          /* a write-back without space is repeated every second (A22) */
    LEAP_MS = 60 * 60 * 1000,      /* a forward leap of wall time that holds the sweep (S27) */
    LEAP_HOLD_MS = 10 * 60 * 1000, /* … for so long */
    FETCH_TASKS_MAX = 256,         /* payloads looked up for one queue in one drain */
    ENVELOPE_FILL_BYTES = 60 * 1024, /* of 64 KiB: room for the wrapping of one more item */
    LINK_WORKERS_MAX = 1000,         /* registered on one link; one is usual */
    NOTICES_MAX = 256                /* that wait for one link; more are dropped */
};

/* What the alarms are members of. */
enum { ALARM_TASK = 1, ALARM_WAIT, ALARM_LINK, ALARM_STREAM };

/* ---- Numbers ------------------------------------------------------------------------------------ */

/* Counters and gauges of `stats`, each with its meaning. */
#define ENGINE_COUNTER_MAP(X)                                                                      \
    X (submitted, "tasks accepted")                                                                \
    X (existing, "submits answered with a task that was there already")                            \
    X (claimed, "assignments made")                                                                \
    X (completed, "tasks completed")                                                               \
    X (failed, "tasks failed, for whichever reason")                                               \
    X (dead, "tasks failed because their attempts were used up")                                   \
    X (cancelled, "tasks cancelled")                                                               \
    X (expired, "queued tasks whose time to live ended")                                           \
    X (removed, "terminal tasks removed after their time to live")                                 \
    X (attempts_failed, "attempts that failed and will be repeated")                               \
    X (released, "tasks given back, not counted")                                                  \
    X (leases_lost, "leases that ended before their worker reported")                              \
    X (stale_leases, "reports refused because another attempt took over")                          \
    X (requests, "requests taken")                                                                 \
    X (refused, "requests answered with an error")                                                 \
    X (overloads, "submissions refused because too much was pending")                              \
    X (full, "submissions refused because the disk was full")                                      \
    X (no_links, "requests without a link")                                                        \
    X (events, "events stored")                                                                    \
    X (notices, "progress notices sent")                                                           \
    X (gaps, "gaps told to subscribers")                                                           \
    X (outputs, "messages sent")                                                                   \
    X (outputs_failed, "messages that the transport refused")                                      \
    X (batches, "commit batches closed")                                                           \
    X (lookups, "keys looked up in the tables")                                                    \
    X (reads, "page reads given to readers")                                                       \
    X (clock_leaps, "forward leaps of wall time over an hour")                                     \
    X (resets, "restarts of the engine after a failed commit")

typedef struct counts {
#define X(name, meaning) uint64_t name;
    ENGINE_COUNTER_MAP (X)
#undef X
} counts_t;

/* ---- Namespaces ---------------------------------------------------------------------------------- */

/* A block of the ring: the events of one batch. */
typedef struct ring_block {
    node_t in_space; /* rising sequences */
    node_t in_ring;  /* of all namespaces, by age */
    space_t *space;
    uint64_t batch;
    uint64_t first_seq;
    uint32_t count;
    buf_t *list;
} ring_block_t;

/* The last slices of the ring that were cut, because many subscribers ask for the same one. */
enum { SLICES = 8 };
typedef struct slice {
    uint8_t digest[16]; /* of the filter; zero: none */
    uint64_t after_seq;
    uint64_t upto;        /* 0: not used */
    uint64_t durable_seq; /* when it was cut */
    uint32_t count;
    buf_t *list;
} slice_t;

struct space {
    uint32_t hash;
    uint32_t no; /* stands for the name in keys of tables */
    uint32_t links;
    uint32_t queues;
    uint32_t workers;
    uint64_t last_seq;    /* provisional ones included */
    uint64_t durable_seq; /* what subscribers may see */
    node_t opened;        /* in the open batch's list */
    bytes_t open;         /* packed EventList of the open batch */
    uint64_t open_pos;    /* broker-wide number of its first event */
    uint32_t open_count;
    node_t blocks; /* the ring's, oldest first */
    node_t subscriptions;
    slice_t slices[SLICES];
    size_t slice_next;
    char name[TMQ_NAME_LENGTH_MAX + 1];
};

/* ---- Links and what leaves ----------------------------------------------------------------------- */

typedef enum item_kind { ITEM_REPLY = 1, ITEM_ASSIGNMENT, ITEM_CANCEL, ITEM_NOTICE } item_kind_t;

/* A packed field of a BrokerMessage that waits for its batch, then for its turn. */
typedef struct item {
    node_t node; /* in the engine's held list, then in the link's ready list */
    link_t *link;
    uint64_t batch;
    item_kind_t kind;
    uint32_t attempt; /* of an assignment, with id */
    tmq_id_t id;
    buf_t *body;
    size_t bytes;
    uint8_t packed[];
} item_t;

struct link {
    peer_t peer;
    bool established;
    bool silent;   /* heartbeats were missed: no new assignments */
    bool dead;     /* out of the table; kept while items or reads refer to it */
    bool silenced; /* dead, and what is held for it is dropped too (not after a goodbye) */
    bool stalled; /* the transport refused a message: no streams or assignments until it is heard */
    uint8_t token[16];
    space_t *space;
    name_t *identity;
    int64_t heard;    /* mono ms of its newest message */
    int64_t gone_due; /* end of the grace after the hint; 0: not suspected */
    alarm_t alarm;
    size_t references; /* held items and reads */
    node_t ready;      /* items that may leave */
    size_t notices;    /* … of them */
    node_t output;     /* in the engine's list of links that have something to send */
    node_t subscriptions;
    size_t subscriptions_count;
    node_t streams; /* subscriptions that have something to send */
    node_t workers;
    size_t workers_count;
    node_t waits;
    size_t waits_count; /* ids */
};

/* ---- Workers ---------------------------------------------------------------------------------------- */

/* A worker's place at one queue. */
typedef struct seat {
    node_t node; /* in the queue's list of waiting seats */
    worker_t *worker;
    queue_t *queue;
} seat_t;

struct worker {
    uint8_t id[16];
    uint32_t hash;
    space_t *space;
    link_t *link; /* NULL: it may come back and claim its leases */
    node_t of_link;
    name_t *name;
    name_t *identity; /* NULL after a restart, until it registers */
    seat_t *seats;
    size_t seats_count;
    node_t leases; /* details */
    uint32_t held; /* their number */
    uint32_t capacity;
    uint64_t seen;
    uint64_t assigned; /* number of its newest assignment */
    bool kept;         /* its leases are being walked: do not free it */
    bool waiting;      /* its seats stand in the queues' lists */
};

/* ---- Waits ---------------------------------------------------------------------------------------------- */

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

/* ---- Reads ---------------------------------------------------------------------------------------------- */

/* A filter as the engine keeps it: one allocation, with the lists that a read_t points to. */
typedef struct filter_copy {
    filter_t filter;
    const tmq_id_t *ids;
    size_t ids_count;
    const label_t *labels;
    size_t labels_count;
    bool everything; /* no condition at all */
    uint8_t digest[16];
} filter_copy_t;

/* A read and the request or subscription that it is for. */
typedef struct job {
    read_t read; /* first: the read is the job */
    node_t node;
    uint64_t need; /* batch that must be written before */
    link_t *link;  /* referenced; NULL: nobody waits any more */
    uint64_t request;
    subscription_t *subscription;     /* NULL: it is for the request */
    filter_copy_t *filter;            /* owned, or NULL */
    char ns[TMQ_NAME_LENGTH_MAX + 1]; /* a reader may outlive the namespace's object */
} job_t;

/* ---- Subscriptions ---------------------------------------------------------------------------------------- */

/* An event batch that left and is not yet acknowledged. */
typedef struct sent {
    uint64_t upto;
    uint32_t bytes;
} sent_t;

typedef enum stream_phase {
    STREAM_STARTING = 1, /* waits for its start's batch, or for READ_SINCE */
    STREAM_RUNNING
} stream_phase_t;

/* What the last message was, for the case that the transport refuses it. */
typedef enum stream_sent { SENT_NOTHING = 0, SENT_GAP, SENT_SNAPSHOT, SENT_EVENTS } stream_sent_t;

struct subscription {
    uint64_t id;
    link_t *link;
    space_t *space;
    node_t of_link;
    node_t of_space;
    node_t stream; /* in the link's list of those that have something to send */
    filter_copy_t *filter;
    stream_phase_t phase;
    stream_sent_t last;
    bool snapshot_wanted;
    bool told_live; /* the client knows that the replay is over */
    bool upto_due;  /* time for an empty upto */
    bool gap;       /* to be told before anything else */
    uint64_t gap_from;
    uint64_t gap_to;
    uint64_t start_batch; /* that its `subscribed` waits for; UINT64_MAX: it is not known yet */
    uint64_t cursor;      /* everything up to it was considered */
    uint64_t acked;       /* … was taken by the application */
    uint64_t sent_upto;   /* newest upto that left */
    alarm_t alarm;        /* for the next empty upto */
    sent_t *sent;         /* not yet acknowledged, oldest first */
    size_t sent_count;
    size_t sent_capacity;
    size_t unacked_bytes;
    job_t *job;          /* a read under way */
    event_block_t *page; /* blocks of the replay that were read */
    size_t page_count;
    record_t **snapshot; /* a page of the snapshot */
    size_t snapshot_count;
    size_t snapshot_next;    /* first of it that has not left */
    size_t snapshot_mark;    /* … before the last message */
    int64_t snapshot_before; /* number that the next page begins below; 0: from the newest */
    bool snapshot_more;      /* pages follow */
    bool snapshot_read;      /* the page is here, perhaps empty */
    bool snapshot_told;      /* the message with `last` has left */
};

/* ---- The engine --------------------------------------------------------------------------------------------- */

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
    uint8_t secret[16];
    uint8_t request_id[16];
} attempt_note_t;
typedef struct removal_note {
    uint32_t hash;
    space_t *space;
    tmq_id_t id;
    tmq_code_t code;
} removal_note_t;

/* First in, first out, of pointers. */
typedef struct fifo {
    void **items;
    size_t first;
    size_t count;
    size_t capacity;
} fifo_t;
void fifo_push (fifo_t *self, void *item);
void *fifo_pop (fifo_t *self); /* NULL when empty */
void *fifo_first (const fifo_t *self);
void *fifo_at (const fifo_t *self, size_t index);
void fifo_free (fifo_t *self);

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
    node_t spaces; /* with events */
    size_t inputs;
    size_t bytes; /* estimate of what it holds */
} open_batch_t;

struct engine {
    engine_config_t config;
    secrets_t secrets;
    bool stopping;
    bool full;

    int64_t mono;
    int64_t wall;       /* never below the newest stored time (S27) */
    int64_t leap_ms;    /* what a held sweep does not yet count */
    int64_t away_ms;    /* wall time between the newest stored time and this start */
    int64_t hold_until; /* mono; the leap counts from then on */

    uint64_t generation;
    uint64_t epoch;
    int64_t last_number;
    uint64_t last_pos;

    names_t names;
    slab_t slab;
    map_t spaces;
    map_t queues;
    map_t tasks; /* by namespace and id */
    map_t dedup; /* by namespace, owner and key */
    map_t workers;
    map_t links;
    uint32_t spaces_made;
    wheel_t fine;   /* mono: leases, delays, links, deadlines */
    wheel_t coarse; /* wall: expiry of queued tasks */
    node_t lazy;    /* details with a change that may wait, by due time */

    open_batch_t open;
    fifo_t taken;
    size_t taken_durable; /* so many of them, from the first, are durable */
    uint64_t durable;
    uint64_t written;
    uint64_t settled;      /* written, and memory knows */
    size_t pending_inputs; /* of taken batches that are not durable */
    size_t pending_bytes;
    size_t dirty_tasks; /* changed and not written back */
    size_t dirty_bytes;
    size_t cached_bytes; /* payloads that the tables have too */
    fifo_t attempt_notes;
    fifo_t removal_notes;
    map_t attempts_by_key;
    map_t removals_by_key;

    node_t dispatch; /* queues to look at */
    node_t fetch;    /* queues whose head waits for its payload */

    lookup_t *loaded;
    size_t loaded_count;
    map_t loaded_by_key;

    node_t held;                 /* items, by batch */
    node_t outputs;              /* links that have something to send */
    bytes_t scratch;             /* one item while it is packed */
    bytes_t envelope;            /* the message that is leaving */
    link_t *leaving;             /* … to whom; NULL: nothing left yet */
    node_t left;                 /* its items, until the next output */
    subscription_t *left_stream; /* … or the subscription */
    buf_t *left_body;

    node_t jobs;       /* reads that wait to be given away */
    node_t jobs_given; /* reads that readers have */

    uint64_t streamed; /* newest batch whose events subscribers may see */
    node_t ring;       /* blocks of all namespaces, oldest first */
    size_t ring_bytes;
    size_t pages_held; /* of replays */
    task_t **noticed;  /* tasks with progress to tell */
    size_t noticed_count;
    size_t noticed_capacity;

    size_t established; /* gauges: links, … */
    size_t subscriptions;
    size_t waits;
    size_t ready;
    size_t leases;
    counts_t counts;
    counter_t *foreign; /* counters of server and store */
    size_t foreign_count;
};

/* One request while it is handled. */
typedef struct call {
    engine_t *engine;
    link_t *link;
    const char *identity; /* who net says the peer is */
    const Taskmq__Request *request;
    const verdict_t *items; /* of a submit, may be NULL */
    const uint8_t *body;    /* from the request's first body on */
    size_t body_bytes;
} call_t;

/* ---- engine.c ---- */

/* The time by which expiry is judged: wall time without a leap that is still held. */
int64_t engine_expiry_ms (const engine_t *self);
space_t *space_find (const engine_t *self, const char *name);
space_t *space_make (engine_t *self, const char *name); /* found or made */
void space_release (engine_t *self, space_t *space);    /* frees it when nobody needs it */
queue_t *queue_make (engine_t *self, space_t *space, const char *name);
void queue_release (engine_t *self, queue_t *queue);
void engine_clear (engine_t *self); /* everything that a reset forgets */
void engine_clock (engine_t *self, now_t now);

/* ---- lookup.c ---- */

/* Where a task is: in memory, in the answers of this drain's look-up, or gone and why. */
typedef struct found {
    task_t *task;
    const record_t *record;
    tmq_code_t gone; /* NOT_FOUND, EXPIRED, PURGED when neither of them is set */
} found_t;
found_t lookup_id (const engine_t *self, const space_t *space, const uint8_t *id);
found_t lookup_dedup (const engine_t *self, const space_t *space, const char *owner,
                      const char *key);
task_t *lookup_task (const engine_t *self, const space_t *space, const uint8_t *id);
uint32_t task_hash (const engine_t *self, const space_t *space, const uint8_t *id);
uint32_t dedup_hash (const engine_t *self, const space_t *space, const char *owner,
                     const char *key);
/* What is known of a former attempt: its row, in memory or in the tables; false: nothing. */
bool lookup_attempt (const engine_t *self, const space_t *space, const uint8_t *id, int64_t number,
                     uint32_t attempt, attempt_note_t *out);
bool record_is_expired (const engine_t *self, const record_t *record);
/* A payload that this drain's look-up brought, or NULL. Borrowed. */
buf_t *lookup_payload (const engine_t *self, const space_t *space, const uint8_t *id);
void lookup_clear (engine_t *self);

/* ---- batch.c ---- */

bool batch_is_empty (const engine_t *self);
/* The batch that what is computed now must wait for (A7). */
uint64_t batch_to_wait_for (const engine_t *self);
/* The task has changed: its image goes with the open batch. */
void batch_touch (engine_t *self, task_t *task);
/* … but that may wait up to LAZY_MS. */
void batch_touch_lazily (engine_t *self, task_t *task);
void batch_add_attempt (engine_t *self, const task_t *task, tmq_event_kind_t how,
                        int32_t error_code, const char *error_message, const uint8_t *request_id);
void batch_add_removal (engine_t *self, space_t *space, int64_t number, const tmq_id_t *id,
                        tmq_code_t code);
void batch_write_lazy (engine_t *self);        /* what has waited long enough */
int64_t batch_lazy_due (const engine_t *self); /* mono ms, INT64_MAX for none */
void batch_settle (engine_t *self);            /* forgets what is written and no longer live */
void batch_clear (engine_t *self);
/* The task as a record that points into it. */
void task_view (const task_t *task, record_t *out, task_texts_t *texts);
bool engine_is_overloaded (const engine_t *self);
attempt_note_t *attempt_note_find (const engine_t *self, int64_t number, uint32_t attempt);
removal_note_t *removal_note_find (const engine_t *self, const space_t *space, const uint8_t *id);

/* ---- change.c ---- */

/* Why a task changes, for its event. */
typedef struct cause {
    const char *actor;         /* NULL: the broker itself */
    const char *message;       /* NULL: none */
    const uint8_t *request_id; /* NULL: none */
} cause_t;

/* Applies one transition that must be permitted: status, version, event, image. The lease and the
 * place in the queue are the caller's. */
void change_apply (engine_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* A queued task goes to where it belongs: ready order or the wheel. */
void change_place (engine_t *self, task_t *task);
void change_unplace (engine_t *self, task_t *task);
/* The end of a task: times, expiry, and those who wait for it. */
void change_finish (engine_t *self, task_t *task, task_input_t input, const cause_t *cause);
/* … as failed, with the error that its detail has. */
void change_fail (engine_t *self, task_t *task, task_input_t input, const cause_t *cause);
void change_expire (engine_t *self, task_t *task);
/* A task whose attempt ended without an end of the task goes back to its queue. */
void change_requeue (engine_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                     const cause_t *cause);
/* An uncounted return (S4): release, goodbye, undelivered, lost before it was started. */
void change_return (engine_t *self, task_t *task, task_input_t input, int64_t delay_ms,
                    const cause_t *cause);
/* The lease ended by itself: counted when the attempt was started. */
void change_lose (engine_t *self, task_t *task, const char *why);
int64_t change_backoff_ms (engine_t *self, const task_t *task, uint32_t times);
void change_remove (engine_t *self, space_t *space, const record_t *record);
bool task_is_expired (const engine_t *self, const task_t *task);

/* ---- dispatch.c ---- */

void dispatch_queue_changed (engine_t *self, queue_t *queue); /* look at it at the end */
void dispatch_run (engine_t *self);
/* Puts a worker's seats into the waiting lists or takes them out, as its state asks. */
void dispatch_worker_changed (engine_t *self, worker_t *worker);
void lease_give (engine_t *self, worker_t *worker, task_t *task);
/* A lease that a restart found. */
void lease_restore (engine_t *self, worker_t *worker, task_t *task, int64_t lease_ms);
/* Ends the lease's record; the holder's credit is free again. */
void lease_end (engine_t *self, task_t *task);
void lease_arm (engine_t *self, task_t *task, int64_t lease_ms);
/* Gives back everything that the worker holds: returned (not counted) or lost. */
void worker_drop_leases (engine_t *self, worker_t *worker, bool lost, const char *why);
worker_t *worker_find (const engine_t *self, const space_t *space, const uint8_t *id);
worker_t *worker_make (engine_t *self, space_t *space, const uint8_t *id);
void worker_release (engine_t *self,
                     worker_t *worker); /* frees it when it is gone and holds nothing */
void worker_detach (engine_t *self, worker_t *worker); /* from its link and queues */

/* ---- release.c ---- */

/* A packed field of a BrokerMessage (see engine_t.scratch) for the link, held until batch is
 * durable; 0 leaves at once. Keeps the body once more. */
item_t *release_item (engine_t *self, link_t *link, item_kind_t kind, uint64_t batch,
                      const bytes_t *packed, buf_t *body);
/* Starts the answer to a request in scratch and sends it. text NULL: the code's own. */
bytes_t *reply_open (engine_t *self, uint64_t request, tmq_code_t code, const char *text,
                     uint32_t retry_after_ms, bool more, bytes_mark_t *mark);
void reply_close (engine_t *self, link_t *link, bytes_mark_t mark, uint64_t batch, buf_t *body);
void reply_code (call_t *call, tmq_code_t code, const char *text); /* waits (A7) */
void reply_code_at_once (call_t *call, tmq_code_t code, const char *text, uint32_t retry_ms);
void reply_to (engine_t *self, link_t *link, uint64_t request, tmq_code_t code, const char *text,
               uint64_t batch);
void release_durable (engine_t *self);
void release_link_ready (engine_t *self, link_t *link);
void release_forget_left (engine_t *self);
void release_drop_items (link_t *link);
void release_clear (engine_t *self);

/* ---- link.c ---- */

link_t *link_find (const engine_t *self, peer_t peer);
/* For peers without a link too: their answers need a place to wait in. */
link_t *link_make (engine_t *self, peer_t peer);
void link_heard (engine_t *self, link_t *link);
void link_close (engine_t *self, link_t *link, bool goodbye);
void link_unreference (engine_t *self, link_t *link);
void link_free_if_idle (engine_t *self, link_t *link);
void link_alarm (engine_t *self, link_t *link);
bool link_token_is (const link_t *link, const ProtobufCBinaryData *token);
void on_hello (call_t *call);
void on_goodbye (call_t *call);
void on_heartbeat (call_t *call);

/* ---- requests by family ---- */

void on_submit (call_t *call);
void on_get (call_t *call);
void on_result (call_t *call);
void on_payload (call_t *call);
void on_cancel (call_t *call);
void on_list (call_t *call);
void on_count (call_t *call);
void on_resolve (call_t *call);
void on_task_events (call_t *call);
void on_stats (call_t *call);
void on_wait (call_t *call);
void on_subscribe (call_t *call);
void on_credit (call_t *call);
void on_unsubscribe (call_t *call);
void on_register (call_t *call);
void on_worker_credit (call_t *call);
void on_started (call_t *call);
void on_renew (call_t *call);
void on_push (call_t *call);
void on_cancel_ack (call_t *call);
void on_complete (call_t *call);
void on_fail (call_t *call);
void on_release (call_t *call);
void on_leave (call_t *call);

/* ---- worker.c, outcome.c ---- */

/* The lease is the one under which the task is held now. */
bool lease_is_current (const engine_t *self, const task_t *task, const Taskmq__Lease *lease);
/* The lease is of the task's newest attempt, held or not. */
bool attempt_of_is (const found_t *found, const Taskmq__Lease *lease);
tmq_status_t found_status (const found_t *found); /* NONE when it is gone */
void cancel_acknowledge (call_t *call, task_t *task);

/* ---- wait.c ---- */

void wait_task_ended (engine_t *self, task_t *task);
void wait_drop (engine_t *self, wait_t *wait);

/* ---- list.c: reads ---- */

/* A read in the link's namespace, to be given away once the batch `need` is written back. */
job_t *job_new (engine_t *self, link_t *link, read_kind_t kind, uint64_t need);
void job_free (engine_t *self, job_t *job);
void jobs_clear (engine_t *self); /* forgets those that wait, and for whom the others are */
/* A copy of a filter in one allocation, to be freed with free (). filter NULL: no condition. */
filter_copy_t *filter_new (const char *ns, const Taskmq__Filter *filter);

/* ---- scan.c ---- */

/* What an event's packed form says, as far as filters and cursors need it. Texts are not
 * NUL-terminated. */
typedef struct scanned {
    const uint8_t *element; /* its element of the EventList, tag and length included */
    size_t element_bytes;
    const uint8_t *event;
    size_t event_bytes;
    uint64_t seq;
    uint64_t previous_seq;
    uint64_t status;
    const uint8_t *id; /* NULL, or 16 bytes */
    const uint8_t *queue;
    size_t queue_bytes;
    const uint8_t *session;
    size_t session_bytes;
} scanned_t;
/* The event at *at, which moves behind it; false at the end, or where the bytes are damaged. */
bool scan_event (const uint8_t **at, const uint8_t *end, scanned_t *out);
bool filter_takes_event (const filter_copy_t *filter, const scanned_t *event);
bool filter_takes_record (const filter_copy_t *filter, const record_t *record);

/* ---- stream.c ---- */

void stream_add_block (engine_t *self, space_t *space, uint64_t batch, uint64_t first_seq,
                       uint32_t count, buf_t *list);
void stream_durable (engine_t *self);
void stream_clear (engine_t *self);
/* It may have something to send: look at it before the next output. */
void stream_wake (engine_t *self, subscription_t *subscription);
/* Packs the next message of the subscription into the envelope; false: nothing for now. */
bool stream_next (engine_t *self, subscription_t *subscription, buf_t **body);
void stream_failed (engine_t *self, subscription_t *subscription);
void stream_read_done (engine_t *self, job_t *job);
void stream_alarm (engine_t *self, subscription_t *subscription);
void stream_close (engine_t *self, subscription_t *subscription);
void stream_notices (engine_t *self);
void stream_acknowledge (engine_t *self, subscription_t *subscription, uint64_t upto);
void subscription_started (engine_t *self, job_t *job); /* subscribe.c: READ_SINCE answered */

/* ---- pack.c ---- */

typedef struct event {
    uint64_t seq;
    int64_t at;
    tmq_event_kind_t kind;
    const tmq_id_t *id;
    const char *queue;
    const char *session;
    tmq_status_t status;
    tmq_status_t previous;
    uint32_t attempt;
    const char *worker;
    const char *actor;
    const char *message;
    const label_t *labels;
    size_t labels_count;
    uint64_t previous_seq;
} event_t;
void pack_event (bytes_t *out, const event_t *event); /* one element of an EventList */
tmq_phase_t task_phase (const task_t *task);
/* As field of an enclosing message. */
void pack_task (bytes_t *out, uint32_t field, const record_t *record, tmq_phase_t phase,
                uint32_t body_bytes);
void pack_assignment (bytes_t *out, const worker_t *worker, const task_t *task);
void pack_lease_state (bytes_t *out, uint32_t field, const uint8_t *id, uint32_t attempt,
                       tmq_code_t code, uint32_t lease_ms);

#endif
