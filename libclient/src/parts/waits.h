/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Waits for the end of tasks. */
#ifndef TASKMQ_CLIENT_WAITS_H
#define TASKMQ_CLIENT_WAITS_H

#include "link/requests.h"

typedef struct core_wait core_wait_t;

typedef struct core_wait_list {
    core_wait_t *first;
    core_wait_t *last;
} core_wait_list_t;

typedef struct core_waits {
    core_requests_t *requests;
    core_link_t *link;
    core_idmap_t tasks;          /* that are waited for */
    core_wait_list_t pending[2]; /* to be asked for: with a deadline, and for ever */
    size_t asked;                /* ids that the broker has been asked for */
    uint64_t looked;             /* tasks and waiters looked at since the start: the work done */
} core_waits_t;

/* Waits for count tasks, with one answer for each. */
int core_waits_start (core_waits_t *self, const tmq_id_t *ids, size_t count, core_target_t target,
                      int64_t deadline_ms, tmq_error_t *error);
/* Forgets waits with that user, but no blocking call, of one task or (id NULL) of all of them:
 * they get no answer. Returns their number. */
size_t core_waits_abandon (core_waits_t *self, const tmq_id_t *id, const void *user);
void core_waits_output (core_waits_t *self); /* turns what is pending into requests */
/* True if core_waits_output has something to do. */
bool core_waits_waiting (const core_waits_t *self);
void core_waits_reply (core_waits_t *self, core_request_t *request, const Taskmq__Reply *reply);
/* A request of ours ended: what it did not tell is to be asked for again. */
void core_waits_ended (core_waits_t *self, core_request_t *request);
void core_waiter_due (core_waits_t *self, void *waiter);
void core_waits_end (core_waits_t *self, int code, const char *text);
void core_waits_free (core_waits_t *self);

#endif
