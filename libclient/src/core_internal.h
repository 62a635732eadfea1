/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What the files of the core share: its structs, and the functions by which they call each other.
 *
 *     core.c          the link: welcome, heartbeats, reconnects; messages out, messages in
 *     requests.c      open requests: deadlines, repeats, answers
 *     encode.c        from the public structs to the fields of a request
 *     replies.c       from the fields of a reply to an answer
 *     waits.c         waits for the end of tasks, many of them in one request
 *     subscriptions.c cursors, replay, snapshot, credit
 *     workers.c       registrations, leases, renewals;  attempts.c: what is said about one attempt
 *     records.c       public records out of messages */
#ifndef TASKMQ_CLIENT_CORE_INTERNAL_H
#define TASKMQ_CLIENT_CORE_INTERNAL_H

#include "arena.h"
#include "bytes.h"
#include "core.h"
#include "tables.h"
#include "taskmq.pb-c.h"

enum {
    /* A reply may be a whole frame: that many at once, so that what comes back cannot exceed what
     * the broker may queue for a link (A40). */
    CORE_LARGE_OPEN_MAX = 4,
    CORE_CONNECT_MS = 2000,   /* until a connection takes messages */
    CORE_INTERNAL_MS = 30000, /* until an internal request without an answer is forgotten */
    CORE_RETRY_MS = 100,      /* when a refusal names no time */
    CORE_RESERVE_BYTES = 64,  /* of an envelope: the head of a request; the token is shorter */
    /* Of one request, so that it fits an envelope that holds nothing else. */
    CORE_FIELDS_BYTES_MAX = TMQ_ENVELOPE_BYTES_MAX - 2 * CORE_RESERVE_BYTES,
    CORE_RENEW_LEASES_MAX = 500,  /* of one request: 25 KiB */
    CORE_CREDIT_BYTES = 8 * 1024, /* received before credit is given: a quarter of the window */
    CORE_PUSH_MS = 100            /* between two pushes of one attempt: 10 a second (S23) */
};

/* Requests of the core itself, beside those of tmq_op_t. */
typedef enum core_op {
    CORE_OP_HELLO = 64,
    CORE_OP_HEARTBEAT,
    CORE_OP_GOODBYE,
    CORE_OP_WAIT,
    CORE_OP_SUBSCRIBE,
    CORE_OP_CREDIT,
    CORE_OP_UNSUBSCRIBE,
    CORE_OP_REGISTER,
    CORE_OP_WORKER_CREDIT,
    CORE_OP_STARTED,
    CORE_OP_RENEW,
    CORE_OP_PROGRESS,
    CORE_OP_GIVE_BACK,
    CORE_OP_CANCEL_ACK,
    CORE_OP_LEAVE
} core_op_t;

typedef struct core_queue {
    core_request_t *first;
    core_request_t *last;
} core_queue_t;

typedef enum core_request_state {
    CORE_REQUEST_NEW = 0,
    CORE_REQUEST_QUEUED,  /* in a queue, to be sent */
    CORE_REQUEST_SENT,    /* among the sent, waiting for its answer */
    CORE_REQUEST_DELAYED, /* refused for now, waiting until it may be sent again */
    CORE_REQUEST_ENDED
} core_request_state_t;

/* An operation that became several requests: a long submit batch. */
typedef struct core_group {
    core_answer_t answer; /* first: freed as such */
    core_target_t target;
    size_t open;           /* requests without an answer */
    int code;              /* first failure */
    core_request_t *first; /* until they are started */
} core_group_t;

/* One task of a submit batch, so that a batch can be sent again without those that are done. */
typedef struct core_item {
    uint32_t fields_bytes;
    uint32_t body_bytes;
    size_t receipt; /* index among the receipts of the answer */
} core_item_t;

struct core_request {
    core_answer_t answer; /* first: freed as such; unused by the members of a group */
    core_request_t
        *next; /* in its queue, in the list of the sent, or among the members of a group */
    core_request_t *previous;
    core_queue_t *queue;
    core_timer_t timer;
    core_group_t *group;
    uint64_t number; /* its id on the wire */
    unsigned op;     /* tmq_op_t or core_op_t */
    core_request_state_t state;
    int64_t deadline_ms;
    int64_t retry_ms;  /* when DELAYED: when to send again */
    bool large;        /* its reply may exceed 4 KiB */
    bool changes;      /* it changes something: it has a request id, and may end as unknown */
    bool internal;     /* of the core: forgotten with the link */
    bool maybe_done;   /* handed to the broker, and no answer says that nothing was done */
    bool maybe_before; /* the same, of an earlier link */
    int refused;       /* code of the refusal that it waits for */
    uint32_t refused_ms;
    char *refused_text; /* NULL: none */
    uint8_t request_id[16];
    bytes_t fields;     /* its operation as protobuf, with tag */
    bytes_t body;       /* its part of the second frame */
    core_item_t *items; /* SUBMIT_BATCH */
    size_t items_count; /* of a wait: ids without an answer */
    tmq_id_t task_id;
    uint32_t attempt;
    struct core_worker *worker; /* of an internal request of a worker */
    uint64_t subscription;      /* of an internal request of a subscription: its number */
    core_request_t *followers;  /* PUSH: older messages that this one replaced, by `next` */
    core_request_t *leader;     /* PUSH: the one that replaced this one */
};

typedef enum core_link_stage {
    CORE_LINK_PAUSE = 0, /* until link_at_ms, then the next endpoint is tried */
    CORE_LINK_OPENING,   /* a connection is wanted; until it takes the hello */
    CORE_LINK_HELLO,     /* the hello is on its way */
    CORE_LINK_UP,
    CORE_LINK_LEAVING, /* the goodbye is to be sent */
    CORE_LINK_FINAL    /* there will be none: refused, closed or gone */
} core_link_stage_t;

struct core {
    core_config_t config; /* its strings and endpoints are copies */
    char ns[TMQ_NAME_LENGTH_MAX + 1];
    char name[65];
    uint64_t jitter;      /* state of a small generator */
    uint64_t request_ids; /* counter behind the random half of a request id */

    core_link_stage_t stage;
    uint64_t connection; /* number of the newest */
    int64_t up_since_ms;
    size_t endpoint;
    int64_t link_at_ms; /* when the stage's patience, or the heartbeat's interval, ends */
    int64_t now_ms;     /* newest time that was heard of */
    unsigned failures;  /* in a row */
    unsigned missed;    /* heartbeats without any message since */
    bool hello_due;
    uint64_t goodbye; /* number of the goodbye that was sent */
    bool heard;       /* something was received since the last heartbeat */
    int64_t heard_ms; /* when the newest message came */
    uint8_t token[16];
    tmq_broker_info_t info;
    size_t info_endpoint;
    uint32_t heartbeat_ms;
    int code; /* why there is no link, TMQ_OK when there is one */
    char text[256];
    uint64_t changes;
    bool closed;

    core_slots_t requests;
    core_heap_t timers;
    size_t timers_alive;
    core_queue_t control; /* internal requests, sent first */
    core_queue_t small;
    core_queue_t large;
    core_queue_t sent;
    core_queue_t delayed; /* internal requests only */
    size_t large_open;
    size_t submits_delayed; /* refused for now, to be sent again */
    size_t open;            /* operations without an answer, each wait counted */
    size_t open_bytes;
    size_t untaken; /* completions that the application has not taken */
    core_answer_t *answers_first;
    core_answer_t *answers_last;
    tmq_client_counters_t counters;

    core_idmap_t waits;
    struct core_wait *waits_pending_first; /* to be asked for */
    struct core_wait *waits_pending_last;
    size_t waits_blocked; /* their submit is delayed */
    size_t waits_open;    /* ids that the broker has been asked for */

    core_slots_t subscription_numbers;
    core_subscription_t *subscriptions;
    core_subscription_t *credit_first; /* those that owe the broker credit */
    core_worker_t *workers;
    core_idmap_t attempts;
    core_worker_t *workers_due;        /* those with leases to renew */
    struct core_attempt *pushes_first; /* attempts with something to say now */
    core_subscription_t *woken_subscriptions;
    core_worker_t *woken_workers;

    arena_t *arena;
    arena_t *events_arena;
    bytes_t envelope;
    bytes_t body;
};

/* requests.c. */

/* Fills error, which may be NULL, and returns code. format NULL: the code's own text. */
int core_error (tmq_error_t *error, int code, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

core_request_t *core_request_new (unsigned op, bool large, bool changes);
/* A request of the core's own; NULL when memory is exhausted. Fields are the caller's to append. */
core_request_t *core_internal_new (core_t *self, unsigned op, bool changes);
/* Takes it and queues it before all operations. A request whose fields failed (or NULL) is dropped
 * and the link is ended, so that the next one begins with a complete picture. Returns its number; 0
 * when it will not be sent. */
uint64_t core_internal_send (core_t *self, core_request_t *request);
/* Puts a request into the table, with its deadline, and into its queue. */
int core_request_open (core_t *self, core_request_t *request);
void core_request_queue (core_t *self, core_request_t *request);
void core_request_sent (core_t *self, core_request_t *request);
/* Takes it out of table, queue and timers. */
void core_request_close (core_t *self, core_request_t *request);
/* Ends it with this code: closes it and gives the answer. text NULL: the code's own. */
void core_request_end (core_t *self, core_request_t *request, int code, const char *text,
                       uint32_t retry_after_ms);
/* The broker refused it for now: it is sent again later, unless its deadline comes first. */
void core_request_delay (core_t *self, core_request_t *request, int code, const char *text,
                         uint32_t retry_after_ms);
/* The link ended: what was sent is to be sent again, what is internal is forgotten. */
void core_requests_unsend (core_t *self);
void core_request_timer (core_t *self, core_request_t *request);
/* True if this client is still submitting the task, some submit being delayed. */
bool core_submit_is_delayed (const core_t *self, const tmq_id_t *id);
/* Ends every request, wait included. */
void core_requests_end (core_t *self, int code, const char *text);
void core_queue_push (core_queue_t *queue, core_request_t *request);
void core_queue_remove (core_request_t *request);

void core_answer_push (core_t *self, core_answer_t *answer);
/* Takes an answer that is part of something else back, if it has not been given away. */
void core_answer_withdraw (core_t *self, const core_answer_t *answer);
/* Fills the answer's code and error. */
void core_answer_set (core_answer_t *answer, int code, const char *text, uint32_t retry_after_ms);
/* Room for that many more operations whose requests take that many bytes. */
int core_admit (core_t *self, size_t operations, size_t bytes, core_target_t target,
                tmq_error_t *error);
void core_request_id_make (core_t *self, uint8_t out[16]);
bool core_timer_reserve (core_t *self, size_t count);

/* core.c. */

/* Ends the link because of something the broker or our memory did; another one is tried. */
void core_link_drop (core_t *self, int code, const char *text);
uint64_t core_random (core_t *self);
uint64_t core_number_make (core_t *self);

/* replies.c. */

/* The bodies of a message's second frame, taken one after the other. */
typedef struct core_bodies {
    const uint8_t *data;
    size_t bytes;
    size_t used;
} core_bodies_t;
/* NULL (and false in *good) when fewer bytes are left. */
const uint8_t *core_bodies_take (core_bodies_t *self, size_t bytes, bool *good);

/* False if the message cannot be what it should be. */
bool core_reply (core_t *self, const Taskmq__Reply *reply, core_bodies_t *bodies);

/* waits.c. */

void core_waits_output (core_t *self); /* turns what is pending into requests */
bool core_waits_pending (const core_t *self);
void core_waits_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply);
void core_waits_unsend (core_t *self); /* everything is pending again */
/* A delayed submit is on its way again, or ended: who waits for its task may ask (again). */
void core_waits_unblock (core_t *self);
void core_waits_forget (core_t *self, uint64_t request); /* the request ended without them */
void core_waiter_due (core_t *self, void *waiter);
void core_waits_end (core_t *self, int code, const char *text);
void core_waits_free (core_t *self);

/* subscriptions.c. */

void core_subscriptions_link (core_t *self);   /* the link is up: subscribe */
void core_subscriptions_unlink (core_t *self); /* … has ended */
void core_subscriptions_output (core_t *self); /* credit */
void core_subscriptions_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply);
/* The broker does not know the subscription to which this credit belonged. */
void core_subscriptions_refused (core_t *self, uint64_t number);
bool core_subscriptions_events (core_t *self, const Taskmq__EventBatch *batch, const void *list);
bool core_subscriptions_snapshot (core_t *self, const Taskmq__Snapshot *snapshot);
bool core_subscriptions_gap (core_t *self, const Taskmq__Gap *gap);
bool core_subscriptions_notice (core_t *self, const Taskmq__Notice *notice);
void core_subscriptions_end (core_t *self, int code, const char *text);
void core_subscriptions_free (core_t *self);
bool core_subscription_woken (core_t *self, void **owner);

/* workers.c, attempts.c. */

void core_workers_link (core_t *self);
void core_workers_unlink (core_t *self);
/* A heartbeat is sent: credit goes with it. */
void core_workers_beat (core_t *self);
/* The broker does not know the worker to which this credit belonged. */
void core_workers_refused (core_t *self, uint64_t number);
void core_workers_output (core_t *self); /* progress and status messages that are due */
void core_workers_reply (core_t *self, core_request_t *request, const Taskmq__Reply *reply);
bool core_workers_assign (core_t *self, const Taskmq__Assignment *assignment,
                          core_bodies_t *bodies);
void core_workers_cancel (core_t *self, const Taskmq__CancelNotice *notice);
void core_attempt_due (core_t *self, void *attempt); /* its lease */
void core_push_due (core_t *self, void *attempt);
void core_attempts_output (core_t *self);
/* A message that was replaced by a newer one leaves its list, to end on its own. */
void core_followers_leave (core_request_t *follower);
/* The newest one ends; an older one goes on in its place. */
void core_followers_inherit (core_t *self, core_request_t *leader);
/* The attempt's last word was answered, or will not be. */
void core_attempt_answered (core_t *self, core_request_t *request, int code);
void core_workers_end (core_t *self, int code, const char *text);
void core_workers_free (core_t *self);
bool core_worker_woken (core_t *self, void **owner);

/* encode.c. */

void core_encode_filter (bytes_t *out, uint32_t field, const tmq_filter_t *filter);
int core_check_filter (const tmq_filter_t *filter, bool subscription, tmq_error_t *error);
int core_check_text (const char *text, const char *field, size_t bytes_max, tmq_error_t *error);
int core_check_name (const char *name, const char *field, bool required, tmq_error_t *error);

/* records.c. */

/* Frees what a completion holds and zeroes it. */
void completion_clear (tmq_completion_t *completion);

/* Each is one piece of memory; NULL when it is exhausted. */
tmq_task_t *core_task_record (const Taskmq__Task *task, const void *body, size_t body_bytes);
tmq_event_t *core_event_record (const Taskmq__Event *event, const char *ns, uint64_t generation);
tmq_event_t *core_notice_record (const Taskmq__Notice *notice, const char *ns);
/* An item that is neither an event nor a notice. */
tmq_event_t *core_item_record (tmq_item_kind_t kind, const char *ns);
tmq_assignment_t *core_assignment_record (const Taskmq__Assignment *in, const void *payload);
tmq_task_list_t *core_task_list_record (const Taskmq__TaskPage *page);
tmq_event_list_t *core_event_list_record (const Taskmq__EventPage *page, const char *ns,
                                          uint64_t generation);
tmq_stats_t *core_stats_record (const Taskmq__StatsReport *report);
/* Bytes that the record takes in memory. */
size_t core_event_bytes (const tmq_event_t *event);
void core_cursor_format (char out[48], uint64_t generation, uint64_t seq);

#endif
