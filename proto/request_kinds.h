/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The kinds of requests: one row for each, from which every table about requests is made or
 * checked. A new request is a member of Request.op in taskmq.proto and a row here. */
#ifndef TASKMQ_REQUEST_KINDS_H
#define TASKMQ_REQUEST_KINDS_H

#include <stdint.h>

#include "taskmq.pb-c.h"

/* What is true of every request of a kind. */
typedef enum request_flag {
    REQUEST_CHANGES = 1,  /* changes tasks or who works on them: refused by a broker that stops */
    REQUEST_NEEDS_ID = 2, /* what it stores must be done once: it carries a request id (A45) */
    REQUEST_LARGE = 4,    /* its reply may exceed 4 KiB */
    REQUEST_QUIET = 8,    /* answered only when it is refused */
    REQUEST_READS = 16,   /* only its answer counts: nothing for a peer that is gone */
    REQUEST_OWNED = 32    /* it may be made for an owner that it names */
} request_flag_t;

/* X (OP, name, flags): TASKMQ__REQUEST__OP_<OP> is its number, name its member in Request.op. */
#define REQUEST_KIND_MAP(X)                                                                        \
    X (HELLO, hello, 0)                                                                            \
    X (GOODBYE, goodbye, 0)                                                                        \
    X (HEARTBEAT, heartbeat, 0)                                                                    \
    X (SUBMIT, submit, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_OWNED)                         \
    X (IMPORT, import, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                         \
    X (GET, get, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                                    \
    X (RESOLVE, resolve, REQUEST_READS | REQUEST_OWNED)                                            \
    X (LIST, list, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                                  \
    X (SEARCH, search, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                              \
    X (REINDEX, reindex, 0)                                                                        \
    X (COUNT, count, REQUEST_READS | REQUEST_OWNED)                                                \
    X (TASK_EVENTS, task_events, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                    \
    X (RESULT, result, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                              \
    X (PAYLOAD, payload, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                            \
    X (CANCEL, cancel, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_OWNED)                         \
    X (RETRY, retry, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE | REQUEST_OWNED)           \
    X (RESUME, resume, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE | REQUEST_OWNED)         \
    X (SET, set, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE | REQUEST_OWNED)               \
    X (PURGE, purge, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE)                           \
    X (CLEANUP, cleanup, REQUEST_LARGE)                                                            \
    X (ADOPT, adopt, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE)                           \
    X (ATTEMPTS, attempts, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                          \
    X (ARTIFACTS, artifacts, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                        \
    X (TURNS, turns, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                                \
    X (WAIT, wait, REQUEST_READS | REQUEST_OWNED)                                                  \
    X (STATS, stats, REQUEST_LARGE | REQUEST_READS)                                                \
    X (WHY, why, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                                    \
    X (ANSWER, answer, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE | REQUEST_OWNED)         \
    X (INBOX, inbox, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                                \
    X (READ_LOG, read_log, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                          \
    X (SUBSCRIBE, subscribe, REQUEST_READS | REQUEST_OWNED)                                        \
    X (CREDIT, credit, REQUEST_QUIET)                                                              \
    X (UNSUBSCRIBE, unsubscribe, 0)                                                                \
    X (REGISTER, register, REQUEST_CHANGES)                                                        \
    X (WORKER_CREDIT, worker_credit, REQUEST_QUIET)                                                \
    X (STARTED, started, REQUEST_CHANGES)                                                          \
    X (RENEW, renew, 0)                                                                            \
    X (PUSH, push, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                             \
    X (CANCEL_ACK, cancel_ack, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                 \
    X (COMPLETE, complete, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                     \
    X (FAIL, fail, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                             \
    X (RELEASE, release, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                       \
    X (LEAVE, leave, REQUEST_CHANGES)                                                              \
    X (ASK, ask, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                               \
    X (LOG, log, 0)                                                                                \
    X (CHECKPOINT, checkpoint, REQUEST_CHANGES)                                                    \
    X (ARTIFACT, artifact, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                     \
    X (TURN, turn, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                             \
    X (CHECKPOINT_READ, checkpoint_read, REQUEST_LARGE | REQUEST_READS)                            \
    X (TAKE_ANSWERS, take_answers, REQUEST_LARGE | REQUEST_READS)                                  \
    X (ENROLL, enroll, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                         \
    X (KEY_LIST, key_list, REQUEST_LARGE | REQUEST_READS)                                          \
    X (KEY_TRUST, key_trust, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                   \
    X (KEY_REVOKE, key_revoke, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                 \
    X (INVITE, invite, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                         \
    X (INVITE_LIST, invite_list, REQUEST_LARGE | REQUEST_READS)                                    \
    X (INVITE_REVOKE, invite_revoke, REQUEST_CHANGES | REQUEST_NEEDS_ID)                           \
    X (SERVER_KEY_ROTATE, server_key_rotate, REQUEST_CHANGES | REQUEST_NEEDS_ID)                   \
    X (RELOAD, reload, 0)                                                                          \
    X (ACCESS_READ, access_read, REQUEST_LARGE | REQUEST_READS)                                    \
    X (AUDIT, audit, REQUEST_LARGE | REQUEST_READS)                                                \
    X (AUDIT_HEAD, audit_head, REQUEST_READS)                                                      \
    X (BACKUP, backup, REQUEST_LARGE | REQUEST_READS)                                              \
    X (VACUUM, vacuum, 0)                                                                          \
    X (QUEUE_LIST, queue_list, REQUEST_LARGE | REQUEST_READS)                                      \
    X (QUEUE_SET, queue_set, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                   \
    X (QUEUE_SHOW, queue_show, REQUEST_READS)                                                      \
    X (QUEUE_PAUSE, queue_pause, REQUEST_CHANGES | REQUEST_NEEDS_ID)                               \
    X (QUEUE_RESUME, queue_resume, REQUEST_CHANGES | REQUEST_NEEDS_ID)                             \
    X (SESSION_SET, session_set, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE)               \
    X (SESSION_SHOW, session_show, REQUEST_LARGE | REQUEST_READS)                                  \
    X (SESSION_LIST, session_list, REQUEST_LARGE | REQUEST_READS)                                  \
    X (SESSION_STATUS, session_status, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE)         \
    X (SESSION_REMOVE, session_remove, REQUEST_CHANGES | REQUEST_NEEDS_ID | REQUEST_LARGE)         \
    X (SCHEDULE_PUT, schedule_put, REQUEST_CHANGES | REQUEST_NEEDS_ID)                             \
    X (SCHEDULE_SHOW, schedule_show, REQUEST_LARGE | REQUEST_READS)                                \
    X (SCHEDULE_LIST, schedule_list, REQUEST_LARGE | REQUEST_READS)                                \
    X (SCHEDULE_PAUSE, schedule_pause, REQUEST_CHANGES | REQUEST_NEEDS_ID)                         \
    X (SCHEDULE_RESUME, schedule_resume, REQUEST_CHANGES | REQUEST_NEEDS_ID)                       \
    X (SCHEDULE_REMOVE, schedule_remove, REQUEST_CHANGES | REQUEST_NEEDS_ID)                       \
    X (VALUE_PUT, value_put, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                   \
    X (VALUE_GET, value_get, REQUEST_LARGE | REQUEST_READS)                                        \
    X (VALUE_LIST, value_list, REQUEST_LARGE | REQUEST_READS)                                      \
    X (VALUE_REMOVE, value_remove, REQUEST_CHANGES | REQUEST_NEEDS_ID)                             \
    X (WORKER_LIST, worker_list, REQUEST_LARGE | REQUEST_READS)                                    \
    X (WORKER_SHOW, worker_show, REQUEST_LARGE | REQUEST_READS)                                    \
    X (WORKER_DRAIN, worker_drain, REQUEST_CHANGES)                                                \
    X (ITEM_PUT, item_put, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                     \
    X (ITEM_READ, item_read, REQUEST_LARGE | REQUEST_READS)                                        \
    X (ITEM_ACK, item_ack, REQUEST_CHANGES | REQUEST_NEEDS_ID)                                     \
    X (BLOB_BEGIN, blob_begin, REQUEST_OWNED)                                                      \
    X (BLOB_CHUNK, blob_chunk, REQUEST_OWNED)                                                      \
    X (BLOB_READ, blob_read, REQUEST_LARGE | REQUEST_READS | REQUEST_OWNED)                        \
    X (BLOB_DROP, blob_drop, REQUEST_OWNED)

typedef struct request_kind {
    const char *name; /* for logs, counters and texts; of static storage */
    unsigned flags;   /* of request_flag_t */
} request_kind_t;

/* The row of a request, or NULL for a kind that this version does not know. Pure. */
const request_kind_t *request_kind (const Taskmq__Request *request);

/* Its name ("submit"); "unknown" for a kind that is not known. Pure. */
const char *request_name (const Taskmq__Request *request);

#endif
