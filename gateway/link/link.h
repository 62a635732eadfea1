/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The way to the broker: one client of the library for each namespace.
 *
 * What is started gets a ticket; its completion comes to a function with a context. A ticket that
 * was given back is not known any more, so a completion that comes later finds nobody and is freed.
 * Only this room starts operations and polls. One thread. */
#ifndef TASKMQ_GATEWAY_LINK_LINK_H
#define TASKMQ_GATEWAY_LINK_LINK_H

#include "base/line.h"
#include "base/seats.h"
#include "base/settings.h"
#include "net/loop.h"
#include "taskmq.h"

typedef struct link link_t;

/* The completion is borrowed, but for what the function takes out of it. */
typedef void link_fn (void *context, tmq_completion_t *completion);

typedef struct link_numbers {
    bool up;
    int64_t since_ms; /* CLOCK_MONOTONIC: of its present state */
    uint64_t epoch;   /* of the broker: counts its starts */
    uint64_t connects;
    uint64_t resent;
    uint64_t waits;           /* tasks that are waited for */
    uint64_t waits_displaced; /* polls that gave way to others */
    uint64_t cancels;         /* that the broker has not settled yet */
    uint64_t cancels_dropped;
} link_numbers_t;

/* options say where the broker is; ns is copied into them. NULL with *error filled in. */
link_t *link_new (loop_t *loop, const settings_t *settings, const tmq_client_options_t *options,
                  const char *ns, tmq_error_t *error);
/* Its flows are freed before. Accepts NULL. */
void link_free (link_t **self);
const char *link_ns (const link_t *self);
void link_count (const link_t *self, link_numbers_t *out);
/* The broker's program and version; empty before the first welcome. */
void link_broker (const link_t *self, char out[65]);
/* Of the event history: the first half of an entity tag. */
uint64_t link_generation (const link_t *self);

/* Who is told. *ticket is set when the call returns 0, to 0 when the completion has come. Without
 * fn and ticket (NULL) it concerns nobody what comes of it. */
typedef struct link_call {
    link_fn *fn;
    void *context;
    uint64_t *ticket;
    const char *owner; /* on whose behalf: his tasks alone exist; NULL: the gateway's own */
} link_call_t;

/* Forgets what is under way: its function is not called. Accepts 0. *ticket becomes 0. */
void link_forget (link_t *self, uint64_t *ticket);

/* Each is the function of the library of that name; link_get is tmq_get_record, without bytes.
 * TMQ_UNREACHABLE at once when the broker has been away for longer than the grace. */
int link_submit (link_t *self, link_call_t call, const tmq_submit_t *in, tmq_error_t *error);
int link_submit_batch (link_t *self, link_call_t call, const tmq_submit_t *in, size_t count,
                       tmq_error_t *error);
int link_get (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_result (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_payload (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
/* A piece of a large one: the completion has part. */
int link_result_read (link_t *self, link_call_t call, const tmq_id_t *id, uint64_t offset,
                      uint32_t limit, tmq_error_t *error);
int link_payload_read (link_t *self, link_call_t call, const tmq_id_t *id, uint64_t offset,
                       uint32_t limit, tmq_error_t *error);
int link_artifacts (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_artifact_read (link_t *self, link_call_t call, const tmq_id_t *id,
                        const tmq_artifact_info_t *artifact, uint64_t offset, uint32_t limit,
                        tmq_error_t *error);
/* A step of an upload, as tmq_blob_send_start: the completion has part. */
int link_blob_send (link_t *self, link_call_t call, const tmq_blob_t *blob, uint64_t offset,
                    const void *bytes, size_t length, tmq_error_t *error);
/* As tmq_blob_drop, for the owner (may be NULL): one that was begun will not go on. */
void link_blob_drop (link_t *self, const char *owner, const tmq_blob_t *blob);
/* Who asks for pieces of bodies, or sends them, has a turn for each: the broker takes four requests
 * that need a file from a link, and refuses more. Three are for bodies, one is left for logs. */
enum { LINK_BODIES_MAX = 3 };
line_t *link_bodies (link_t *self);
int link_resolve (link_t *self, link_call_t call, const char *suffix, tmq_error_t *error);
int link_list (link_t *self, link_call_t call, const tmq_list_query_t *in, tmq_error_t *error);
int link_tally (link_t *self, link_call_t call, const tmq_filter_t *in, tmq_error_t *error);
int link_cancel (link_t *self, link_call_t call, const tmq_id_t *id, const char *message,
                 tmq_error_t *error);
/* Cancels a task for nobody: what comes of it is not waited for. It is repeated until the broker
 * has settled it, also when that is away; so many as 'cancels_max' are kept, and of an account, by
 * all links together, half as many. message is static, owner (may be NULL) is copied. False: there
 * is no room for it, and nothing was done. */
bool link_cancel_kept (link_t *self, account_t *account, const char *owner, const tmq_id_t *id,
                       const char *message);
/* One completion for each id. TMQ_OVERLOADED: as many are waited for as 'wait_ids_max' allows. */
int link_wait (link_t *self, link_call_t call, const tmq_id_t *ids, size_t count,
               uint32_t timeout_ms, tmq_error_t *error);
/* Of those who wait for many at once. */
seats_t *link_polls (link_t *self);
int link_events (link_t *self, link_call_t call, const tmq_id_t *id, uint64_t before,
                 uint32_t limit, tmq_error_t *error);
int link_stats (link_t *self, link_call_t call, tmq_error_t *error);
/* Of one task: the completion has one answer about it. */
int link_retry (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_resume (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_purge (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_adopt (link_t *self, link_call_t call, const tmq_id_t *id, uint32_t attempt,
                tmq_error_t *error);
int link_why (link_t *self, link_call_t call, const tmq_id_t *id, tmq_error_t *error);
int link_answer (link_t *self, link_call_t call, const tmq_id_t *id, const tmq_answer_t *in,
                 size_t count, tmq_error_t *error);
int link_inbox (link_t *self, link_call_t call, const tmq_inbox_query_t *in, tmq_error_t *error);
int link_attempts (link_t *self, link_call_t call, const tmq_id_t *id, uint32_t after,
                   uint32_t limit, tmq_error_t *error);
int link_log (link_t *self, link_call_t call, const tmq_id_t *id, uint32_t attempt,
              tmq_log_stream_t stream, uint64_t offset, uint32_t limit, tmq_error_t *error);
int link_queues (link_t *self, link_call_t call, const char *cursor, uint32_t limit,
                 tmq_error_t *error);
int link_queue (link_t *self, link_call_t call, const char *queue, tmq_error_t *error);
int link_pause (link_t *self, link_call_t call, const char *queue, const char *why,
                tmq_error_t *error);
int link_unpause (link_t *self, link_call_t call, const char *queue, tmq_error_t *error);
int link_workers (link_t *self, link_call_t call, uint64_t before, uint32_t limit, bool all,
                  tmq_error_t *error);

/* A flow of events from the broker: one subscription of the library.
 *
 * Items are taken when the taker has room for them. What is not taken stays with the broker, which
 * waits. A flow lives through reconnects. */
typedef struct flow flow_t;

/* Whom a flow tells. The functions may free the flow, and others. */
typedef struct flow_taker {
    void (*ready) (void *context);          /* there is something: flow_next until it gives none */
    void (*moved) (void *context, bool up); /* the broker is there, or away */
    void *context;
} flow_taker_t;

/* options are copied; notify and user are set here. NULL with *error filled in. ready is not called
 * before the next turn of the loop. */
flow_t *flow_new (link_t *link, const tmq_subscription_options_t *options, flow_taker_t taker,
                  tmq_error_t *error);
void flow_free (flow_t **self); /* accepts NULL */
/* Somebody else is told from now on. */
void flow_give (flow_t *self, flow_taker_t taker);
/* The next item, owned by the caller. TMQ_TIMEOUT: none now, ready will be called; any other code
 * is the end of the flow. Does not wait. */
int flow_next (tmq_event_t **out, flow_t *self, tmq_error_t *error);
/* ready is called in the loop's next turn: for who stops in the middle, for the sake of others. */
void flow_again (flow_t *self);
/* Where it stands behind all that was taken; it moves on also while nothing matches. False: the
 * broker has not confirmed it yet. */
bool flow_cursor (char out[48], flow_t *self);

#endif
