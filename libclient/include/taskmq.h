/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* libtaskmq: submit long-running tasks, work on them, watch them, fetch their results.
 *
 * Shape. A client is one connection to a broker, with one I/O thread of its own that owns the
 * socket, reconnects, repeats what is open and renews leases. Every operation exists twice:
 *
 *     int tmq_VERB (out, client, in, timeout_ms, error)            blocks until the answer
 *     int tmq_VERB_start (client, in, timeout_ms, user, error)     returns at once; the answer is a
 *                                                                  completion of tmq_client_poll
 *
 * Results. Functions return 0 or a positive code of taskmq_types.h (tmq_code_t). `error`, which may
 * be NULL, receives the same code with a text for people. Every request ends as done, rejected (not
 * done) or TMQ_UNKNOWN (the deadline passed; it may have been done; repeating it with the same
 * request id is safe).
 *
 * Time. timeout_ms is relative; 0 tries once without waiting; UINT32_MAX waits for ever. Times in
 * records are milliseconds since the epoch, UTC; 0 means absent.
 *
 * Memory. What a call returns through an out-parameter belongs to the caller and is freed by the
 * function that its type names (tmq_task_free, …; they accept NULL). Inputs are borrowed until the
 * call returns. Strings are UTF-8, NUL-terminated, never NULL in what the library returns; in
 * options NULL and "" mean "not given".
 *
 * Threads. A client may be used from any number of threads at once. A subscription or a worker
 * likewise. Freeing an object while another thread uses it is an error of the program. No callback
 * ever runs on a thread of the library (except tmq_worker_run's own pool). After fork the child may
 * only exec; every call in it returns TMQ_FORKED.
 *
 * One ZeroMQ context is made per client. No signals, no output, no global state, no abort. */
#ifndef TASKMQ_H
#define TASKMQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "taskmq_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TMQ_API __attribute__ ((visibility ("default")))
#else
#define TMQ_API
#endif

#define TMQ_VERSION_MAJOR 0
#define TMQ_VERSION_MINOR 1
#define TMQ_VERSION_PATCH 0
#define TMQ_FOREVER UINT32_MAX

/* ---- Version, names -------------------------------------------------------------------------- */

/* Version of the library that runs, as major << 16 | minor << 8 | patch. */
TMQ_API uint32_t tmq_version (void);
/* True if the running library serves a program compiled against this header. */
TMQ_API bool tmq_version_compatible (uint32_t major, uint32_t minor);
#define TMQ_VERSION_CHECK() tmq_version_compatible (TMQ_VERSION_MAJOR, TMQ_VERSION_MINOR)

/* "NOT_FOUND", "no such task", retriable; "completed". Static strings; unknown numbers give "?". */
TMQ_API const char *tmq_code_name (int code);
TMQ_API const char *tmq_code_text (int code);
TMQ_API bool tmq_code_retriable (int code);
TMQ_API const char *tmq_status_text (tmq_status_t status);
TMQ_API bool tmq_status_terminal (tmq_status_t status);
TMQ_API const char *tmq_event_kind_text (tmq_event_kind_t kind);

typedef struct tmq_error {
    int code;
    bool retriable;
    uint32_t retry_after_ms; /* the broker's advice, 0 for none */
    uint8_t request_id[16];  /* of the request, when code is TMQ_UNKNOWN */
    char text[512];
} tmq_error_t;

/* ---- Ids ------------------------------------------------------------------------------------- */

/* A new UUIDv7 by the system's clock and random numbers. Thread-safe. */
TMQ_API void tmq_id_make (tmq_id_t *out);
/* text: 36 characters and a NUL. */
TMQ_API void tmq_id_format (const tmq_id_t *id, char text[37]);
/* TMQ_INVALID unless text is exactly a UUID. */
TMQ_API int tmq_id_parse (tmq_id_t *out, const char *text);

/* ---- Client ---------------------------------------------------------------------------------- */

typedef struct tmq_client tmq_client_t;

typedef struct tmq_client_options {
    size_t size;                  /* sizeof (tmq_client_options_t); set by the initialiser */
    const char *const *endpoints; /* ZeroMQ URIs, tried in turn; copied */
    size_t endpoints_count;
    const char *ns;             /* namespace; NULL: "default" */
    const char *name;           /* program, for the broker's log; NULL: "libtaskmq" */
    size_t outbox_requests_max; /* open requests; more give TMQ_OUTBOX_FULL; default 100,000 */
    size_t outbox_bytes_max;    /* default 64 MiB */
    size_t completions_max;     /* not yet polled; default 100,000 */
    uint32_t reconnect_ms_min;  /* default 100 */
    uint32_t reconnect_ms_max;  /* default 5,000 */
    bool log;                   /* also deliver TMQ_OP_LOG completions */
    void *owned;                /* of tmq_client_options_set; leave it alone */
} tmq_client_options_t;
TMQ_API void tmq_client_options_init (tmq_client_options_t *options);
/* Sets one option by the key that is also its name ("namespace", "endpoint" (adds one), "name",
 * "outbox_requests_max", …). TMQ_INVALID with a text for an unknown key or a bad value. Strings
 * set this way are kept by options until tmq_client_options_clear. */
TMQ_API int tmq_client_options_set (tmq_client_options_t *options, const char *key,
                                    const char *value, tmq_error_t *error);
TMQ_API void tmq_client_options_clear (tmq_client_options_t *options);

/* Starts the I/O thread and the connection; does not wait for it. Copies options. */
TMQ_API int tmq_client_new (tmq_client_t **out, const tmq_client_options_t *options,
                            tmq_error_t *error);
/* Says goodbye (at most 500 ms), stops the thread, ends what is open with TMQ_CLOSED, frees the
 * client with its subscriptions and workers. *client becomes NULL. Accepts NULL. */
TMQ_API void tmq_client_free (tmq_client_t **client);
/* Waits until the client is connected; gives the reason if it is not at the deadline. */
TMQ_API int tmq_client_connect (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error);

/* What the welcome said; zero before the first connection. */
typedef struct tmq_broker_info {
    uint64_t generation;
    uint64_t epoch;
    uint64_t seq; /* newest event of the namespace at the time of the welcome */
    char identity[TMQ_OWNER_BYTES_MAX + 1];
    char broker[65];
    char endpoint[256];
} tmq_broker_info_t;
TMQ_API int tmq_client_info (tmq_broker_info_t *out, tmq_client_t *client);

/* The client's own counters since its start. */
typedef struct tmq_client_counters {
    uint64_t connects;      /* welcomes received */
    uint64_t requests;      /* operations started */
    uint64_t resent;        /* requests sent again after a reconnect */
    uint64_t messages_sent; /* ZeroMQ messages; requests / messages_sent is the batching */
    uint64_t messages_received;
    uint64_t outbox_requests; /* open now */
    uint64_t outbox_bytes;
} tmq_client_counters_t;
TMQ_API void tmq_client_counters (tmq_client_counters_t *out, tmq_client_t *client);

/* ---- Completions ----------------------------------------------------------------------------- */

typedef enum tmq_op {
    TMQ_OP_SUBMIT = 1, /* tmq_submit_start */
    TMQ_OP_SUBMIT_BATCH,
    TMQ_OP_GET,
    TMQ_OP_RESULT,
    TMQ_OP_PAYLOAD,
    TMQ_OP_LIST,
    TMQ_OP_COUNT,
    TMQ_OP_RESOLVE,
    TMQ_OP_EVENTS,
    TMQ_OP_CANCEL,
    TMQ_OP_WAIT, /* one completion per task */
    TMQ_OP_STATS,
    TMQ_OP_PING,
    TMQ_OP_STARTED,
    TMQ_OP_PUSH,
    TMQ_OP_COMPLETE,
    TMQ_OP_FAIL,
    TMQ_OP_RELEASE,
    TMQ_OP_CANCELLED,          /* tmq_worker_cancelled_start */
    TMQ_OP_SUBSCRIPTION_READY, /* tmq_subscription_next has something; drain it with timeout 0 */
    TMQ_OP_WORKER_READY,       /* tmq_worker_next has something; drain it with timeout 0 */
    TMQ_OP_LOG                 /* error.text is a line of the log */
} tmq_op_t;

typedef struct tmq_receipt tmq_receipt_t;
typedef struct tmq_task tmq_task_t;
typedef struct tmq_task_list tmq_task_list_t;
typedef struct tmq_event_list tmq_event_list_t;
typedef struct tmq_stats tmq_stats_t;

/* An answer. Which pointer is set follows from op; the pointers belong to the completion unless
 * they are taken by setting them to NULL. */
typedef struct tmq_completion {
    tmq_op_t op;
    int code;
    void *user;              /* of the _start call, or of the subscription's or worker's options */
    tmq_error_t *error;      /* NULL when code is 0 */
    tmq_receipt_t *receipts; /* SUBMIT (1), SUBMIT_BATCH */
    size_t receipts_count;
    tmq_id_t task_id;         /* WAIT, RESOLVE, STARTED, PUSH, COMPLETE, FAIL, RELEASE, CANCEL */
    tmq_status_t status;      /* WAIT */
    tmq_task_t *task;         /* GET, RESULT, PAYLOAD, CANCEL */
    tmq_task_list_t *list;    /* LIST */
    tmq_event_list_t *events; /* EVENTS */
    tmq_stats_t *stats;       /* STATS */
    uint64_t count;           /* COUNT */
} tmq_completion_t;

/* Readable (level-triggered) exactly while completions are queued. Only poll or select it. */
TMQ_API int tmq_client_fd (tmq_client_t *client);
/* Waits up to timeout_ms for at least one completion and takes up to max of them into out, an array
 * of max pointers. *count tells how many; TMQ_TIMEOUT if none. Each is freed by
 * tmq_completion_free. */
TMQ_API int tmq_client_poll (tmq_completion_t **out, size_t max, size_t *count,
                             tmq_client_t *client, uint32_t timeout_ms);
TMQ_API void tmq_completion_free (tmq_completion_t *completion);

/* ---- Submit ---------------------------------------------------------------------------------- */

typedef struct tmq_label {
    const char *key;
    const char *value;
} tmq_label_t;

typedef struct tmq_submit {
    size_t size;            /* sizeof (tmq_submit_t); set by the initialiser */
    tmq_id_t id;            /* all zero: the library makes one */
    uint8_t request_id[16]; /* all zero: the library makes one */
    const char *queue;
    const void *payload; /* payload_bytes bytes, at most TMQ_FRAME_BYTES_MAX; copied */
    size_t payload_bytes;
    const char *method;
    const char *session;
    const char *content_type;
    const char *dedup_key;
    const char *meta; /* a JSON object */
    const tmq_label_t *labels;
    size_t labels_count;
    int priority;    /* 0..255, higher first; -1: the default */
    uint64_t ttl_ms; /* 0: the default */
    bool ttl_never;
    uint32_t poll_interval_ms;
    uint32_t max_attempts; /* 0: the default, as below */
    uint32_t backoff_ms;
    uint32_t lease_ms;
} tmq_submit_t;
TMQ_API void tmq_submit_init (tmq_submit_t *submit);

/* The answer for one submitted task. */
struct tmq_receipt {
    tmq_id_t id; /* the truth: of an existing task it may differ from the one sent */
    int code;
    bool existing;
    tmq_status_t status; /* of the task now */
    char text[256];      /* why it was refused */
};

TMQ_API int tmq_submit (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                        uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_submit_start (tmq_client_t *client, const tmq_submit_t *in, uint32_t timeout_ms,
                              void *user, tmq_error_t *error);
/* out: count receipts, in the order of in; every one is filled, also on an error. Returns 0 if the
 * broker answered for all of them (look at each code), else the first failure. Any count. */
TMQ_API int tmq_submit_batch (tmq_receipt_t *out, tmq_client_t *client, const tmq_submit_t *in,
                              size_t count, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_submit_batch_start (tmq_client_t *client, const tmq_submit_t *in, size_t count,
                                    uint32_t timeout_ms, void *user, tmq_error_t *error);

/* ---- Tasks ----------------------------------------------------------------------------------- */

struct tmq_task {
    tmq_id_t id;
    const char *ns;
    const char *queue;
    const char *session;
    const char *owner;
    tmq_status_t status;
    tmq_phase_t phase;
    const char *status_message;
    uint8_t priority;
    const char *method;
    const char *content_type;
    const char *meta;
    const tmq_label_t *labels;
    size_t labels_count;
    uint64_t created_at;
    uint64_t updated_at;
    uint64_t started_at;
    uint64_t finished_at;
    uint64_t expires_at; /* 0: never */
    uint64_t not_before;
    uint64_t ttl_ms; /* 0: never */
    uint32_t poll_interval_ms;
    uint32_t attempt;
    uint32_t max_attempts;
    const char *worker;
    uint64_t progress_done;
    uint64_t progress_total;
    const char *progress_unit;
    const char *progress_message;
    uint64_t payload_bytes;
    uint64_t result_bytes;
    const char *result_type;
    tmq_outcome_kind_t outcome; /* TMQ_OUTCOME_NONE: not ended yet */
    int32_t error_code;
    const char *error_message;
    const char *error_data; /* JSON text */
    bool dead;
    uint64_t version;
    uint64_t seq;     /* its newest event */
    const void *body; /* tmq_get, tmq_result: the result; tmq_payload: the payload */
    size_t body_bytes;
};
TMQ_API void tmq_task_free (tmq_task_t *task);

/* The task with its result, if it has one. */
TMQ_API int tmq_get (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                     uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_get_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                           void *user, tmq_error_t *error);
/* As tmq_get, but an unfinished task gives TMQ_WRONG_STATUS. A failed or cancelled one is OK. */
TMQ_API int tmq_result (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                        uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_result_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                              void *user, tmq_error_t *error);
/* The task with its payload as body. */
TMQ_API int tmq_payload (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                         uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_payload_start (tmq_client_t *client, const tmq_id_t *id, uint32_t timeout_ms,
                               void *user, tmq_error_t *error);
/* The id that ends with suffix (6..32 hexadecimal digits, dashes ignored). TMQ_AMBIGUOUS. */
TMQ_API int tmq_resolve (tmq_id_t *out, tmq_client_t *client, const char *suffix,
                         uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_resolve_start (tmq_client_t *client, const char *suffix, uint32_t timeout_ms,
                               void *user, tmq_error_t *error);

typedef struct tmq_filter {
    const char *const *queues; /* OR */
    size_t queues_count;
    const tmq_status_t *statuses; /* OR */
    size_t statuses_count;
    const char *const *sessions; /* OR */
    size_t sessions_count;
    const tmq_id_t *task_ids; /* OR; subscriptions only */
    size_t task_ids_count;
    const tmq_label_t *labels; /* AND; subscriptions only */
    size_t labels_count;
    uint64_t created_since; /* half open, 0: open; not for subscriptions */
    uint64_t created_until;
} tmq_filter_t;

#define TMQ_CURSOR_BYTES_MAX 96

typedef struct tmq_list_query {
    tmq_filter_t filter;
    const char *cursor; /* of the page before, NULL: from the newest */
    uint32_t limit;     /* 0: 50, at most 1,000 */
} tmq_list_query_t;

struct tmq_task_list {
    tmq_task_t *const *tasks; /* without bodies, newest first */
    size_t count;
    const char *next; /* opaque text, empty: nothing follows */
};
TMQ_API void tmq_task_list_free (tmq_task_list_t *list);
TMQ_API int tmq_list (tmq_task_list_t **out, tmq_client_t *client, const tmq_list_query_t *in,
                      uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_list_start (tmq_client_t *client, const tmq_list_query_t *in, uint32_t timeout_ms,
                            void *user, tmq_error_t *error);
TMQ_API int tmq_count (uint64_t *out, tmq_client_t *client, const tmq_filter_t *in,
                       uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_count_start (tmq_client_t *client, const tmq_filter_t *in, uint32_t timeout_ms,
                             void *user, tmq_error_t *error);

/* A cancelled task is TMQ_OK again; another terminal one TMQ_WRONG_STATUS. out (the task after
 * it, without bodies) may be NULL. message may be NULL. */
TMQ_API int tmq_cancel (tmq_task_t **out, tmq_client_t *client, const tmq_id_t *id,
                        const char *message, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_cancel_start (tmq_client_t *client, const tmq_id_t *id, const char *message,
                              uint32_t timeout_ms, void *user, tmq_error_t *error);

/* Waits until the task is terminal; *out is its status. Survives restarts of the broker. */
TMQ_API int tmq_wait (tmq_status_t *out, tmq_client_t *client, const tmq_id_t *id,
                      uint32_t timeout_ms, tmq_error_t *error);
/* One TMQ_OP_WAIT completion per id, with code TMQ_TIMEOUT at the deadline. */
TMQ_API int tmq_wait_start (tmq_client_t *client, const tmq_id_t *ids, size_t count,
                            uint32_t timeout_ms, void *user, tmq_error_t *error);

TMQ_API int tmq_ping (tmq_client_t *client, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_ping_start (tmq_client_t *client, uint32_t timeout_ms, void *user,
                            tmq_error_t *error);

typedef struct tmq_counter {
    const char *name;
    uint64_t value;
} tmq_counter_t;
typedef struct tmq_queue_depth {
    const char *queue;
    uint64_t ready;
    uint64_t scheduled;
    uint64_t working;
    uint64_t input_required;
} tmq_queue_depth_t;
struct tmq_stats {
    const tmq_counter_t *counters;
    size_t counters_count;
    const tmq_queue_depth_t *queues;
    size_t queues_count;
};
TMQ_API void tmq_stats_free (tmq_stats_t *stats);
TMQ_API int tmq_stats (tmq_stats_t **out, tmq_client_t *client, uint32_t timeout_ms,
                       tmq_error_t *error);
TMQ_API int tmq_stats_start (tmq_client_t *client, uint32_t timeout_ms, void *user,
                             tmq_error_t *error);

/* ---- Events and subscriptions ---------------------------------------------------------------- */

typedef enum tmq_item_kind {
    TMQ_ITEM_EVENT = 1, /* numbered, once, in order */
    TMQ_ITEM_SNAPSHOT,  /* the present state of a task; item->task */
    TMQ_ITEM_SNAPSHOT_END,
    TMQ_ITEM_NOTICE, /* progress; best effort, seq 0 */
    TMQ_ITEM_GAP,    /* events gap_from..gap_to are no longer kept */
    TMQ_ITEM_LIVE    /* the replay has caught up (once) */
} tmq_item_kind_t;

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
    tmq_status_t status;   /* 0 for a removal */
    tmq_status_t previous; /* 0 for a new task */
    uint32_t attempt;
    const char *worker;
    const char *actor;
    const char *message;
    bool has_progress;
    uint64_t progress_done;
    uint64_t progress_total;
    const char *progress_unit;
    const char *progress_message;
    const tmq_label_t *labels;
    size_t labels_count;
    const tmq_task_t *task; /* of TMQ_ITEM_SNAPSHOT, freed with the event */
    uint64_t gap_from;
    uint64_t gap_to;
    char cursor[48]; /* to go on behind this item: text GEN-SEQ */
} tmq_event_t;
TMQ_API void tmq_event_free (tmq_event_t *event);

struct tmq_event_list {
    tmq_event_t *const *events; /* oldest first */
    size_t count;
    uint64_t before_seq; /* for the page before, 0: nothing before */
};
TMQ_API void tmq_event_list_free (tmq_event_list_t *list);
/* The history of one task. before_seq 0: its newest page. limit 0: 50. */
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
} tmq_subscription_options_t;
TMQ_API void tmq_subscription_options_init (tmq_subscription_options_t *options);

/* Subscribes; does not wait for the broker. Lives through reconnects until it is freed. */
TMQ_API int tmq_subscription_new (tmq_subscription_t **out, tmq_client_t *client,
                                  const tmq_subscription_options_t *options, tmq_error_t *error);
TMQ_API void tmq_subscription_free (tmq_subscription_t **subscription);
/* Waits until the broker has confirmed the subscription: later changes cannot be missed. */
TMQ_API int tmq_subscription_ready (tmq_subscription_t *subscription, uint32_t timeout_ms,
                                    tmq_error_t *error);
/* The next item, in order. TMQ_TIMEOUT if there is none in time. What has been taken is
 * acknowledged to the broker. */
TMQ_API int tmq_subscription_next (tmq_event_t **out, tmq_subscription_t *subscription,
                                   uint32_t timeout_ms, tmq_error_t *error);
/* The cursor behind everything that was taken, also when nothing matched lately. */
TMQ_API int tmq_subscription_cursor (char out[48], tmq_subscription_t *subscription);

/* ---- Workers --------------------------------------------------------------------------------- */

typedef struct tmq_worker tmq_worker_t;

typedef struct tmq_worker_options {
    size_t size;      /* set by the initialiser */
    const char *name; /* shown to people; NULL: HOST-PID-N */
    const char *const *queues;
    size_t queues_count;
    uint32_t capacity; /* leases held at once, prefetched ones included; default 1 */
    bool notify;       /* deliver TMQ_OP_WORKER_READY completions */
    void *user;
} tmq_worker_options_t;
TMQ_API void tmq_worker_options_init (tmq_worker_options_t *options);

/* A task given to this worker. Valid until tmq_assignment_free, which does not end the attempt. */
typedef struct tmq_assignment {
    tmq_id_t task_id;
    uint32_t attempt; /* the fencing number */
    uint32_t max_attempts;
    uint32_t lease_ms;
    const char *queue;
    const char *session;
    const char *method;
    const char *content_type;
    const char *meta;
    const tmq_label_t *labels;
    size_t labels_count;
    uint8_t priority;
    uint64_t created_at;
    const void *payload;
    size_t payload_bytes;
} tmq_assignment_t;
TMQ_API void tmq_assignment_free (tmq_assignment_t *assignment);

typedef enum tmq_attempt_state {
    TMQ_ATTEMPT_HELD = 1,
    TMQ_ATTEMPT_ENDING,    /* half of what is left of the lease passed without a renewal */
    TMQ_ATTEMPT_CANCELLED, /* stop; then tmq_worker_cancelled acknowledges */
    TMQ_ATTEMPT_LOST,      /* another attempt took over or the lease ended; stop */
    TMQ_ATTEMPT_ENDED      /* completed, failed, released or acknowledged by this worker */
} tmq_attempt_state_t;

TMQ_API int tmq_worker_new (tmq_worker_t **out, tmq_client_t *client,
                            const tmq_worker_options_t *options, tmq_error_t *error);
/* Gives back what it holds (not counted) and leaves. */
TMQ_API void tmq_worker_free (tmq_worker_t **worker);
/* The next assignment. TMQ_TIMEOUT if there is none in time; TMQ_CLOSED when draining and all that
 * was assigned has been taken. Leases of taken and of prefetched tasks are renewed until they end. */
TMQ_API int tmq_worker_next (tmq_assignment_t **out, tmq_worker_t *worker, uint32_t timeout_ms,
                             tmq_error_t *error);
/* Takes no more: prefetched tasks that were not taken are given back. */
TMQ_API int tmq_worker_drain (tmq_worker_t *worker, tmq_error_t *error);
/* Number of attempts held, taken and prefetched. */
TMQ_API size_t tmq_worker_held (tmq_worker_t *worker);
/* State of an attempt this worker took, at once; TMQ_ATTEMPT_LOST for an unknown one. A change of
 * state wakes tmq_worker_changed. cancel_message (may be NULL): at most size bytes with the NUL. */
TMQ_API tmq_attempt_state_t tmq_worker_state (tmq_worker_t *worker, const tmq_assignment_t *of);
/* Waits until the state of some taken attempt changed since the last call; *out is a copy of its
 * task id and attempt. TMQ_TIMEOUT. */
typedef struct tmq_attempt_change {
    tmq_id_t task_id;
    uint32_t attempt;
    tmq_attempt_state_t state;
    char message[256];
} tmq_attempt_change_t;
TMQ_API int tmq_worker_changed (tmq_attempt_change_t *out, tmq_worker_t *worker,
                                uint32_t timeout_ms);

/* The attempt is running now: from here a lost lease counts as a failure (S4). tmq_worker_next does
 * not imply it. Coalesced with other messages; no need to wait for it. */
TMQ_API int tmq_worker_started (tmq_worker_t *worker, const tmq_assignment_t *of,
                                tmq_error_t *error);
typedef struct tmq_progress {
    uint64_t done;
    uint64_t total; /* 0: unknown */
    const char *unit;
    const char *message;
} tmq_progress_t;
/* Best effort, the latest wins, at most 10 a second are sent per attempt. Never blocks. */
TMQ_API int tmq_worker_progress (tmq_worker_t *worker, const tmq_assignment_t *of,
                                 const tmq_progress_t *progress, tmq_error_t *error);
/* A durable status message; merged when more than 10 a second. */
TMQ_API int tmq_worker_message (tmq_worker_t *worker, const tmq_assignment_t *of,
                                const char *message, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_message_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                      const char *message, uint32_t timeout_ms, void *user,
                                      tmq_error_t *error);

typedef struct tmq_outcome {
    const void *result; /* copied */
    size_t result_bytes;
    const char *result_type; /* NULL: text/plain if UTF-8, else application/octet-stream */
    int32_t error_code;      /* fail only, from here on */
    const char *error_message;
    const char *error_data; /* JSON text */
    bool final;             /* do not try again */
} tmq_outcome_t;
/* Ends the attempt. TMQ_OK is a promise: the outcome is durable. TMQ_STALE_LEASE: another attempt
 * took over, nothing was changed. */
TMQ_API int tmq_worker_complete (tmq_worker_t *worker, const tmq_assignment_t *of,
                                 const tmq_outcome_t *outcome, uint32_t timeout_ms,
                                 tmq_error_t *error);
TMQ_API int tmq_worker_complete_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                       const tmq_outcome_t *outcome, uint32_t timeout_ms,
                                       void *user, tmq_error_t *error);
TMQ_API int tmq_worker_fail (tmq_worker_t *worker, const tmq_assignment_t *of,
                             const tmq_outcome_t *outcome, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_fail_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                   const tmq_outcome_t *outcome, uint32_t timeout_ms, void *user,
                                   tmq_error_t *error);
/* Gives the task back, not counted, to be claimed again after delay_ms (UINT32_MAX: the default). */
TMQ_API int tmq_worker_release (tmq_worker_t *worker, const tmq_assignment_t *of, uint32_t delay_ms,
                                uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_release_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                      uint32_t delay_ms, uint32_t timeout_ms, void *user,
                                      tmq_error_t *error);
/* Acknowledges a cancellation: the task's lease ends. */
TMQ_API int tmq_worker_cancelled (tmq_worker_t *worker, const tmq_assignment_t *of,
                                  uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_cancelled_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                        uint32_t timeout_ms, void *user, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
