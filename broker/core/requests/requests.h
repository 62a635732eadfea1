/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Requests, a family a file. A handler decodes, checks, acts and answers. */
#ifndef TASKMQ_CORE_REQUESTS_H
#define TASKMQ_CORE_REQUESTS_H

#include "core/base/map.h"
#include "core/base/retention.h"
#include "core/data/deed.h"
#include "core/history/history.h"
#include "core/match/match.h"
#include "core/peers/links.h"
#include "core/reads/reads.h"
#include "core/sessions/sessions.h"
#include "core/streams/streams.h"
#include "core/tasks/tasks.h"
#include "taskmq.pb-c.h"
#include "validate.h"

/* What stays, as a pass of retention goes on. */
typedef struct book {
    retention_tally_t space;
    map_t queues; /* those that have a rule */
} book_t;

enum { CLEANUP_LOOKS_MAX = 4 }; /* requests that look what would go, at a time: each has a book */

typedef struct cleanup {
    node_t spaces;   /* that are to be gone through; the first one is */
    bool begun;      /* … */
    bool reading;    /* its next page is being read */
    int64_t next_ms; /* mono: when all of them are wanted again */
    int64_t before_number;
    book_t book;
    size_t looks;                                 /* requests under way that look what would go */
    struct cleanup_look *kept[CLEANUP_LOOKS_MAX]; /* whose next page may be asked for, or NULL */
    size_t kept_next;                             /* gives way */
} cleanup_t;

typedef struct requests {
    base_t *base;
    history_t *history;
    tasks_t *tasks;
    sessions_t *sessions;
    links_t *peers;
    reads_t *reads;
    streams_t *streams;
    match_t *match;
    size_t waits;        /* ids that are waited for */
    node_t waits_owed;   /* tasks that ended, whose waits have no answer yet (wait.c) */
    node_t waits_over;   /* waits that are still to be freed … */
    node_t waiters_gone; /* … and those of links that have ended */
    node_t stats;        /* requests for stats that are being answered (stats.c) */
    size_t stats_count;
    node_t errands; /* requests that need a file (errands.c): to be given to the server, … */
    node_t errands_given;          /* … and with it */
    size_t errands_count;          /* for operators, … */
    size_t errands_of_all_count;   /* … for everybody, … */
    size_t errands_of_blobs_count; /* … and about blobs */
    node_t log_pieces;             /* to be given to the server (log.c) */
    size_t log_bytes;              /* of memory, of them, and of those that are with it */
    deed_t deeds[DEEDS_MAX];       /* for the record (deeds.c) */
    size_t deeds_count;
    size_t deeds_told;   /* of them */
    uint64_t deeds_left; /* those not sampled that found no place */
    counter_t *foreign;  /* counters of server and store, for stats */
    size_t foreign_count;
    cleanup_t cleanup;
    policy_t *policy; /* kept; NULL: everybody may do everything */
    policy_ends_t ends;
} requests_t;

/* One request while it is handled. */
typedef struct call {
    requests_t *requests;
    link_t *link;
    const char *identity; /* who net says the peer is */
    const Taskmq__Request *request;
    const verdict_t *items; /* of a submit, may be NULL */
    const uint8_t *body;    /* from the request's first body on */
    size_t body_bytes;
    bool bodies;  /* the link may see them, of the task that get_find found, … */
    bool no_body; /* … and wants none of them */
} call_t;

/* Every submit of this round is answered STORE_FULL or OVERLOADED, so it need not be looked up. */
bool submits_are_refused (const requests_t *self);
/* Nothing new is taken now: STORE_FULL, OVERLOADED, or LIMIT for another namespace was answered. */
bool new_is_refused (call_t *call);

void on_hello (call_t *call);
void on_goodbye (call_t *call);
void on_heartbeat (call_t *call);
void on_submit (call_t *call);
void on_import (call_t *call);
void on_get (call_t *call);
void on_result (call_t *call);
void on_payload (call_t *call);
void on_cancel (call_t *call);
void on_why (call_t *call);
void on_log (call_t *call);
void on_blob_begin (call_t *call);
void on_blob_chunk (call_t *call);
void on_blob_read (call_t *call);
void on_blob_drop (call_t *call);
void on_read_log (call_t *call);
void on_ask (call_t *call);
void on_take_answers (call_t *call);
void on_answer (call_t *call);
void on_inbox (call_t *call);
void on_list (call_t *call);
void on_search (call_t *call);
void on_count (call_t *call);
void on_resolve (call_t *call);
void on_task_events (call_t *call);
void on_stats (call_t *call);
void on_checkpoint (call_t *call);
void on_checkpoint_read (call_t *call);
void on_retry (call_t *call);
void on_resume (call_t *call);
void on_set (call_t *call);
void on_purge (call_t *call);
void on_cleanup (call_t *call);
void on_adopt (call_t *call);
void on_attempts (call_t *call);
void on_artifact (call_t *call);
void on_artifacts (call_t *call);
void on_turn (call_t *call);
void on_turns (call_t *call);
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
void on_queue_list (call_t *call);
void on_queue_set (call_t *call);
void on_queue_show (call_t *call);
void on_queue_pause (call_t *call);
void on_queue_resume (call_t *call);
void on_session_set (call_t *call);
void on_session_show (call_t *call);
void on_session_list (call_t *call);
void on_session_status (call_t *call);
void on_session_remove (call_t *call);
void on_schedule_put (call_t *call);
void on_schedule_show (call_t *call);
void on_schedule_list (call_t *call);
void on_schedule_pause (call_t *call);
void on_schedule_resume (call_t *call);
void on_schedule_remove (call_t *call);
void on_value_put (call_t *call);
void on_value_get (call_t *call);
void on_value_list (call_t *call);
void on_value_remove (call_t *call);
void on_worker_list (call_t *call);
void on_worker_show (call_t *call);
void on_worker_drain (call_t *call);
void on_item_put (call_t *call);
void on_item_read (call_t *call);
void on_item_ack (call_t *call);

#endif
