/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Work on tasks: one by one, or with a pool of threads. A part of taskmq.h, which includes it. */
#ifndef TASKMQ_WORKERS_H
#define TASKMQ_WORKERS_H

#include "taskmq.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Workers. */

typedef struct tmq_worker tmq_worker_t;

typedef struct tmq_worker_options {
    size_t size;      /* set by the initialiser */
    const char *name; /* shown to people; NULL: HOST-PID-N */
    const char *const *queues;
    size_t queues_count;
    uint32_t capacity; /* leases held at once, prefetched ones included; default 1 */
    bool notify;       /* deliver TMQ_OP_WORKER_READY completions */
    void *user;
    /* What others are told of it (tmq_workers), beside its process and its machine. */
    const char *role;          /* a name, or NULL */
    const tmq_label_t *labels; /* at most 16; requirements of tasks are met with them */
    size_t labels_count;
    const char *version;           /* of its program, at most 256 bytes */
    const char *config;            /* a JSON object, at most 4 KiB */
    const char *const *depends_on; /* names of what it cannot work without, at most 16 */
    size_t depends_on_count;
} tmq_worker_options_t;
/* Fills in the defaults; queues are left to be set. */
TMQ_API void tmq_worker_options_init (tmq_worker_options_t *options, size_t size);
#define tmq_worker_options_init(options) tmq_worker_options_init ((options), sizeof *(options))

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
    uint64_t max_runtime_ms; /* of this attempt, from its start; 0: none */
    const char *trace;
    const tmq_dependency_t
        *after; /* what it waited for, with how that ended; without what was to be
                                      ignored */
    size_t after_count;
    size_t checkpoint_bytes; /* that an earlier attempt kept; 0: none */
    uint32_t turns;          /* that earlier attempts told (tmq_turns); 0: none */
    /* The payload, if it is larger than a frame: then `payload` is empty, and tmq_payload_read and
     * tmq_payload_save of the task read it. */
    tmq_blob_t payload_blob;
} tmq_assignment_t;
/* Accepts NULL. */
TMQ_API void tmq_assignment_free (tmq_assignment_t *assignment);

/* What has become of an attempt that a worker took. */
typedef enum tmq_attempt_state {
    TMQ_ATTEMPT_HELD = 1,
    TMQ_ATTEMPT_ENDING,    /* half of what is left of the lease passed without a renewal */
    TMQ_ATTEMPT_CANCELLED, /* stop; then tmq_worker_cancelled acknowledges */
    TMQ_ATTEMPT_LOST,      /* another attempt took over or the lease ended; stop */
    TMQ_ATTEMPT_ENDED,     /* completed, failed, released or acknowledged by this worker */
    TMQ_ATTEMPT_HURRY,     /* half of the task's max_runtime has passed since it was started; at its
                              end the attempt fails, and this one is LOST */
    TMQ_ATTEMPT_ANSWERED   /* a change alone: tmq_worker_answer has something new */
} tmq_attempt_state_t;

/* Registers a worker; does not wait for the broker. Lives through reconnects: its leases are
 * renewed by the I/O thread and listed at every registration, so that work goes on through a
 * restart of the broker. Codes: TMQ_INVALID (an option, named in the text), TMQ_NO_MEMORY; the
 * broker's refusal comes with tmq_worker_next. */
TMQ_API int tmq_worker_new (tmq_worker_t **out, tmq_client_t *client,
                            const tmq_worker_options_t *options, tmq_error_t *error);
/* Gives back what it holds (not counted as a failure) and leaves, without waiting. What ends
 * attempts and was started before is still delivered. *worker becomes NULL. Accepts NULL. */
TMQ_API void tmq_worker_free (tmq_worker_t **worker);
/* Takes the next assignment. Its lease, and those of prefetched ones, are renewed until they end;
 * the application says started, then one of complete, fail, release or cancelled.
 * Codes: TMQ_TIMEOUT when there is none in time; TMQ_CLOSED when draining; any other code says that
 * none will come any more. */
TMQ_API int tmq_worker_next (tmq_assignment_t **out, tmq_worker_t *worker, uint32_t timeout_ms,
                             tmq_error_t *error);
/* Takes no more tasks. Prefetched tasks that were not taken are given back. tmq_worker_next gives
 * TMQ_CLOSED. Attempts that were taken go on. Does not block. */
TMQ_API int tmq_worker_drain (tmq_worker_t *worker, tmq_error_t *error);
/* Number of attempts held, taken and prefetched. Does not block. */
TMQ_API size_t tmq_worker_held (tmq_worker_t *worker);
/* State of an attempt this worker took. Does not block. TMQ_ATTEMPT_LOST for one that is not held
 * any more, also after its own acknowledged end. */
TMQ_API tmq_attempt_state_t tmq_worker_state (tmq_worker_t *worker, const tmq_assignment_t *of);
/* A change of the state of an attempt that was taken. */
typedef struct tmq_attempt_change {
    tmq_id_t task_id;
    uint32_t attempt;
    tmq_attempt_state_t state;
    char message[256];
} tmq_attempt_change_t;
/* Waits until the state of some taken attempt changed since the last call: ENDING, HELD again,
 * HURRY (once), ANSWERED, CANCELLED (message: why) or LOST (message: why, if the broker said so).
 * Codes: TMQ_TIMEOUT; any other code: none will come any more. */
TMQ_API int tmq_worker_changed (tmq_attempt_change_t *out, tmq_worker_t *worker,
                                uint32_t timeout_ms);

/* The attempt is running now: from here a lost lease counts as a failure. tmq_worker_next does not
 * imply it. Does not block; repeated by the library as needed.
 * Codes: TMQ_STALE_LEASE: the attempt is not held any more. */
TMQ_API int tmq_worker_started (tmq_worker_t *worker, const tmq_assignment_t *of,
                                tmq_error_t *error);
typedef struct tmq_progress {
    double done;  /* finite, from 0 up; so is the total */
    double total; /* 0: unknown */
    const char *unit;
    const char *message;
} tmq_progress_t;
/* Tells how far the attempt is. Best effort, the latest wins, at most 10 a second are sent per
 * attempt. Does not block. progress is copied.
 * Codes: TMQ_INVALID, TMQ_TOO_LARGE, TMQ_STALE_LEASE, TMQ_NO_MEMORY. */
TMQ_API int tmq_worker_progress (tmq_worker_t *worker, const tmq_assignment_t *of,
                                 const tmq_progress_t *progress, tmq_error_t *error);
/* A status message (1..1,024 bytes). TMQ_OK says that it is durable, or a newer one of the same
 * attempt. Messages beyond 10 a second are merged. Only the newest of them is sent, and all of them
 * get its answer. Codes: TMQ_STALE_LEASE, TMQ_WRONG_STATUS (the task was cancelled). */
TMQ_API int tmq_worker_message (tmq_worker_t *worker, const tmq_assignment_t *of,
                                const char *message, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_message_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                      const char *message, uint32_t timeout_ms, void *user,
                                      tmq_error_t *error);

/* What an attempt ends with. Begin with {0}. */
typedef struct tmq_outcome {
    const void *result; /* result_bytes bytes; copied. Of more than TMQ_FRAME_BYTES_MAX it is for
                           tmq_worker_complete and tmq_worker_run alone, which upload it first */
    size_t result_bytes;
    const char *result_type;        /* NULL: text/plain if UTF-8, else application/octet-stream */
    int32_t error_code;             /* fail only, from here on; not -33099..-33001, but
                                       for TMQ_TASK_ERROR_TOO_LARGE */
    const char *error_message;      /* at most 4,096 bytes */
    const char *error_data;         /* JSON text, at most 64 KiB; with result at most
                                       TMQ_FRAME_BYTES_MAX */
    bool final;                     /* do not try again */
    void (*release) (void *result); /* only tmq_worker_run calls it, when result is not needed any
                                       more (for example free); NULL: nobody does */
    tmq_blob_t result_blob;         /* complete only: in place of a result, what tmq_blob_put gave;
                                       its default type is application/octet-stream */
} tmq_outcome_t;
/* Ends the attempt; the task is completed. TMQ_OK is a promise: the outcome is durable. Delivered
 * through reconnects, and a repeat gets the stored answer; a full disk is waited for. outcome NULL:
 * an empty result. After TMQ_UNKNOWN or TMQ_UNREACHABLE the attempt is still held, and the call may
 * be repeated.
 * Codes: TMQ_STALE_LEASE (another attempt took over, or the lease was lost; nothing was changed),
 * TMQ_WRONG_STATUS (the task was cancelled, which this acknowledges), TMQ_NOT_FOUND, TMQ_EXPIRED,
 * TMQ_PURGED, TMQ_INVALID, TMQ_TOO_LARGE (also: the result is larger than limits/blob_bytes of the
 * broker; the attempt is still held), TMQ_NO_BLOB (result_blob is to be put again; the same). The
 * timeout is of each piece of a large result. */
TMQ_API int tmq_worker_complete (tmq_worker_t *worker, const tmq_assignment_t *of,
                                 const tmq_outcome_t *outcome, uint32_t timeout_ms,
                                 tmq_error_t *error);
TMQ_API int tmq_worker_complete_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                       const tmq_outcome_t *outcome, uint32_t timeout_ms,
                                       void *user, tmq_error_t *error);
/* The same with the contents of a file as result, whatever their length, from its first byte to its
 * end; outcome->result is not looked at. The descriptor stays open, its position as it is. Codes:
 * also those of tmq_blob_put_file. */
TMQ_API int tmq_worker_complete_file (tmq_worker_t *worker, const tmq_assignment_t *of,
                                      const tmq_outcome_t *outcome, int fd, uint32_t timeout_ms,
                                      tmq_error_t *error);
/* The attempt failed: the task is tried again after its backoff, unless outcome->final is set or
 * the attempts are used up. With result bytes the outcome is a tool error, which a reader gets as
 * bytes. Codes as of tmq_worker_complete. */
TMQ_API int tmq_worker_fail (tmq_worker_t *worker, const tmq_assignment_t *of,
                             const tmq_outcome_t *outcome, uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_fail_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                   const tmq_outcome_t *outcome, uint32_t timeout_ms, void *user,
                                   tmq_error_t *error);
/* Gives the task back, not counted as a failure, to be claimed again after delay_ms (0: at once;
 * UINT32_MAX: the default, 1 s; at most 24 h). Codes as of tmq_worker_complete. */
TMQ_API int tmq_worker_release (tmq_worker_t *worker, const tmq_assignment_t *of, uint32_t delay_ms,
                                uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_release_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                      uint32_t delay_ms, uint32_t timeout_ms, void *user,
                                      tmq_error_t *error);
/* Keeps up to TMQ_CHECKPOINT_BYTES_MAX bytes with the task, in place of what was kept before; 0
 * bytes: nothing any more. When the answer is there, the next attempt has it, whatever becomes of
 * this worker or the broker. It goes when the task completes or is cancelled, and with tmq_retry;
 * one that failed has it still after tmq_resume. Codes: TMQ_TOO_LARGE, TMQ_STALE_LEASE,
 * TMQ_WRONG_STATUS (the task was cancelled), and those of any request. */
TMQ_API int tmq_worker_checkpoint (tmq_worker_t *worker, const tmq_assignment_t *of,
                                   const void *state, size_t bytes, uint32_t timeout_ms,
                                   tmq_error_t *error);
TMQ_API int tmq_worker_checkpoint_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                         const void *state, size_t bytes, uint32_t timeout_ms,
                                         void *user, tmq_error_t *error);
/* What was kept last: bytes and length of *out, which is to be freed by tmq_part_free. Asks the
 * broker, and blocks. Codes: as tmq_worker_checkpoint. */
TMQ_API int tmq_worker_checkpoint_read (tmq_part_t **out, tmq_worker_t *worker,
                                        const tmq_assignment_t *of, uint32_t timeout_ms,
                                        tmq_error_t *error);
/* The same without blocking: it comes as the part of the completion. */
TMQ_API int tmq_worker_checkpoint_read_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                              uint32_t timeout_ms, void *user, tmq_error_t *error);
/* Acknowledges a cancellation, after the work was stopped: the task's lease ends. */
TMQ_API int tmq_worker_cancelled (tmq_worker_t *worker, const tmq_assignment_t *of,
                                  uint32_t timeout_ms, tmq_error_t *error);
TMQ_API int tmq_worker_cancelled_start (tmq_worker_t *worker, const tmq_assignment_t *of,
                                        uint32_t timeout_ms, void *user, tmq_error_t *error);

/* Who works here. */

/* A worker that is registered, or was in the last seven days. Texts belong to the list. */
typedef struct tmq_worker_info {
    const char *id; /* 32 hexadecimal digits */
    const char *name;
    const char *principal; /* whose it is: the identity of its connection */
    const char *const *queues;
    size_t queues_count;
    const char *role;
    const tmq_label_t *labels;
    size_t labels_count;
    uint32_t pid; /* 0: not told */
    const char *host;
    const char *version;
    const char *config;
    const char *const *depends_on;
    size_t depends_on_count;
    uint64_t started_at; /* ms since the epoch, as the others: its first registration */
    uint64_t heard_at;
    uint64_t ended_at;   /* 0: it has not */
    uint64_t drained_at; /* 0: it was not */
    const char *drained_by;
    bool connected;     /* else it may come back, or has ended */
    uint32_t running;   /* leases that it holds */
    uint64_t completed; /* its attempts, by how they ended */
    uint64_t failed;
    uint64_t released;
    uint64_t lost;
    uint64_t cancelled;
    bool has_exit; /* how its program ended, as tmq_worker_exit told: */
    int exit_status;
    int exit_signal; /* by this signal, if it is not 0 */
} tmq_worker_info_t;

/* The answer to a request of this section. */
struct tmq_worker_page {
    const tmq_worker_info_t *workers; /* the newest first */
    size_t count;
    uint64_t next; /* `before` of the following page; 0: nothing follows */
    /* Of tmq_workers, on the first page: the broker itself. */
    const char *broker; /* program and version; empty: not told */
    uint32_t broker_pid;
    const char *broker_host;
    uint64_t broker_started_at; /* it owns the data since then: of a standby, since it took over */
    uint64_t broker_heartbeat_at;
    uint64_t generation;
    uint64_t epoch;
};
/* Accepts NULL. */
TMQ_API void tmq_worker_list_free (tmq_worker_list_t *list);

/* Workers of the namespace: all of them for who may read or observe all of it, else one's own.
 * before: 0, or `next` of the page before. limit 0: 100, at most 1,000; a page may be shorter. all:
 * also those that have ended. */
TMQ_API int tmq_workers (tmq_worker_list_t **out, tmq_client_t *client, uint64_t before,
                         uint32_t limit, bool all, uint32_t timeout_ms, tmq_error_t *error);
/* The completion (TMQ_OP_WORKER_LIST) has workers. */
TMQ_API int tmq_workers_start (tmq_client_t *client, uint64_t before, uint32_t limit, bool all,
                               uint32_t timeout_ms, void *user, tmq_error_t *error);
/* One worker, by its id of 32 hexadecimal digits or by its name; of several with that name the one
 * that came last. Codes: TMQ_NOT_FOUND. */
TMQ_API int tmq_worker_show (tmq_worker_list_t **out, tmq_client_t *client, const char *worker,
                             uint32_t timeout_ms, tmq_error_t *error);
/* A worker, or all that have this name, get no new task, wherever they register again, and are told
 * so: their tmq_worker_next ends with TMQ_CLOSED, as after tmq_worker_drain. What they hold they
 * finish. May be repeated. For admins and operators. Codes: TMQ_NOT_FOUND: none works here now. */
TMQ_API int tmq_workers_drain (tmq_worker_list_t **out, tmq_client_t *client, const char *worker,
                               uint32_t timeout_ms, tmq_error_t *error);
/* How the program ends that this worker is about: told when the worker is freed. signal 0: by
 * itself, with this status. */
TMQ_API int tmq_worker_exit (tmq_worker_t *worker, int status, int signal, tmq_error_t *error);

/* The loop that most workers want. */

/* How a handler ends its attempt. */
typedef enum tmq_run_end {
    TMQ_RUN_COMPLETE = 0, /* with outcome->result */
    TMQ_RUN_FAIL,         /* with outcome->error_code … */
    TMQ_RUN_RELEASE       /* not now, or not here: give it back, not counted */
} tmq_run_end_t;

/* Works on one assignment, on a thread of tmq_worker_run's pool. outcome is zeroed. What it points
 * to must live until outcome->release is called, or, if that is NULL, until this thread calls the
 * handler again. It should look at tmq_worker_state from time to time and return when the attempt
 * is cancelled or lost; what it returns then does not count. */
typedef tmq_run_end_t tmq_worker_handler_t (void *context, tmq_worker_t *worker,
                                            const tmq_assignment_t *assignment,
                                            tmq_outcome_t *outcome);

/* Takes assignments with a pool of threads (1..1,024; the worker's capacity should be at least as
 * much), says started, calls the handler, and reports its end, waiting for ever. An outcome that
 * cannot be sent does not keep the task. A long error_message is cut. A result_type, error_data or
 * error_code that would be refused is left out, which the message says. A result that is larger
 * than the broker allows fails the task for good with TMQ_TASK_ERROR_TOO_LARGE. If the broker
 * refuses the end all the same, the attempt is given back. Blocks until the worker is drained
 * (tmq_worker_drain by any thread, also by a handler) and every handler has returned: then TMQ_OK.
 * The library's only callback.
 * Codes: TMQ_INVALID, TMQ_SYSTEM (a thread could not be started), or why tmq_worker_next ended. */
TMQ_API int tmq_worker_run (tmq_worker_t *worker, unsigned threads, tmq_worker_handler_t *handler,
                            void *context, tmq_error_t *error);

#ifdef __cplusplus
}
#endif
#endif
