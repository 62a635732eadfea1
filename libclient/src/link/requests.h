/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Open requests: their numbers, deadlines, repeats and answers.
 *
 * Whoever made a request hears of its end through `on_end`, which is set once: this room knows
 * nobody above it. */
#ifndef TASKMQ_CLIENT_REQUESTS_H
#define TASKMQ_CLIENT_REQUESTS_H

#include "codec/request.h"
#include "link/link.h"

/* A task whose submit was refused for now and will be sent again. The broker does not know it yet,
 * so a wait for it is hung up here until the submit has its answer. */
typedef struct core_refused {
    core_idnode_t node;        /* first: found by the task's id */
    struct core_refused *next; /* of the same request, or among the released */
    struct core_wait *wait;    /* NULL: nobody waits */
} core_refused_t;

typedef struct core_requests {
    core_link_t *link;
    const core_config_t *config;
    void *core; /* of on_end */
    /* A request has ended: called once, before its answer is given. */
    void (*on_end) (void *core, core_request_t *request, int code);
    uint64_t ids; /* counter behind the random half of a request id */
    core_slots_t slots;
    core_heap_t timers;
    size_t timers_alive;
    core_queue_t control; /* internal requests, sent first */
    core_queue_t small;
    core_queue_t large;
    core_queue_t sent;
    core_queue_t delayed; /* internal requests only */
    size_t large_open;
    size_t open; /* operations without an answer, each wait counted */
    size_t open_bytes;
    size_t changes; /* open requests that change something, … */
    size_t reads;   /* … and that do not, both without the core's own */
    size_t untaken; /* completions that the application has not taken */
    core_idmap_t refused;
    core_refused_t *released; /* those whose wait may ask again */
    core_answers_t answers;
    tmq_client_counters_t counters;
} core_requests_t;

void core_requests_free (core_requests_t *self);

/* One that was made otherwise gets its time and its id. */
void core_internal_begin (core_requests_t *self, core_request_t *request);
/* A request of the core's own; NULL when memory is exhausted. Fields are the caller's to append. */
core_request_t *core_internal_new (core_requests_t *self, unsigned op);
/* Takes it and queues it before all operations. A request whose fields failed (or NULL) is dropped
 * and the link is ended, so that the next one begins with a complete picture. Returns its number; 0
 * when it will not be sent. */
uint64_t core_internal_send (core_requests_t *self, core_request_t *request);
/* Room for that many more operations whose requests take that many bytes. */
int core_admit (core_requests_t *self, size_t operations, size_t bytes, core_target_t target,
                tmq_error_t *error);
/* Starts an operation; takes the request in any case. */
int core_request_start (core_requests_t *self, core_request_t *request, core_target_t target,
                        int64_t deadline_ms, tmq_error_t *error);
/* Puts a request into the table, with its deadline, and into its queue. */
int core_request_open (core_requests_t *self, core_request_t *request);
/* It is open, but is sent only when it is queued. */
void core_request_hold (core_request_t *request);
void core_request_queue (core_requests_t *self, core_request_t *request);
void core_request_sent (core_requests_t *self, core_request_t *request);
/* Ends it with this code: closes it and gives the answer. text NULL: the code's own. */
void core_request_end (core_requests_t *self, core_request_t *request, int code, const char *text,
                       uint32_t retry_after_ms);
/* The broker refused it for now: it is sent again later, unless its deadline comes first. */
void core_request_delay (core_requests_t *self, core_request_t *request, int code, const char *text,
                         uint32_t retry_after_ms);
/* newer, not yet sent, takes the place of older and of those that older replaced: its answer is
 * theirs. */
void core_request_replace (core_request_t *older, core_request_t *newer);
/* Its deadline, or the time to send it again, has come. */
void core_request_timer (core_requests_t *self, core_request_t *request);
/* The link ended: what was sent is to be sent again, what is internal is forgotten. */
void core_requests_unsend (core_requests_t *self);
/* Ends every request. */
void core_requests_end (core_requests_t *self, int code, const char *text);

/* Forgets reads with that user behind which is no blocking call, of one task or (id NULL) of all:
 * they get no answer. Returns their number. */
size_t core_requests_abandon (core_requests_t *self, const tmq_id_t *id, const void *user);

void core_request_id_make (core_requests_t *self, uint8_t out[16]);
/* The number of a request that waits for no answer. */
uint64_t core_number_make (core_requests_t *self);
bool core_timer_reserve (core_requests_t *self, size_t count);

/* The task, if its submit was refused for now and is still open. */
core_refused_t *core_refused_find (const core_requests_t *self, const tmq_id_t *id);
/* The next wait that may ask again; NULL for none. */
struct core_wait *core_released_next (core_requests_t *self);

#endif
