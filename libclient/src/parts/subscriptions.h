/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions: each has a cursor that moves, and a bounded buffer in front of the application. */
#ifndef TASKMQ_CLIENT_SUBSCRIPTIONS_H
#define TASKMQ_CLIENT_SUBSCRIPTIONS_H

#include "arena.h"
#include "link/requests.h"
#include "parts/part.h"

typedef struct core_subscription core_subscription_t;

typedef struct core_subscriptions {
    core_requests_t *requests;
    const core_link_t *link;
    core_slots_t numbers;
    core_parts_t parts;
    core_subscription_t *credit; /* those that owe the broker credit */
    arena_t *arena;              /* of a batch of events */
} core_subscriptions_t;

/* False when memory is exhausted. */
bool core_subscriptions_init (core_subscriptions_t *all, core_requests_t *requests);
void core_subscriptions_link (core_subscriptions_t *all);   /* the link is up: subscribe */
void core_subscriptions_unlink (core_subscriptions_t *all); /* … has ended */
void core_subscriptions_output (core_subscriptions_t *all); /* credit */
bool core_subscriptions_waiting (const core_subscriptions_t *all);
void core_subscriptions_reply (core_subscriptions_t *all, const core_request_t *request,
                               const Taskmq__Reply *reply);
/* The broker does not know the subscription to which this credit belonged. */
void core_subscriptions_refused (core_subscriptions_t *all, uint64_t number);
bool core_subscriptions_events (core_subscriptions_t *all, const Taskmq__EventBatch *batch,
                                const void *list);
bool core_subscriptions_snapshot (core_subscriptions_t *all, const Taskmq__Snapshot *snapshot);
bool core_subscriptions_gap (core_subscriptions_t *all, const Taskmq__Gap *gap);
bool core_subscriptions_notice (core_subscriptions_t *all, const Taskmq__Notice *notice);
void core_subscriptions_end (core_subscriptions_t *all, int code, const char *text);
void core_subscriptions_free (core_subscriptions_t *all);

/* The application's side. */

/* owner is what core_parts_woken names. */
int core_subscriptions_add (core_subscription_t **out, core_subscriptions_t *all,
                            const tmq_subscription_options_t *options, void *owner,
                            tmq_error_t *error);
void core_subscription_free (core_subscription_t *self);
/* TMQ_OK once the broker has confirmed it, TMQ_TIMEOUT before; any other code is its end. */
int core_subscription_state (const core_subscription_t *self, tmq_error_t *error);
/* The next item; TMQ_TIMEOUT when there is none, any other code when none will come. */
int core_subscription_next (tmq_event_t **out, core_subscription_t *self, tmq_error_t *error);
/* The cursor behind everything that was taken. TMQ_TIMEOUT before the first confirmation. */
int core_subscription_cursor (char out[48], const core_subscription_t *self);
/* The answer by which it tells that it has something; embedded. */
core_answer_t *core_subscription_answer (core_subscription_t *subscription);

#endif
