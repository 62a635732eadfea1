/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers and the attempts they hold: shared by workers.c (registration, assignments, leases) and
 * attempts.c (what is said about one attempt). */
#ifndef TASKMQ_CLIENT_WORKERS_H
#define TASKMQ_CLIENT_WORKERS_H

#include "core_internal.h"

/* A change of state that the application has not heard of. */
typedef struct core_change {
    struct core_change *next;
    struct core_attempt *attempt; /* NULL: gone */
    tmq_attempt_change_t change;
} core_change_t;

/* One lease. It is held from its assignment until the broker has answered its end, or has said that
 * it is over. */
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
    core_timer_t lease_timer;
    tmq_attempt_state_t state; /* HELD, ENDING or CANCELLED */
    bool taken;
    bool started;
    unsigned ends;           /* open requests that end it */
    tmq_assignment_t *fresh; /* until it is taken */
    core_change_t *change;   /* not yet heard of */

    struct core_attempt *next_push; /* among those with something to say now */
    bool push_due;
    int64_t push_after_ms;
    core_timer_t push_timer;
    core_request_t *message; /* status message to be sent */
    bool has_progress;
    uint64_t progress_done;
    uint64_t progress_total;
    char *progress_unit;    /* NULL: none */
    char *progress_message; /* NULL: none */
} core_attempt_t;

struct core_worker {
    core_t *core;
    void *owner;
    core_worker_t *next;
    core_worker_t *previous;
    core_worker_t *next_woken;
    core_worker_t *next_due;
    bool woken;
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
    int code; /* not TMQ_OK: it has ended */
    char *text;
    core_attempt_t *attempts;
    size_t held;
    core_attempt_t **fresh; /* a ring */
    size_t fresh_first;
    size_t fresh_count;
    size_t fresh_size;
    core_change_t *changes_first;
    core_change_t *changes_last;
    size_t changes_count;
    bool notify;
    core_answer_t ready;
};

void core_worker_wake (core_worker_t *self);
core_attempt_t *core_attempt_find (const core_t *core, const tmq_id_t *id, uint32_t attempt);
/* Tells the application about a new state of an attempt it has taken. message may be NULL. */
void core_attempt_change (core_attempt_t *attempt, tmq_attempt_state_t state, const char *message);
void core_attempt_free (core_attempt_t *attempt);
void core_attempt_encode (bytes_t *out, const core_attempt_t *attempt);
/* Another attempt took over, or the lease is over. */
void core_attempt_lost (core_attempt_t *attempt);
void core_attempt_cancelled (core_attempt_t *attempt, const char *message);
/* What cannot be said any more: messages that were not sent are answered. */
void core_attempt_silence (core_attempt_t *attempt, int code);
/* Gives back an attempt that was not taken. */
void core_attempt_give_back (core_attempt_t *attempt);

#endif
