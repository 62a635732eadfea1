/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscribers: what each of them is told, and who listens to which namespace. */
#ifndef TASKMQ_CORE_STREAMS_H
#define TASKMQ_CORE_STREAMS_H

#include "core/history/ring.h"
#include "core/peers/links.h"
#include "core/reads/reads.h"
#include "core/wire/filter.h"

typedef struct subscription subscription_t;
typedef struct topic topic_t; /* interest.c */
typedef struct watch watch_t;

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

/* Who listens to a namespace; made for the first of them, freed with the last. */
typedef struct audience {
    size_t interested[INTERESTS]; /* subscriptions of each kind */
    map_t topics;                 /* names that subscriptions are found under */
    node_t wide;                  /* subscriptions of INTEREST_WIDE */
    node_t resting;               /* others, that were told everything up to the end */
    slice_t slices[SLICES];
    size_t slice_next;
} audience_t;

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
    link_t *link; /* NULL: it has ended */
    event_log_t *log;
    node_t of_link;
    interest_t interest;
    node_t of_interest; /* in the namespace's list of the wide, or of those at rest */
    watch_t *watches;   /* its places in the topics */
    size_t watches_count;
    node_t concerned; /* in the list of those that an event concerns */
    node_t starting;  /* in the engine's list of those whose start is not durable yet */
    node_t stream;    /* in the link's list of those that have something to send */
    node_t left;      /* in the engine's list of those whose batch is in the message that left */
    filter_copy_t *filter;
    stream_phase_t phase;
    stream_sent_t last;
    bool snapshot_wanted;
    bool told_live; /* the client knows that the replay is over */
    bool upto_due;  /* time for an empty upto */
    bool logs;      /* it is told how far the logs of its tasks are */
    bool held;      /* its window is full: news do not wake it before credit comes */
    bool gap;       /* to be told before anything else */
    uint64_t gap_from;
    uint64_t gap_to;
    uint64_t start_batch; /* that its `subscribed` waits for; UINT64_MAX: it is not known yet */
    uint64_t cursor;      /* everything up to it was considered */
    uint64_t match_seq;   /* newest event that may match; UINT64_MAX: any may */
    hint_t hint;          /* where the first one behind the cursor stands */
    uint64_t live_seq;    /* newest event when it began, or fell back: up to it is the replay */
    uint64_t acked;       /* … was taken by the application */
    uint64_t sent_upto;   /* newest upto that left */
    alarm_t alarm;        /* for the next empty upto */
    sent_t *sent;         /* not yet acknowledged, oldest first */
    size_t sent_count;
    size_t sent_capacity;
    size_t unacked_bytes;
    read_job_t *job;     /* a read under way */
    node_t paged;        /* in the list of those of its link that hold a page that was read */
    event_block_t *page; /* blocks of the replay that were read */
    size_t page_count;
    size_t bytes;          /* of what its peer chose: counted in streams_t */
    record_t **snapshot;   /* a page of the snapshot */
    size_t snapshot_bytes; /* of one by id, which is not read again; else 0 */
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

/* Beyond it a page whose reader stalls is dropped and read again. How many may be read and held:
 * reads/jobs.c. */
enum { PAGES_HELD_MAX = 64 };

typedef struct streams {
    base_t *base;
    history_t *history;
    links_t *peers;
    reads_t *reads;
    node_t ended;      /* subscriptions that are still to be freed (by of_link) */
    node_t starting;   /* subscriptions, by the batch of their start */
    uint64_t streamed; /* newest batch whose events subscribers may see */
    uint64_t looks;    /* of subscriptions at events, in this round of output */
    size_t pages_held; /* of replays */
    size_t count;      /* subscriptions, … */
    size_t of_logs;    /* … that are told of logs */
    size_t bytes;      /* … with their filters and snapshots by id */
} streams_t;

void streams_init (streams_t *self, base_t *base, history_t *history, links_t *peers,
                   reads_t *reads);
void streams_reset (streams_t *self); /* every subscription is closed already */

#endif
