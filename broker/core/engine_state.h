/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The state of the engine: namespaces with their ring of events, links and what waits to leave for
 * them, workers, waits, reads, subscriptions, the batches under way; and the engine that has them
 * all. Only structs; what is done with them stands in the files that engine_private.h names. */
#ifndef TASKMQ_CORE_ENGINE_STATE_H
#define TASKMQ_CORE_ENGINE_STATE_H

#include "bytes.h"
#include "core/absent.h"
#include "core/engine.h"
#include "core/list.h"
#include "core/map.h"
#include "core/names.h"
#include "core/queue.h"
#include "core/secrets.h"
#include "core/task.h"
#include "core/wheel.h"

typedef struct link link_t;
typedef struct subscription subscription_t;
typedef struct topic topic_t; /* interest.c */
typedef struct watch watch_t;

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
    SPACES_MAX = 10000,              /* namespaces with events: each costs rows for ever */
    LINK_WORKERS_MAX = 1000,         /* registered on one link; one is usual */
    NOTICES_MAX = 256                /* that wait for one link; more are dropped */
};

/* What the alarms are members of. */
enum { ALARM_TASK = 1, ALARM_WAIT, ALARM_LINK, ALARM_STREAM };

/* Numbers. */

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

/* Namespaces. */

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

/* What a subscription is found under when something happens: the most telling of what its filter
 * names. */
typedef enum interest {
    INTEREST_WIDE = 0, /* none of them: it is asked about every event */
    INTEREST_TASKS,
    INTEREST_SESSIONS,
    INTEREST_QUEUES,
    INTERESTS
} interest_t;

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
    node_t blocks;                /* the ring's, oldest first */
    size_t interested[INTERESTS]; /* subscriptions of each kind */
    map_t topics;                 /* names that subscriptions are found under */
    node_t wide;                  /* subscriptions of INTEREST_WIDE */
    node_t resting;               /* others, that were told everything up to the end */
    slice_t slices[SLICES];
    size_t slice_next;
    char name[TMQ_NAME_LENGTH_MAX + 1];
};

/* Links and what leaves. */

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
    bool suspect;  /* a lease of its workers ran out unreported: nothing new until it is heard */
    bool silent;   /* heartbeats were missed: no new assignments */
    bool dead;     /* out of the table; kept while items or reads refer to it */
    bool silenced; /* dead, and what is held for it is dropped too (not after a goodbye) */
    bool lost;     /* an answer could not leave: nothing is served before a new hello */
    bool stalled; /* the transport refused a message: no streams or assignments until it is heard */
    uint64_t serial; /* counts hellos: a worker moves to newer links only */
    uint8_t token[16];
    space_t *space;
    name_t *identity;
    int64_t heard;    /* mono ms of its newest message */
    int64_t gone_due; /* end of the grace after the hint; 0: not suspected */
    alarm_t alarm;
    size_t references;  /* held items and reads */
    item_t *held_reply; /* newest held item of answers, if any; further ones may join it */
    node_t ready;       /* items that may leave */
    size_t notices;     /* … of them */
    node_t output;      /* in the engine's list of links that have something to send */
    node_t subscriptions;
    map_t subscriptions_by_id;
    node_t streams; /* subscriptions that have something to send */
    node_t workers;
    size_t workers_count;
    node_t waits;
    size_t waits_count; /* ids */
};

/* Workers. */

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
    link_t *link;    /* NULL: it may come back and claim its leases */
    uint64_t serial; /* of the newest link that it was on */
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

/* Waits. */

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

/* Reads. */

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

/* Subscriptions. */

/* A place in a block of the ring, by the block's first sequence. */
typedef struct hint {
    uint64_t first_seq;
    size_t offset;
} hint_t;

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
    interest_t interest;
    node_t of_interest; /* in the namespace's list of the wide, or of those at rest */
    watch_t *watches;   /* its places in the topics */
    size_t watches_count;
    node_t starting; /* in the engine's list of those whose start is not durable yet */
    node_t stream;   /* in the link's list of those that have something to send */
    node_t left;     /* in the engine's list of those whose batch is in the message that left */
    filter_copy_t *filter;
    stream_phase_t phase;
    stream_sent_t last;
    bool snapshot_wanted;
    bool told_live; /* the client knows that the replay is over */
    bool upto_due;  /* time for an empty upto */
    bool held;      /* its window is full: news do not wake it before credit comes */
    bool gap;       /* to be told before anything else */
    uint64_t gap_from;
    uint64_t gap_to;
    uint64_t start_batch; /* that its `subscribed` waits for; UINT64_MAX: it is not known yet */
    uint64_t cursor;      /* everything up to it was considered */
    uint64_t match_seq;   /* newest event that may match; UINT64_MAX: any may */
    hint_t hint;          /* where the first one behind the cursor stands */
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
    uint32_t snapshot_sent;  /* its messages that left, … */
    uint32_t snapshot_taken; /* … and that the client has room behind */
    bool snapshot_more;      /* pages follow */
    bool snapshot_read;      /* the page is here, perhaps empty */
    bool snapshot_told;      /* the message with `last` has left */
};

/* The engine. */

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
    uint32_t spaces_used; /* with events */
    uint64_t hellos;
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

    absent_t absent;
    lookup_t *loaded;
    size_t loaded_count;
    map_t loaded_by_key;

    node_t held;        /* items, by batch */
    node_t spare_items; /* places of items that left */
    size_t spare_items_count;
    node_t outputs;      /* links that have something to send */
    node_t denied;       /* … more in the next round: the looks of this one were used up … */
    node_t spent;        /* … by these, which come last */
    uint64_t looks;      /* of subscriptions at events, in this round of output */
    bytes_t scratch;     /* one item while it is packed */
    bytes_t envelope;    /* the message that is leaving */
    link_t *leaving;     /* … to whom; NULL: nothing left yet */
    node_t left;         /* its items, until the next output */
    node_t left_streams; /* … or the subscriptions */
    buf_t *left_body;

    node_t jobs;       /* reads that wait to be given away */
    node_t jobs_given; /* reads that readers have */

    node_t starting;   /* subscriptions, by the batch of their start */
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

#endif
