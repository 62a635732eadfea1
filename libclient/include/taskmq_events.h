/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Events: the history of a task, and subscriptions, which bring every change once and in order. A
 * part of taskmq.h, which includes it. */
#ifndef TASKMQ_EVENTS_H
#define TASKMQ_EVENTS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Events and subscriptions. */

typedef enum tmq_item_kind {
    TMQ_ITEM_EVENT = 1, /* numbered, once, in order */
    TMQ_ITEM_SNAPSHOT,  /* the present state of a task; item->task */
    TMQ_ITEM_SNAPSHOT_END,
    TMQ_ITEM_NOTICE, /* progress, or how far a log is; best effort, seq 0 */
    TMQ_ITEM_GAP,    /* events gap_from..gap_to are no longer kept */
    TMQ_ITEM_LIVE    /* the replay has caught up (once) */
} tmq_item_kind_t;

/* One item of a subscription or of a task's history. What does not apply is 0 or "". */
typedef struct tmq_event {
    tmq_item_kind_t item;
    tmq_event_kind_t kind; /* of TMQ_ITEM_EVENT */
    uint64_t generation;
    uint64_t seq;
    uint64_t at;
    tmq_id_t task_id;
    const char *ns;
    const char *queue;
    const char *session;
    const char *owner;     /* of the task */
    tmq_status_t status;   /* 0 for a removal */
    tmq_status_t previous; /* 0 for a new task */
    uint32_t attempt;
    const char *worker;
    const char *actor;
    const char *message;
    bool has_progress;
    double progress_done;
    double progress_total;
    const char *progress_unit;
    const char *progress_message;
    const tmq_label_t *labels;
    size_t labels_count;
    const tmq_task_t *task; /* of TMQ_ITEM_SNAPSHOT, freed with the event */
    uint64_t gap_from;
    uint64_t gap_to;
    char cursor[48];       /* to go on behind this item: text GEN-SEQ */
    tmq_subject_t subject; /* what the event is about: TMQ_SUBJECT_TASK, or what has no task_id … */
    const char *name;      /* … but a name: of a value its key, … */
    uint64_t number;       /* … of an item */
    const char *trace;     /* of the task */
    bool has_log;          /* a notice of how far the log of this attempt is: */
    uint64_t log_out;      /* where its stdout ends, … */
    uint64_t log_err;      /* … and its stderr */
} tmq_event_t;
/* Frees the item with its task. Accepts NULL. */
TMQ_API void tmq_event_free (tmq_event_t *event);

struct tmq_event_list {
    tmq_event_t *const *events; /* oldest first */
    size_t count;
    uint64_t before_seq; /* for the page before, 0: nothing before */
};
/* Frees the list with its events. Accepts NULL. */
TMQ_API void tmq_event_list_free (tmq_event_list_t *list);
/* The history of one task, a page of it, oldest first. before_seq 0: its newest page; else the
 * before_seq of a page, for the one before it. limit 0: 50, at most 1,000.
 * Codes: TMQ_NOT_FOUND, TMQ_EXPIRED, TMQ_PURGED. */
TMQ_API int tmq_events (tmq_event_list_t **out, tmq_client_t *client, const tmq_id_t *id,
                        uint64_t before_seq, uint32_t limit, uint32_t timeout_ms,
                        tmq_error_t *error);
TMQ_API int tmq_events_start (tmq_client_t *client, const tmq_id_t *id, uint64_t before_seq,
                              uint32_t limit, uint32_t timeout_ms, void *user, tmq_error_t *error);

typedef struct tmq_subscription tmq_subscription_t;

typedef struct tmq_subscription_options {
    size_t size;         /* set by the initialiser */
    tmq_filter_t filter; /* created_* unused; copied */
    const char *cursor;  /* GEN-SEQ, or SEQ of the current generation: go on behind it; NULL: now */
    uint64_t since_time; /* instead: from the first retained event at or after it */
    bool snapshot;       /* first the present state of all matching tasks */
    size_t buffer_bytes_max; /* not yet taken by the application; default 1 MiB */
    bool notify;             /* deliver TMQ_OP_SUBSCRIPTION_READY completions */
    void *user;
    const tmq_subject_t *subjects; /* what the events are to be about; none: tasks only */
    size_t subjects_count;
    const char *name_prefix; /* of other subjects: what their names begin with; NULL: any */
    bool logs;               /* also notices of how far the logs of its tasks are */
    const char *owner; /* whose tasks, by a gateway: see tmq_client_on_behalf; NULL: our own */
} tmq_subscription_options_t;
/* Fills in the defaults. */
TMQ_API void tmq_subscription_options_init (tmq_subscription_options_t *options, size_t size);
#define tmq_subscription_options_init(options)                                                     \
    tmq_subscription_options_init ((options), sizeof *(options))

/* Subscribes; does not wait for the broker. Lives through reconnects until it is freed: every event
 * that matches comes once and in order, or a gap is told. options NULL: everything from now on.
 * A snapshot that a lost connection interrupts begins anew, so a task may be shown twice.
 * A client may have 10,000; what the broker has to look at for an event does not grow with them.
 * Memory: at most buffer_bytes_max and one window of the broker (32 KiB of events, or two messages
 * of a snapshot) are buffered;
 * then the broker waits for the application, and later goes on, perhaps with a gap.
 * Codes: TMQ_INVALID, TMQ_BAD_CURSOR (not a cursor), TMQ_NO_MEMORY; the broker's refusal (LIMIT,
 * BAD_CURSOR, DENIED) comes with ready and next. */
TMQ_API int tmq_subscription_new (tmq_subscription_t **out, tmq_client_t *client,
                                  const tmq_subscription_options_t *options, tmq_error_t *error);
/* Unsubscribes, without waiting. *subscription becomes NULL. Accepts NULL. */
TMQ_API void tmq_subscription_free (tmq_subscription_t **subscription);
/* Waits until the broker has confirmed the subscription: later changes cannot be missed.
 * Codes: TMQ_TIMEOUT with the reason, or the broker's refusal, which is final. */
TMQ_API int tmq_subscription_ready (tmq_subscription_t *subscription, uint32_t timeout_ms,
                                    tmq_error_t *error);
/* The next item, in order. Codes: TMQ_TIMEOUT when there is none in time; any other code says that
 * none will come any more (the broker refused the subscription or the client, TMQ_CLOSED). */
TMQ_API int tmq_subscription_next (tmq_event_t **out, tmq_subscription_t *subscription,
                                   uint32_t timeout_ms, tmq_error_t *error);
/* The cursor behind all items that were taken. It moves on also while nothing matches. Store it,
 * and go on with it in another process or on another day. Text of at most 47 characters and a NUL.
 * Does not block. Codes: TMQ_TIMEOUT before the first confirmation. */
TMQ_API int tmq_subscription_cursor (char out[48], tmq_subscription_t *subscription);

#ifdef __cplusplus
}
#endif
#endif
