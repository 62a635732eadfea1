/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A request on its way to the broker: its fields, its state, and the answer that it will become.
 *
 * It is made from its input without a core or a lock; link/requests.h opens, sends and ends it. */
#ifndef TASKMQ_CLIENT_REQUEST_H
#define TASKMQ_CLIENT_REQUEST_H

#include "base/answers.h"
#include "base/tables.h"
#include "bytes.h"
#include "taskmq.pb-c.h"

enum {
    CORE_RESERVE_BYTES = 64, /* of an envelope: the head of a request; the token is shorter */
    CORE_OWNER_BYTES = 2 + TMQ_BEHALF_BYTES_MAX, /* … and more of one that names an owner */
    /* Of one request, so that it fits an envelope that holds nothing else. */
    CORE_FIELDS_BYTES_MAX = TMQ_ENVELOPE_BYTES_MAX - 2 * CORE_RESERVE_BYTES
};

/* Requests of the core itself, beside those of tmq_op_t. */
typedef enum core_op {
    CORE_OP_HELLO = 128,
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
    CORE_OP_LOG,
    CORE_OP_TAKE_ANSWERS,
    CORE_OP_GIVE_BACK,
    CORE_OP_CANCEL_ACK,
    CORE_OP_LEAVE,
    CORE_OP_BLOB_DROP,
    CORE_OP_END
} core_op_t;

/* X (op, kind): the kind of request on the wire; proto/request_kinds.h says what is true of it. */
#define CORE_OP_MAP(X)                                                                             \
    X (TMQ_OP_SUBMIT, SUBMIT)                                                                      \
    X (TMQ_OP_SUBMIT_BATCH, SUBMIT)                                                                \
    X (TMQ_OP_GET, GET)                                                                            \
    X (TMQ_OP_RESULT, RESULT)                                                                      \
    X (TMQ_OP_PAYLOAD, PAYLOAD)                                                                    \
    X (TMQ_OP_LIST, LIST)                                                                          \
    X (TMQ_OP_COUNT, COUNT)                                                                        \
    X (TMQ_OP_RESOLVE, RESOLVE)                                                                    \
    X (TMQ_OP_EVENTS, TASK_EVENTS)                                                                 \
    X (TMQ_OP_CANCEL, CANCEL)                                                                      \
    X (TMQ_OP_CHECKPOINT, CHECKPOINT)                                                              \
    X (TMQ_OP_CHECKPOINT_READ, CHECKPOINT_READ)                                                    \
    X (TMQ_OP_BLOB_BEGIN, BLOB_BEGIN)                                                              \
    X (TMQ_OP_BLOB_CHUNK, BLOB_CHUNK)                                                              \
    X (TMQ_OP_BLOB_READ, BLOB_READ)                                                                \
    X (TMQ_OP_RETRY, RETRY)                                                                        \
    X (TMQ_OP_RESUME, RESUME)                                                                      \
    X (TMQ_OP_SET, SET)                                                                            \
    X (TMQ_OP_PURGE, PURGE)                                                                        \
    X (TMQ_OP_ADOPT, ADOPT)                                                                        \
    X (TMQ_OP_ATTEMPTS, ATTEMPTS)                                                                  \
    X (TMQ_OP_ARTIFACT, ARTIFACT)                                                                  \
    X (TMQ_OP_ARTIFACTS, ARTIFACTS)                                                                \
    X (TMQ_OP_TURN, TURN)                                                                          \
    X (TMQ_OP_SEARCH, SEARCH)                                                                      \
    X (TMQ_OP_REINDEX, REINDEX)                                                                    \
    X (TMQ_OP_TURNS, TURNS)                                                                        \
    X (TMQ_OP_IMPORT, IMPORT)                                                                      \
    X (TMQ_OP_STATS, STATS)                                                                        \
    X (TMQ_OP_AUDIT, AUDIT)                                                                        \
    X (TMQ_OP_AUDIT_HEAD, AUDIT_HEAD)                                                              \
    X (TMQ_OP_BACKUP, BACKUP)                                                                      \
    X (TMQ_OP_VACUUM, VACUUM)                                                                      \
    X (TMQ_OP_CLEANUP, CLEANUP)                                                                    \
    X (TMQ_OP_ASK, ASK)                                                                            \
    X (TMQ_OP_ANSWER, ANSWER)                                                                      \
    X (TMQ_OP_WHY, WHY)                                                                            \
    X (TMQ_OP_READ_LOG, READ_LOG)                                                                  \
    X (TMQ_OP_INBOX, INBOX)                                                                        \
    X (TMQ_OP_WORKER_LIST, WORKER_LIST)                                                            \
    X (TMQ_OP_WORKER_SHOW, WORKER_SHOW)                                                            \
    X (TMQ_OP_WORKER_DRAIN, WORKER_DRAIN)                                                          \
    X (TMQ_OP_PING, HEARTBEAT)                                                                     \
    X (TMQ_OP_PUSH, PUSH)                                                                          \
    X (TMQ_OP_COMPLETE, COMPLETE)                                                                  \
    X (TMQ_OP_FAIL, FAIL)                                                                          \
    X (TMQ_OP_RELEASE, RELEASE)                                                                    \
    X (TMQ_OP_CANCELLED, CANCEL_ACK)                                                               \
    X (TMQ_OP_ENROLL, ENROLL)                                                                      \
    X (TMQ_OP_KEY_LIST, KEY_LIST)                                                                  \
    X (TMQ_OP_KEY_TRUST, KEY_TRUST)                                                                \
    X (TMQ_OP_KEY_REVOKE, KEY_REVOKE)                                                              \
    X (TMQ_OP_INVITE, INVITE)                                                                      \
    X (TMQ_OP_INVITE_LIST, INVITE_LIST)                                                            \
    X (TMQ_OP_INVITE_REVOKE, INVITE_REVOKE)                                                        \
    X (TMQ_OP_SERVER_KEY_ROTATE, SERVER_KEY_ROTATE)                                                \
    X (TMQ_OP_RELOAD, RELOAD)                                                                      \
    X (TMQ_OP_ACCESS_READ, ACCESS_READ)                                                            \
    X (TMQ_OP_QUEUE_LIST, QUEUE_LIST)                                                              \
    X (TMQ_OP_QUEUE_SHOW, QUEUE_SHOW)                                                              \
    X (TMQ_OP_QUEUE_SET, QUEUE_SET)                                                                \
    X (TMQ_OP_QUEUE_PAUSE, QUEUE_PAUSE)                                                            \
    X (TMQ_OP_QUEUE_RESUME, QUEUE_RESUME)                                                          \
    X (TMQ_OP_VALUE_PUT, VALUE_PUT)                                                                \
    X (TMQ_OP_VALUE_GET, VALUE_GET)                                                                \
    X (TMQ_OP_VALUE_LIST, VALUE_LIST)                                                              \
    X (TMQ_OP_ITEM_PUT, ITEM_PUT)                                                                  \
    X (TMQ_OP_ITEM_READ, ITEM_READ)                                                                \
    X (TMQ_OP_ITEM_ACK, ITEM_ACK)                                                                  \
    X (TMQ_OP_VALUE_REMOVE, VALUE_REMOVE)                                                          \
    X (TMQ_OP_SCHEDULE_PUT, SCHEDULE_PUT)                                                          \
    X (TMQ_OP_SCHEDULE_SHOW, SCHEDULE_SHOW)                                                        \
    X (TMQ_OP_SCHEDULE_LIST, SCHEDULE_LIST)                                                        \
    X (TMQ_OP_SCHEDULE_PAUSE, SCHEDULE_PAUSE)                                                      \
    X (TMQ_OP_SCHEDULE_RESUME, SCHEDULE_RESUME)                                                    \
    X (TMQ_OP_SCHEDULE_REMOVE, SCHEDULE_REMOVE)                                                    \
    X (TMQ_OP_SESSION_SET, SESSION_SET)                                                            \
    X (TMQ_OP_SESSION_SHOW, SESSION_SHOW)                                                          \
    X (TMQ_OP_SESSION_LIST, SESSION_LIST)                                                          \
    X (TMQ_OP_SESSION_STATUS, SESSION_STATUS)                                                      \
    X (TMQ_OP_SESSION_REMOVE, SESSION_REMOVE)                                                      \
    X (CORE_OP_HELLO, HELLO)                                                                       \
    X (CORE_OP_HEARTBEAT, HEARTBEAT)                                                               \
    X (CORE_OP_GOODBYE, GOODBYE)                                                                   \
    X (CORE_OP_WAIT, WAIT)                                                                         \
    X (CORE_OP_SUBSCRIBE, SUBSCRIBE)                                                               \
    X (CORE_OP_CREDIT, CREDIT)                                                                     \
    X (CORE_OP_UNSUBSCRIBE, UNSUBSCRIBE)                                                           \
    X (CORE_OP_REGISTER, REGISTER)                                                                 \
    X (CORE_OP_WORKER_CREDIT, WORKER_CREDIT)                                                       \
    X (CORE_OP_STARTED, STARTED)                                                                   \
    X (CORE_OP_RENEW, RENEW)                                                                       \
    X (CORE_OP_TAKE_ANSWERS, TAKE_ANSWERS)                                                         \
    X (CORE_OP_BLOB_DROP, BLOB_DROP)                                                               \
    X (CORE_OP_LOG, LOG)                                                                           \
    X (CORE_OP_PROGRESS, PUSH)                                                                     \
    X (CORE_OP_GIVE_BACK, RELEASE)                                                                 \
    X (CORE_OP_CANCEL_ACK, CANCEL_ACK)                                                             \
    X (CORE_OP_LEAVE, LEAVE)

typedef struct core_request core_request_t;

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
    bool quiet;        /* it is answered only when it is refused */
    bool owned;        /* it may be for an owner whom we act for */
    bool internal;     /* of the core: forgotten with the link */
    bool maybe_done;   /* handed to the broker, and no answer says that nothing was done */
    bool maybe_before; /* the same, of an earlier link */
    bool forgotten;    /* nobody wants its answer */
    bool once;         /* a refusal for now is its answer: who asks repeats it himself */
    int refused;       /* code of the refusal that it waits for */
    uint32_t refused_ms;
    char *refused_text; /* NULL: none */
    char *owner;        /* that it is for; NULL: ourselves */
    uint8_t request_id[16];
    bytes_t fields;     /* its operation as protobuf, with tag */
    bytes_t body;       /* its part of the second frame */
    bytes_t parts;      /* STATS: what has come of its answer, packed */
    core_item_t *items; /* SUBMIT_BATCH */
    size_t items_count;
    tmq_id_t task_id;
    uint32_t attempt;
    struct core_worker *worker;         /* of an internal request of a worker */
    struct core_wait *waits;            /* of an internal WAIT: the tasks that it asked for */
    struct core_refused *refused_tasks; /* of a submit that was refused for now */
    tmq_log_stream_t log_stream;        /* of an internal LOG, … */
    uint64_t log_end;                   /* … and where its piece ends */
    uint64_t subscription;              /* of an internal request of a subscription: its number */
    core_request_t *followers;          /* PUSH: older messages that this one replaced, by `next` */
    core_request_t *leader;             /* PUSH: the one that replaced this one */
    core_request_t *heir;               /* PUSH: the one that goes on in place of this one */
};

/* Of an operation, or of the core's own. NULL when memory is exhausted. */
core_request_t *core_request_new (unsigned op);
/* Frees what was never started, with the other members of its group. Accepts NULL. */
void core_request_free (core_request_t *request);
/* Frees one request, or member of a group, with its answer. */
void core_request_free_one (core_request_t *request);
/* Frees what is needed only until the answer. */
void core_request_shed (core_request_t *request);
/* Bytes that it holds. */
size_t core_request_bytes (const core_request_t *request);
/* It is for this owner; with all members of its group. A code: nobody does this for others, or its
 * fields leave no room for him. */
int core_request_for (core_request_t *request, const char *owner, tmq_error_t *error);
/* Its operation; the caller appends the members and closes it by bytes_close. */
bytes_mark_t core_request_begin (core_request_t *request);
/* True for what ends an attempt. */
bool core_op_ends_attempt (unsigned op);

#endif
