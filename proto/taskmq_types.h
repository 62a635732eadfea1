/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The numbers that taskmq speaks everywhere: in memory, on the wire, in SQLite and in C.
 * Each table is an X-macro, so that a name, its number and its text stand in one place.
 * Numbers are never reused and never change; add rows, do not renumber. */
#ifndef TASKMQ_TYPES_H
#define TASKMQ_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task's id: a UUIDv7 (RFC 9562), 16 bytes in network order. */
typedef struct tmq_id {
    uint8_t bytes[16];
} tmq_id_t;

/* Statuses (S1): number, NAME, text, terminal. */
#define TMQ_STATUS_MAP(X)                                                                          \
    X (1, QUEUED, "queued", 0)                                                                     \
    X (2, WORKING, "working", 0)                                                                   \
    X (3, INPUT_REQUIRED, "input_required", 0)                                                     \
    X (4, COMPLETED, "completed", 1)                                                               \
    X (5, FAILED, "failed", 1)                                                                     \
    X (6, CANCELLED, "cancelled", 1)

typedef enum tmq_status {
    TMQ_STATUS_NONE = 0,
#define X(number, NAME, text, terminal) TMQ_STATUS_##NAME = number,
    TMQ_STATUS_MAP (X)
#undef X
} tmq_status_t;

/* Phases: queued is ready, scheduled, blocked or paused; working is leased or late. */
#define TMQ_PHASE_MAP(X)                                                                           \
    X (1, READY, "ready")                                                                          \
    X (2, SCHEDULED, "scheduled")                                                                  \
    X (3, BLOCKED, "blocked")                                                                      \
    X (4, PAUSED, "paused")                                                                        \
    X (5, LEASED, "leased")                                                                        \
    X (6, LATE, "late")

typedef enum tmq_phase {
    TMQ_PHASE_NONE = 0,
#define X(number, NAME, text) TMQ_PHASE_##NAME = number,
    TMQ_PHASE_MAP (X)
#undef X
} tmq_phase_t;

/* What becomes of a task when one that it depends on ended without completing (S21). */
#define TMQ_AFTER_MAP(X)                                                                           \
    X (0, FAIL, "fail")         /* it fails, too */                                                \
    X (1, IGNORE, "ignore")     /* it runs, and is told nothing of the other one */                \
    X (2, CONTINUE, "continue") /* it runs, and is told how the other one ended */

typedef enum tmq_after {
#define X(number, NAME, text) TMQ_AFTER_##NAME = number,
    TMQ_AFTER_MAP (X)
#undef X
} tmq_after_t;

/* What a fact of an explanation is. */
typedef enum tmq_fact_kind {
    TMQ_FACT_TEXT = 0,
    TMQ_FACT_NUMBER = 1,
    TMQ_FACT_TIME = 2,    /* ms since the epoch */
    TMQ_FACT_DURATION = 3 /* ms */
} tmq_fact_kind_t;

/* Kinds of event (S18). The numbers of kinds that later work brings are reserved. */
#define TMQ_EVENT_MAP(X)                                                                           \
    X (1, SUBMITTED, "submitted")                                                                  \
    X (2, CLAIMED, "claimed")                                                                      \
    X (3, RELEASED, "released")                                                                    \
    X (4, ATTEMPT_FAILED, "attempt_failed")                                                        \
    X (5, LEASE_LOST, "lease_lost")                                                                \
    X (6, ASKED, "asked")                                                                          \
    X (7, ANSWERED, "answered")                                                                    \
    X (8, COMPLETED, "completed")                                                                  \
    X (9, FAILED, "failed")                                                                        \
    X (10, CANCELLED, "cancelled")                                                                 \
    X (11, CANCEL_ACKNOWLEDGED, "cancel_acknowledged")                                             \
    X (12, RETRIED, "retried")                                                                     \
    X (13, RESUMED, "resumed")                                                                     \
    X (14, ADOPTED, "adopted")                                                                     \
    X (15, CHANGED, "changed")                                                                     \
    X (16, EXPIRED, "expired")                                                                     \
    X (17, PURGED, "purged")                                                                       \
    X (18, LATE, "late")                                                                           \
    X (19, REMOVED, "removed")                                                                     \
    X (20, FIRED, "fired")                                                                         \
    X (21, TURN, "turn")                                                                           \
    X (22, IMPORTED, "imported")                                                                   \
    X (23, ARTIFACT, "artifact")

typedef enum tmq_event_kind {
    TMQ_EVENT_NONE = 0,
#define X(number, NAME, text) TMQ_EVENT_##NAME = number,
    TMQ_EVENT_MAP (X)
#undef X
} tmq_event_kind_t;

/* What an event is about (S18). */
#define TMQ_SUBJECT_MAP(X)                                                                         \
    X (1, TASK, "task")                                                                            \
    X (2, QUEUE, "queue")                                                                          \
    X (3, SESSION, "session")                                                                      \
    X (4, SCHEDULE, "schedule")                                                                    \
    X (5, WORKER, "worker")                                                                        \
    X (6, VALUE, "value")                                                                          \
    X (7, ITEM, "item")

typedef enum tmq_subject {
    TMQ_SUBJECT_NONE = 0,
#define X(number, NAME, text) TMQ_SUBJECT_##NAME = number,
    TMQ_SUBJECT_MAP (X)
#undef X
} tmq_subject_t;

/* Kinds of outcome (S16). */
#define TMQ_OUTCOME_MAP(X)                                                                         \
    X (1, RESULT, "result")                                                                        \
    X (2, TOOL_ERROR, "tool_error")                                                                \
    X (3, PROTOCOL_ERROR, "protocol_error")

typedef enum tmq_outcome_kind {
    TMQ_OUTCOME_NONE = 0,
#define X(number, NAME, text) TMQ_OUTCOME_##NAME = number,
    TMQ_OUTCOME_MAP (X)
#undef X
} tmq_outcome_kind_t;

/* What can be set for a queue: number (of the member of QueueSettings), NAME, member. */
#define TMQ_QUEUE_FIELD_MAP(X)                                                                     \
    X (5, MAX_RUNNING, max_running)                                                                \
    X (6, MAX_PER_KEY, max_per_key)                                                                \
    X (7, RATE, rate)                                                                              \
    X (8, RATE_MS, rate_ms)                                                                        \
    X (9, BURST, burst)                                                                            \
    X (10, MAX_TASKS, max_tasks)                                                                   \
    X (11, MAX_BYTES, max_bytes)                                                                   \
    X (12, WEIGHT_OF, weight_of)                                                                   \
    X (13, TTL_MS, ttl_ms)                                                                         \
    X (14, TTL_NEVER, ttl_never)                                                                   \
    X (15, LEASE_MS, lease_ms)                                                                     \
    X (16, BACKOFF_MS, backoff_ms)                                                                 \
    X (17, MAX_ATTEMPTS, max_attempts)                                                             \
    X (18, MAX_RUNTIME_MS, max_runtime_ms)                                                         \
    X (19, SEARCH_OFF, search_off)                                                                 \
    X (21, MAX_AGE_MS, max_age_ms)                                                                 \
    X (22, MAX_COUNT, max_count)                                                                   \
    X (23, MAX_ENDED_BYTES, max_ended_bytes)                                                       \
    X (24, KEEP_FAILED_MS, keep_failed_ms)                                                         \
    X (25, MIN_KEEP, min_keep)

typedef enum tmq_queue_field {
    TMQ_QUEUE_FIELD_NONE = 0,
#define X(number, NAME, member) TMQ_QUEUE_FIELD_##NAME = number,
    TMQ_QUEUE_FIELD_MAP (X)
#undef X
} tmq_queue_field_t;

/* By what a retention lets a task go: number, NAME, text. */
#define TMQ_POLICY_MAP(X)                                                                          \
    X (1, MAX_AGE, "max_age")                                                                      \
    X (2, MAX_COUNT, "max_count")                                                                  \
    X (3, MAX_BYTES, "max_bytes")

typedef enum tmq_policy {
    TMQ_POLICY_NONE = 0,
#define X(number, NAME, text) TMQ_POLICY_##NAME = number,
    TMQ_POLICY_MAP (X)
#undef X
} tmq_policy_t;

/* What is a task's fair key in a queue: number, NAME, text. */
#define TMQ_WEIGHT_OF_MAP(X)                                                                       \
    X (0, KEY, "key")                                                                              \
    X (2, OWNER, "owner")                                                                          \
    X (3, SESSION, "session")

typedef enum tmq_weight_of {
#define X(number, NAME, text) TMQ_WEIGHT_OF_##NAME = number,
    TMQ_WEIGHT_OF_MAP (X)
#undef X
} tmq_weight_of_t;

/* How a session stands: number, NAME, text. */
#define TMQ_SESSION_STATUS_MAP(X)                                                                  \
    X (1, ACTIVE, "active")                                                                        \
    X (2, PAUSED, "paused")     /* its tasks are not given to workers */                           \
    X (3, FROZEN, "frozen")     /* … nor accepted */                                             \
    X (4, COMPLETE, "complete") /* no task is accepted; those that it has go on */

typedef enum tmq_session_status {
    TMQ_SESSION_STATUS_NONE = 0,
#define X(number, NAME, text) TMQ_SESSION_STATUS_##NAME = number,
    TMQ_SESSION_STATUS_MAP (X)
#undef X
} tmq_session_status_t;

/* What can be set for a session: number (of the member of SessionSet), NAME, member. */
#define TMQ_SESSION_FIELD_MAP(X)                                                                   \
    X (2, GOAL, goal)                                                                              \
    X (3, SALIENCE, salience)                                                                      \
    X (4, CONTEXT, context)

typedef enum tmq_session_field {
    TMQ_SESSION_FIELD_NONE = 0,
#define X(number, NAME, member) TMQ_SESSION_FIELD_##NAME = number,
    TMQ_SESSION_FIELD_MAP (X)
#undef X
} tmq_session_field_t;

/* Why a queue gives nothing to workers now; several add up. */
#define TMQ_QUEUE_CLOSED_MAP(X)                                                                    \
    X (1, PAUSED, "paused")                                                                        \
    X (2, CAP, "cap")                                                                              \
    X (4, RATE, "rate")

typedef enum tmq_queue_closed {
    TMQ_QUEUE_CLOSED_NONE = 0,
#define X(number, NAME, text) TMQ_QUEUE_CLOSED_##NAME = number,
    TMQ_QUEUE_CLOSED_MAP (X)
#undef X
} tmq_queue_closed_t;

/* Answers: number, NAME, text, retriable.
 * 1..63 come from the broker, from 64 the library speaks for itself. Retriable says that the same
 * call may succeed later without a change of its arguments. */
#define TMQ_ERROR_MAP(X)                                                                           \
    X (1, INVALID, "the request is malformed or a value is out of range", 0)                       \
    X (2, UNSUPPORTED, "the request or the protocol version is not supported", 0)                  \
    X (3, TOO_LARGE, "larger than the limit", 0)                                                   \
    X (4, NO_LINK, "the connection is not established; nothing was done", 1)                       \
    X (5, NOT_FOUND, "no such task", 0)                                                            \
    X (6, EXPIRED, "the task's time to live is over", 0)                                           \
    X (7, PURGED, "the task was removed", 0)                                                       \
    X (8, CONFLICT, "other content under the same id or key", 0)                                   \
    X (9, WRONG_STATUS, "not possible in the task's present status", 0)                            \
    X (10, STALE_LEASE, "the attempt's lease is over", 0)                                          \
    X (11, AMBIGUOUS, "several tasks end with this short id", 0)                                   \
    X (12, OVERLOADED, "the broker is overloaded", 1)                                              \
    X (13, STORE_FULL, "the broker's store is full", 1)                                            \
    X (14, LIMIT, "a limit is reached", 1)                                                         \
    X (15, DENIED, "not allowed", 0)                                                               \
    X (16, NOT_AUTHENTICATED, "authentication failed", 0)                                          \
    X (17, BAD_CURSOR, "the cursor does not belong here", 0)                                       \
    X (18, STOPPING, "the broker is stopping; nothing was done", 1)                                \
    X (19, INTERNAL, "internal error of the broker", 0)                                            \
    X (20, NO_BLOB, "the blob is not there, or damaged", 0)                                        \
    X (21, UNAVAILABLE, "the broker's store is out of reach; nothing was done", 1)                 \
    X (64, UNREACHABLE, "the broker cannot be reached; nothing was done", 1)                       \
    X (65, UNKNOWN, "the deadline passed; the request may have been done", 1)                      \
    X (66, TIMEOUT, "the deadline passed", 1)                                                      \
    X (67, CLOSED, "the object is closed", 0)                                                      \
    X (68, NO_MEMORY, "out of memory", 1)                                                          \
    X (69, OUTBOX_FULL, "the outbox is full; nothing was sent", 1)                                 \
    X (70, FORKED, "the client was made by another process", 0)                                    \
    X (71, GAP, "events before this point are no longer kept", 0)                                  \
    X (72, PROTOCOL, "the broker's answer was not understood", 0)                                  \
    X (73, CANCELLED, "the task was cancelled", 0)                                                 \
    X (74, SYSTEM, "a system call failed", 0)

typedef enum tmq_code {
    TMQ_OK = 0,
#define X(number, NAME, text, retriable) TMQ_##NAME = number,
    TMQ_ERROR_MAP (X)
#undef X
} tmq_code_t;

/* Codes of our own in a task's error (S17); a worker may not use -33001..-33099. */
#define TMQ_TASK_ERROR_MAP(X)                                                                      \
    X (-33001, EXPIRED, "the task's time to live ended before it was claimed")                     \
    X (-33002, LEASE_LOST, "the worker was lost and no attempts are left")                         \
    X (-33003, MAX_RUNTIME, "the attempt ran longer than allowed")                                 \
    X (-33004, DEPENDENCY, "a task that this one depends on did not complete")                     \
    X (-33005, START_MISSED, "the task was not started in time")                                   \
    X (-33006, ANSWER_DEADLINE, "a question was not answered in time")                             \
    X (-33007, INTERRUPTED, "the broker was away for too long")                                    \
    X (-33008, TOO_LARGE, "the outcome is too large")                                              \
    X (-33009, DAMAGED, "the stored payload is damaged")                                           \
    X (-33010, SUPERSEDED, "the late success of another attempt was adopted")

typedef enum tmq_task_error {
#define X(number, NAME, text) TMQ_TASK_ERROR_##NAME = number,
    TMQ_TASK_ERROR_MAP (X)
#undef X
        TMQ_TASK_ERROR_RESERVED_FIRST = -33099,
    TMQ_TASK_ERROR_RESERVED_LAST = -33001
} tmq_task_error_t;

/* What a worker did with a file in a turn. */
#define TMQ_FILE_OP_MAP(X)                                                                         \
    X (1, READ, "read")                                                                            \
    X (2, WRITE, "write")                                                                          \
    X (3, DELETE, "delete")

typedef enum tmq_file_op {
    TMQ_FILE_OP_NONE = 0,
#define X(number, NAME, text) TMQ_FILE_OP_##NAME = number,
    TMQ_FILE_OP_MAP (X)
#undef X
} tmq_file_op_t;

/* Parts of a turn that are asked for; several add up. */
typedef enum tmq_turn_part {
    TMQ_TURN_CONTENT = 1,
    TMQ_TURN_TOOL_CALLS = 2,
    TMQ_TURN_TOOL_LOG = 4,
    TMQ_TURN_FILES = 8
} tmq_turn_part_t;

/* What a program writes its log to. */
typedef enum tmq_log_stream { TMQ_LOG_OUT = 1, TMQ_LOG_ERR = 2 } tmq_log_stream_t;
#define TMQ_LOG_OFFSET_MAX ((uint64_t) 1 << 62) /* of a byte of a log */

/* Limits and defaults (units last).
 * The ones that both ends must agree on. What an operator may change is in the broker's
 * configuration and reported by the welcome. */
enum {
    TMQ_PROTOCOL_VERSION = 1,
    TMQ_FEATURE_UNAVAILABLE = 1, /* a bit of a hello: the client knows this code */

    TMQ_NAME_LENGTH_MAX = 64, /* queues, namespaces, sessions, workers, label keys (S14) */
    TMQ_ENVELOPE_BYTES_MAX = 64 * 1024, /* first frame: bounds protobuf's 100x allocation (A42) */
    TMQ_FRAME_BYTES_MAX = 256 * 1024,   /* second frame, so also one payload or result */
    TMQ_SUBMIT_ITEMS_MAX = 256,         /* of one submit batch (A46) */
    TMQ_IMPORT_BYTES_MAX = 4 * 1024 * 1024, /* of an imported task with its turns: one commit */
    TMQ_IMPORT_ATTEMPTS_MAX = 1000,         /* that come with it */
    TMQ_BLOB_BYTES_MIN = 16 * 1024,  /* of a blob: an import brings small artifacts as such, too */
    TMQ_REDACT_BYTES_MAX = 8 * 1024, /* of a broker's list of what exports leave out */
    TMQ_REQUESTS_MAX = 1024,         /* of one message */
    TMQ_LABELS_MAX = 16,
    TMQ_AFTER_MAX = 64,        /* tasks that one may depend on */
    TMQ_TREE_DEPTH_MAX = 32,   /* tasks above a part of a part of … */
    TMQ_LABEL_BYTES_MAX = 256, /* of one label's value */
    TMQ_META_BYTES_MAX = 16 * 1024,
    TMQ_MESSAGE_BYTES_MAX = 1024,       /* of status and progress, of a cancel */
    TMQ_ERROR_MESSAGE_BYTES_MAX = 4096, /* of a failure */
    TMQ_ERROR_DATA_BYTES_MAX = 64 * 1024,
    TMQ_ERROR_DATA_INLINE_MAX = 16 * 1024, /* in an envelope; more stands in the second frame */
    TMQ_METHOD_BYTES_MAX = 256,
    TMQ_CONTENT_TYPE_BYTES_MAX = 256,
    TMQ_DEDUP_KEY_BYTES_MAX = 256,
    TMQ_TRACE_BYTES_MAX = 512,
    TMQ_EXTRA_BYTES_MAX = 8 * 1024, /* what few tasks have, packed */
    TMQ_ENTRY_NAME_BYTES_MAX = 256, /* of what an event that is of no task is about: a key, … */
    TMQ_SESSIONS_MAX = 100000,      /* of a namespace */
    TMQ_SESSION_GOAL_BYTES_MAX = 1024,
    TMQ_SESSION_CONTEXT_BYTES_MAX = 16 * 1024,
    TMQ_SESSION_WHY_BYTES_MAX = 256, /* why it has its status */
    TMQ_SALIENCE_DEFAULT = 100,
    TMQ_SALIENCE_MAX = 1000,
    TMQ_VALUE_BYTES_MAX = 64 * 1024,
    TMQ_VALUES_MAX = 1000000, /* of a namespace */
    TMQ_ITEM_BYTES_MAX = 64 * 1024,
    TMQ_INTENSITY_ONE = 1000000,        /* the intensity 1 of an item, on the wire */
    TMQ_ITEMS_MAX = 10000000,           /* of a namespace */
    TMQ_BOX_ITEMS_MAX = 10000,          /* of a box */
    TMQ_ITEM_NUMBERS_MAX = 256,         /* of one item_ack, and of a page of items */
    TMQ_UNIT_BYTES_MAX = 32,            /* of progress */
    TMQ_OWNER_BYTES_MAX = 128,          /* of who a task belongs to: who acts for him, '/', and: */
    TMQ_BEHALF_BYTES_MAX = 63,          /* of an owner that a gateway names */
    TMQ_SUFFIX_LENGTH_MIN = 6,          /* hexadecimal digits of a short id */
    TMQ_SUFFIX_TASKS_MAX = 10000,       /* newest tasks among which a short id is looked up */
    TMQ_SUFFIX_LIVE_TASKS_MAX = 100000, /* … and newest live ones */
    TMQ_LIST_LIMIT_DEFAULT = 50,
    TMQ_LIST_LIMIT_MAX = 1000,
    TMQ_FILTER_VALUES_MAX = 64, /* queues, statuses, tasks, … of one filter */
    TMQ_WAIT_IDS_MAX = 1000,    /* of one wait */
    TMQ_CHANGE_IDS_MAX = 256,   /* of one retry, resume, set or purge */
    TMQ_CHECKPOINT_BYTES_MAX = 64 * 1024,
    TMQ_TURN_BYTES_MAX = 64 * 1024, /* of a turn's content, tool calls, tool log; with its
                                             * files it must fit into a frame */
    TMQ_TURN_FILES_MAX = 256,       /* of a turn */
    TMQ_TURN_PATH_BYTES_MAX = 1024, /* of a file's */
    TMQ_TURN_AGENT_BYTES_MAX = 256,
    TMQ_TURN_STATUS_BYTES_MAX = 64,
    TMQ_ARTIFACTS_MAX = 100,             /* of a task, … */
    TMQ_ARTIFACT_NAME_BYTES_MAX = 128,   /* … of the name of one: it becomes a file's, … */
    TMQ_ARTIFACT_LIST_BYTES_MAX = 24576, /* … of the names and types of all, packed: they must fit
                                          * an envelope */
    TMQ_ARTIFACT_RATE_MAX = 20,          /* … in a second; TMQ_ARTIFACTS_MAX at once */
    TMQ_TURNS_MAX = 1000,                /* of a task, … */
    TMQ_TURNS_BYTES_MAX = 64 * 1024 * 1024, /* … of their bytes, … */
    TMQ_TURN_RATE_MAX = 20,                 /* … and in a second */
    TMQ_TURN_RANGES_MAX = 16,               /* of turns of a task that were superseded */
    TMQ_LOG_BYTES_MAX = 64 * 1024,          /* of one piece of a log, sent or read */
    TMQ_BLOB_HASH_BYTES = 32,               /* BLAKE2b-256 of its bytes */
    TMQ_CREDIT_MAX = 1000,                  /* assignments a worker may hold */
    TMQ_KEPT_TASK_MAX = 3,                  /* successes of a task that came too late, … */
    TMQ_KEPT_MAX = 10000,                   /* … of a namespace, … */
    TMQ_KEPT_BYTES_MAX = 64 * 1024 * 1024,  /* … and of their bytes, … */
    TMQ_KEPT_MS = 7 * 24 * 60 * 60 * 1000,  /* … and for how long they are kept */
    TMQ_WORKER_QUEUES_MAX = 64,
    TMQ_WORKER_TEXT_BYTES_MAX = 256, /* its host, its version */
    TMQ_WORKER_CONFIG_BYTES_MAX = 4 * 1024,
    TMQ_WORKER_DEPENDS_MAX = 16,
    TMQ_WORKER_INFO_BYTES_MAX = 16 * 1024, /* all that is told of one, packed */
    TMQ_WORKER_LIST_MAX = 1000,            /* of a page */
    TMQ_LINK_SUBSCRIPTIONS_MAX = 10000,
    TMQ_LINK_WAITS_MAX = 10000,

    TMQ_QUEUES_SET_MAX = 10000, /* queues with settings, of a namespace */
    TMQ_FAIR_KEY_BYTES_MAX = 64,
    TMQ_NEEDS_MAX = 8,             /* labels that a task requires of its worker */
    TMQ_NEEDS_SETS_MAX = 64,       /* different sets of them that live tasks of a queue have */
    TMQ_QUEUE_WHY_BYTES_MAX = 256, /* why a queue is paused */
    TMQ_QUEUE_LIST_DEFAULT = 100,
    TMQ_QUEUE_LIST_MAX = 1000,
    TMQ_QUEUE_FIELDS_MAX = 32,         /* of one change of settings */
    TMQ_QUEUE_RUNNING_MAX = 1000000,   /* max_running, rate and burst */
    TMQ_QUEUE_TASKS_MAX = 100000000,   /* max_tasks */
    TMQ_RETAIN_COUNT_MAX = 1000000000, /* max_count and min_keep */
    TMQ_QUEUE_RATE_MS_MAX = 24 * 60 * 60 * 1000,

    TMQ_SEARCH_BYTES_MAX = 1024,           /* of a search, … */
    TMQ_SEARCH_TERMS_MAX = 16,             /* … words and phrases in it, … */
    TMQ_SEARCH_PREFIXES_MAX = 4,           /* … of them with a *, … */
    TMQ_SEARCH_PREFIX_MIN = 2,             /* … behind so many letters at least */
    TMQ_SEARCH_TEXT_BYTES_MAX = 64 * 1024, /* of a text that are found */

    TMQ_AUDIT_LINES_DEFAULT = 100, /* of the record of deeds, in one answer */
    TMQ_AUDIT_LINES_MAX = 1000,
    TMQ_PART_BYTES_MAX = 192 * 1024, /* of a file, in one answer */

    TMQ_KEY_BYTES = 32,         /* of a public or a secret key (X25519) */
    TMQ_GRANTS_MAX = 16,        /* of one principal */
    TMQ_GRANT_BYTES_MAX = 160,  /* "observer(NAMESPACE/QUEUE)" */
    TMQ_INVITE_USES_MAX = 1000, /* of one invitation */
    TMQ_INVITE_MS_MIN = 1000,
    TMQ_INVITE_MS_DEFAULT = 60 * 60 * 1000,
    TMQ_SCHEDULE_PAYLOAD_BYTES_MAX = 64 * 1024,
    TMQ_SCHEDULE_COMING_MAX = 100, /* instants that one answer tells */
    TMQ_CALENDAR_BYTES_MAX = 256,
    TMQ_ZONE_BYTES_MAX = 64,
    TMQ_SUBSCRIPTION_WINDOW_BYTES = 32 * 1024, /* unacknowledged, per subscription (A51) */

    TMQ_PRIORITY_DEFAULT = 100, /* 0..255, higher first */
    TMQ_MAX_ATTEMPTS_DEFAULT = 3,
    TMQ_MAX_ATTEMPTS_MAX = 1000000,
    TMQ_LEASE_MS_DEFAULT = 30 * 1000,
    TMQ_LEASE_MS_MIN = 1000,
    TMQ_LEASE_MS_MAX = 24 * 60 * 60 * 1000,
    TMQ_RECOVERY_LEASE_MS_MIN = 30 * 1000, /* fresh term after a restart (S9) */
    TMQ_BACKOFF_MS_DEFAULT = 1000,
    TMQ_BACKOFF_MS_MAX = 5 * 60 * 1000,
    TMQ_BACKOFF_JITTER_PERCENT = 20,
    TMQ_RELEASE_DELAY_MS_DEFAULT = 1000,
    TMQ_RELEASE_DELAY_MS_MAX = 24 * 60 * 60 * 1000,
    TMQ_UNCOUNTED_BACKOFF_FROM = 3, /* uncounted returns in a row that wait the backoff (S4) */
    TMQ_UNCOUNTED_COUNT_FROM = 10,  /* … that count as failures (S4) */
    TMQ_QUESTION_KEY_BYTES_MAX = 256,
    TMQ_QUESTION_BYTES_MAX = 16 * 1024, /* of a request, of a default answer */
    TMQ_ANSWER_BYTES_MAX = 64 * 1024,   /* of one answer */
    TMQ_QUESTIONS_OPEN_MAX = 64,        /* of one task, and answers in one request */
    TMQ_QUESTIONS_MAX = 256,            /* of one task in its life */
    TMQ_TTL_MS_DEFAULT = 24 * 60 * 60 * 1000,
    TMQ_RESULT_TTL_MS_MIN = 24 * 60 * 60 * 1000, /* after the end; less if the ttl is (S10) */
    TMQ_POLL_INTERVAL_MS_DEFAULT = 1000,
    TMQ_REQUEST_DEADLINE_MS_DEFAULT = 5000,
    TMQ_HEARTBEAT_MS = 2000,
    TMQ_HEARTBEATS_MISSED_MAX = 3,
    TMQ_GONE_GRACE_MS = 5000,    /* after the hint that a peer's connection ended (A48) */
    TMQ_MOVE_GRACE_MS = 30000,   /* … that the broker ended itself, to be begun again */
    TMQ_UPTO_INTERVAL_MS = 5000, /* an empty event batch follows at least this often (A51) */
    TMQ_SWEEP_ITEMS_MAX = 500    /* removed in one slice (S12) */
};

/* The longest ttl and delay: ten years, so that sums of times stay far from the end of int64. */
#define TMQ_TTL_MS_MAX INT64_C (315576000000)
/* The latest time that may be named: the year 5138. */
#define TMQ_TIME_MS_MAX INT64_C (99999999999999)
#define TMQ_ANSWER_MS_DEFAULT INT64_C (604800000) /* 7 d */
#define TMQ_INVITE_MS_MAX INT64_C (2592000000)    /* 30 d */
#define TMQ_ROTATE_MS_MAX INT64_C (31536000000)   /* 365 d, until a new key of the broker counts */
#define TMQ_BLOB_BYTES_MAX (UINT64_C (1) << 30)   /* of one, whatever the operator says */
/* Of the attempt and the version of an imported task: who counts on from there does not come to the
 * end of 32 bits. */
#define TMQ_IMPORT_NUMBER_MAX UINT32_C (4000000000)
#define TMQ_QUEUE_BYTES_MAX (INT64_C (1) << 50)      /* max_bytes and max_ended_bytes of a queue */
#define TMQ_SPACE_TURN_BYTES_MAX (INT64_C (4) << 30) /* of the turns of a namespace */
#define TMQ_ARTIFACTS_BYTES_MAX (INT64_C (1) << 30)  /* of the artifacts of a task, … */
#define TMQ_SPACE_ARTIFACT_BYTES_MAX (INT64_C (16) << 30) /* … and of a namespace */

#ifdef __cplusplus
}
#endif
#endif
