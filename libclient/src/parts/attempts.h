/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What workers hold, and what is said about one attempt. workers.h is on top of it. */
#ifndef TASKMQ_CLIENT_ATTEMPTS_H
#define TASKMQ_CLIENT_ATTEMPTS_H

#include "link/requests.h"
#include "parts/log_kept.h"
#include "parts/part.h"

typedef struct core_worker core_worker_t;

/* A change of state that the application has not heard of. */
typedef struct core_change {
    struct core_change *next;
    struct core_attempt *attempt; /* NULL: gone */
    tmq_attempt_change_t change;
} core_change_t;

/* An answer to a question of its task. */
typedef struct core_given {
    struct core_given *next;
    tmq_given_t *given;
    bool taken; /* the application has had it */
} core_given_t;

/* One lease. It is held from its assignment until the broker has answered its end, or has said that
 * it is over. One that was taken is remembered then: the broker may keep the success that it still
 * brings. */
typedef struct core_attempt {
    core_idnode_t node; /* first: found by the task's id */
    struct core_worker *worker;
    struct core_attempt *next;
    struct core_attempt *previous;
    uint32_t attempt;
    uint8_t secret[16];
    uint32_t lease_ms;
    int64_t granted_ms; /* the lease is known to last until granted_ms + lease_ms */
    int64_t asked_ms;   /* when the newest renewal was sent */
    int64_t renew_ms;   /* when the next one is due */
    int64_t runtime_ms; /* that the task allows; 0: no bound */
    int64_t hurry_ms;   /* when half of it will have passed; 0: not started, no bound, or told */
    core_timer_t lease_timer;
    bool hurries;              /* … it was */
    tmq_attempt_state_t state; /* HELD, ENDING or CANCELLED */
    bool taken;
    bool started;
    bool lost;               /* it is not held any more, and stands in the worker's list of such */
    unsigned ends;           /* open requests that end it */
    tmq_assignment_t *fresh; /* until it is taken */
    core_change_t *change;   /* not yet heard of */

    uint32_t turns; /* number of the newest turn that was told */

    core_given_t *answers; /* to the task's questions, in the order of their numbers */
    uint64_t answers_seen; /* number of the newest of them */
    bool fetching;         /* the broker was asked for what is behind */

    struct core_attempt *next_push; /* among those with something to say now */
    bool push_due;
    int64_t push_after_ms;
    core_timer_t push_timer;
    core_log_t *log;         /* what its program writes (logs.h); NULL: nothing so far */
    core_request_t *message; /* status message to be sent */
    bool has_progress;
    double progress_done;
    double progress_total;
    char *progress_unit;    /* NULL: none */
    char *progress_message; /* NULL: none */
} core_attempt_t;

struct core_worker {
    core_part_t part; /* first */
    struct core_workers *all;
    core_worker_t *next_due;
    bool due; /* it has leases to renew, or another capacity */
    uint8_t id[16];
    bytes_t head; /* name and queues of a registration, packed */
    uint32_t capacity;
    uint64_t seen; /* number of the newest assignment */
    uint64_t seen_told;
    uint32_t capacity_told;
    bool credit_due;        /* to be told even if nothing changed */
    uint64_t credit_number; /* request number of the newest credit */
    bool registering;       /* assignments are from before */
    bool registered;
    bool draining;
    bool has_exit; /* how its program ends, for leave */
    int exit_status;
    int exit_signal;
    int code; /* not TMQ_OK: it has ended */
    char *text;
    core_attempt_t *attempts;
    size_t held;
    core_attempt_t *lost; /* newest first */
    size_t lost_count;
    core_attempt_t **fresh; /* a ring */
    size_t fresh_first;
    size_t fresh_count;
    size_t fresh_size;
    core_change_t *changes_first;
    core_change_t *changes_last;
    size_t changes_count;
};

typedef struct core_workers {
    core_requests_t *requests;
    core_link_t *link;
    core_parts_t parts;
    core_idmap_t attempts;
    core_worker_t *due;     /* those with leases to renew */
    core_attempt_t *pushes; /* attempts with something to say now */
} core_workers_t;

void core_worker_wake (core_worker_t *self);
/* One that is held. */
/* Of the data of a failure: how much of it stands in the second frame; 0: none. */
size_t core_long_data (const tmq_outcome_t *outcome);
core_attempt_t *core_attempt_find (const core_workers_t *all, const tmq_id_t *id, uint32_t attempt);
/* Tells the application about a new state of an attempt it has taken. message may be NULL. */
void core_attempt_change (core_attempt_t *attempt, tmq_attempt_state_t state, const char *message);
/* The next change that the application has not heard of; to be freed. There is one. */
core_change_t *core_change_pop (core_worker_t *self);
void core_attempt_free (core_attempt_t *attempt);
void core_attempt_encode (bytes_t *out, const core_attempt_t *attempt);
/* Another attempt took over, or the lease is over. */
void core_attempt_lost (core_attempt_t *attempt, const char *message); /* message may be NULL */
/* Its timer may be due earlier now. */
void core_attempt_schedule (core_attempt_t *attempt);
void core_attempt_cancelled (core_attempt_t *attempt, const char *message);
/* Gives back an attempt that was not taken. */
void core_attempt_give_back (core_attempt_t *attempt);
/* Prefetched attempts, oldest first. */
bool core_fresh_push (core_worker_t *self, core_attempt_t *attempt);
core_attempt_t *core_fresh_pop (core_worker_t *self);

void core_push_due (core_attempt_t *attempt);
/* The next piece of each stream of its log; all: everything. */
void core_attempt_send_log (core_attempt_t *attempt, bool all);
void core_attempts_output (core_workers_t *all); /* progress and status messages that are due */
/* A message about an attempt, or its last word, was answered or will not be. */
void core_attempt_answered (core_workers_t *all, core_request_t *request, int code);

/* For the rooms above: the attempt of an assignment, or NULL; the refusal of what it says then; a
 * request about it, opened at its lease (NULL for NULL); what the refusal of such a request says of
 * it. */
core_attempt_t *core_attempt_of (const core_worker_t *self, const tmq_assignment_t *of);
int core_attempt_stale (tmq_error_t *error);
core_request_t *core_attempt_about (core_request_t *request, const core_attempt_t *attempt,
                                    bytes_mark_t *mark);
void core_attempt_refused (core_attempt_t *attempt, uint32_t code);
/* Asks for the answers behind those it has; false: there is no link for it. */
bool core_attempt_take (core_attempt_t *attempt);

/* The application's side. */

tmq_attempt_state_t core_worker_state (const core_worker_t *self, const tmq_assignment_t *of);
int core_worker_started (core_worker_t *self, const tmq_assignment_t *of, tmq_error_t *error);
/* Whoever works on it has returned: unless its end is open, its lease is left to end by itself. */
void core_worker_returned (core_worker_t *self, const tmq_assignment_t *of);
int core_worker_progress (core_worker_t *self, const tmq_assignment_t *of,
                          const tmq_progress_t *progress, int64_t now_ms, tmq_error_t *error);
int core_worker_message (core_worker_t *self, const tmq_assignment_t *of, const char *message,
                         core_target_t target, int64_t deadline_ms, int64_t now_ms,
                         tmq_error_t *error);
/* op: TMQ_OP_COMPLETE, TMQ_OP_FAIL, TMQ_OP_RELEASE (outcome unused) or TMQ_OP_CANCELLED. */
int core_worker_end (core_worker_t *self, tmq_op_t op, const tmq_assignment_t *of,
                     const tmq_outcome_t *outcome, uint32_t delay_ms, core_target_t target,
                     int64_t deadline_ms, int64_t now_ms, tmq_error_t *error);
int core_worker_artifact (core_worker_t *self, const tmq_assignment_t *of,
                          const tmq_artifact_t *given, core_target_t target, int64_t deadline_ms,
                          int64_t now_ms, tmq_error_t *error);
int core_worker_turn (core_worker_t *self, const tmq_assignment_t *of, const tmq_turn_t *given,
                      core_target_t target, int64_t deadline_ms, int64_t now_ms,
                      tmq_error_t *error);
/* op: TMQ_OP_CHECKPOINT, with what is kept, or TMQ_OP_CHECKPOINT_READ. */
int core_worker_checkpoint (core_worker_t *self, tmq_op_t op, const tmq_assignment_t *of,
                            const void *state, size_t bytes, core_target_t target,
                            int64_t deadline_ms, int64_t now_ms, tmq_error_t *error);

#endif
