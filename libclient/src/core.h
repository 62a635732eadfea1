/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The decision core of the client library: everything it decides, without a socket, a clock or a
 * thread (A5). The client's I/O thread drives it with real ones, the simulation with virtual ones.
 *
 * What goes in: messages of the broker with the time, operations, the end of a connection. What
 * comes out: messages for the broker, answers to operations, which connection is wanted.
 * One loop of a driver is
 *
 *     core_link_wanted            open, keep or close the connection
 *     core_receive …              everything that has arrived, before
 *     core_tick                   judges deadlines and says when it wants to be called again
 *     core_output …               while the connection takes messages
 *     core_answer_next …          until NULL
 *     core_woken_next …           until it returns false
 *
 * Time is in milliseconds of a monotonic clock; now_ms never goes back from call to call.
 * deadline_ms is a point in that time, CORE_NEVER for none. Not thread-safe: one lock around it.
 *
 * Failure: nothing aborts. Exhausted memory ends the operation concerned with TMQ_NO_MEMORY, or the
 * link, when a message of the broker cannot be kept; the next link asks for it again. */
#ifndef TASKMQ_CLIENT_CORE_H
#define TASKMQ_CLIENT_CORE_H

#include "base/answers.h"
#include "base/config.h"
#include "base/rights.h"
#include "codec/encode.h"
#include "link/messages.h"
#include "parts/subscriptions.h"
#include "parts/workers.h"

typedef struct core core_t;

/* NULL when memory is exhausted. */
core_t *core_new (const core_config_t *config, int64_t now_ms);
/* Frees everything, open operations included: answer them first with core_close. */
void core_free (core_t *self);
/* Ends every open operation, subscription and worker with TMQ_CLOSED; later starts get it too. */
void core_close (core_t *self);

/* The link. */

/* The connection that is wanted now. A new number means a new connection: the old one is closed
 * without waiting for anything. */
typedef struct core_wanted {
    uint64_t connection; /* 0: none */
    size_t endpoint;     /* index of the endpoint to connect to */
} core_wanted_t;
core_wanted_t core_link_wanted (const core_t *self);

/* The connection has come to its peer, which is to shake hands. */
void core_link_reached (core_t *self, uint64_t connection, int64_t now_ms);
/* The handshake of the connection is done. Until then one of several endpoints gets little time. */
void core_link_greeted (core_t *self, uint64_t connection, int64_t now_ms);

/* The connection ended or could not be made. TMQ_NOT_AUTHENTICATED is final, everything else is
 * tried again after a pause. */
void core_link_failed (core_t *self, uint64_t connection, int code, const char *text,
                       int64_t now_ms);

/* The same, when it could not be made because certainly nobody is there: no socket, nobody listens,
 * no right to connect. hint: what one may do about it. */
void core_link_absent_at (core_t *self, uint64_t connection, const char *text, const char *hint,
                          int64_t now_ms);

/* One message of the broker: first frame, and second frame or NULL. */
void core_receive (core_t *self, const void *envelope, size_t envelope_bytes, const void *body,
                   size_t body_bytes, int64_t now_ms);

/* Judges deadlines and heartbeats. To be called after everything that had arrived was received, so
 * that a pause of the process is not taken for silence of the broker. Returns when to
 * call again. */
int64_t core_tick (core_t *self, int64_t now_ms);
/* What the last core_tick would return now, after what was started since. */
int64_t core_next_due (const core_t *self);

/* The next message to send. Taking it is sending it: only call it when the connection takes one. */
bool core_output (core_t *self, core_message_t *out, int64_t now_ms);
/* True if core_output would give a message. */
bool core_has_output (const core_t *self);
/* Tasks and waiters that waits have looked at since the start: the work they were. */
uint64_t core_waits_work (const core_t *self);
/* Changes that were started and are not answered yet. */
size_t core_changes_open (const core_t *self);
/* Forgets waits and reads (tmq_forget) that are not answered yet. */
size_t core_forget (core_t *self, const tmq_id_t *id, const void *user);
/* Operations that were started and are not answered yet. */
size_t core_open (const core_t *self);

/* TMQ_OK once the broker has welcomed us; else why there is no link, as the last attempt saw it
 * (TMQ_UNREACHABLE), or why there will be none (any other code). final: there is nothing to wait
 * for. error may be NULL. */
int core_link_state (const core_t *self, tmq_error_t *error, bool *final);
/* Somebody waits for the link: what core_link_state says is about what is tried from now on. */
void core_link_needed (core_t *self, int64_t now_ms);
/* Counts changes of what core_link_state says. */
uint64_t core_link_changes (const core_t *self);
/* What the last welcome said; the endpoint's text is the driver's to fill. */
void core_info (const core_t *self, tmq_broker_info_t *out, size_t *endpoint);
/* The namespace of the link. */
const char *core_namespace (const core_t *self);
/* What it said about who we are. Until the next welcome. */
const core_rights_t *core_rights (const core_t *self);
void core_counters (const core_t *self, tmq_client_counters_t *out);
/* Says goodbye: the next message ends the link, and no new one is wanted. */
void core_goodbye (core_t *self);
/* True once the goodbye has been sent, or there is nobody to send it to. */
bool core_goodbye_done (const core_t *self);

/* Answers. */

/* The next answer, in the order in which they came; NULL for none. An answer to a waiter is the
 * caller's, who moves completion out and calls core_answer_free. */
core_answer_t *core_answer_next (core_t *self);
/* The application has taken an answer that was no waiter's: room for another operation. */
void core_answer_taken (core_t *self, const core_answer_t *answer);

/* Subscriptions and workers that have something new for threads that wait on them. */
typedef enum core_woken_kind { CORE_WOKEN_SUBSCRIPTION = 1, CORE_WOKEN_WORKER } core_woken_kind_t;
bool core_woken_next (core_t *self, core_woken_kind_t *kind, void **owner);

/* Operations.
 * First the request is made from its input (codec/encode.h), which needs no core and no lock; then
 * it is started, which takes it in any case. Both return 0 or a code, with a text in error (which
 * may be NULL). */

int core_start (core_t *self, core_request_t *request, core_target_t target, int64_t deadline_ms,
                int64_t now_ms, tmq_error_t *error);
/* For nobody: without a link nothing happens. Takes the request, which the core's own op made. */
int core_drop_blob (core_t *self, core_request_t *request, const char *owner, int64_t now_ms,
                    tmq_error_t *error);
/* One answer per id. */
int core_wait (core_t *self, const tmq_id_t *ids, size_t count, core_target_t target,
               int64_t deadline_ms, int64_t now_ms, tmq_error_t *error);

/* Subscriptions and workers; what is done with them is in parts/. */

/* owner is what core_woken_next names. */
int core_subscription_new (core_subscription_t **out, core_t *core,
                           const tmq_subscription_options_t *options, void *owner,
                           tmq_error_t *error);
int core_worker_new (core_worker_t **out, core_t *core, const tmq_worker_options_t *options,
                     void *owner, tmq_error_t *error);

#endif
