/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The requests of subscribers: subscribe, credit, unsubscribe (A42). What they are
 * sent: stream.c. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

uint32_t subscription_hash (const engine_t *self, uint64_t id)
{
    return secrets_hash (&self->secrets, &id, sizeof (id));
}

static subscription_t *find (const engine_t *self, const link_t *link, uint64_t id)
{
    const map_t *map = &link->subscriptions_by_id;
    uint32_t hash = subscription_hash (self, id);
    size_t cursor = MAP_START;
    subscription_t *subscription = NULL;
    while ((subscription = map_next (map, hash, &cursor)) != NULL)
        if (subscription->id == id)
            return subscription;
    return NULL;
}

/* subscribe. */

static void start_at (subscription_t *self, uint64_t seq)
{
    self->cursor = self->acked = self->sent_upto = seq;
}

/* A cursor of another history says nothing about this one: all of it is a gap. */
static void start_anew (subscription_t *self, uint64_t newest)
{
    start_at (self, newest);
    self->gap = newest > 0;
    self->gap_from = 1;
    self->gap_to = newest;
}

/* The tasks of a snapshot by id are looked up at once; any other snapshot is a list. */
static void take_snapshot_by_id (call_t *call, subscription_t *subscription)
{
    const filter_copy_t *filter = subscription->filter;
    subscription->snapshot = memory_alloc (filter->ids_count * sizeof (record_t *));
    call->engine->pages_held++;
    for (size_t i = 0; i < filter->ids_count; i++) {
        found_t found = lookup_id (call->engine, subscription->space, filter->ids[i].bytes);
        record_t view;
        task_texts_t texts;
        if (found.task != NULL)
            task_view (found.task, &view, &texts);
        else if (found.record != NULL)
            view = *found.record;
        else
            continue;
        if (filter_takes_record (filter, &view))
            subscription->snapshot[subscription->snapshot_count++] = record_new (&view);
    }
    subscription->snapshot_more = false;
    subscription->snapshot_read = true;
}

static subscription_t *subscription_new (call_t *call)
{
    const Taskmq__Subscribe *request = call->request->subscribe;
    subscription_t *self = memory_zero (1, sizeof (*self));
    self->id = request->subscription;
    self->link = call->link;
    self->space = call->link->space;
    self->filter = filter_new (self->space->name, request->filter);
    self->phase = STREAM_STARTING;
    self->alarm.kind = ALARM_STREAM;
    self->snapshot_wanted = request->snapshot;
    self->snapshot_more = request->snapshot;
    list_push_back (&call->link->subscriptions, &self->of_link);
    map_insert (&call->link->subscriptions_by_id, subscription_hash (call->engine, self->id), self);
    interest_add (call->engine, self);
    call->engine->subscriptions++;
    return self;
}

static void answer_subscribed (engine_t *self, link_t *link, uint64_t request, uint64_t seq,
                               uint64_t batch)
{
    Taskmq__Subscribed subscribed = TASKMQ__SUBSCRIBED__INIT;
    subscribed.generation = self->generation;
    subscribed.seq = seq;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, request, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_SUBSCRIBED, &subscribed.base);
    reply_close (self, link, mark, batch, NULL);
}

/* The start is not known before the tables have said where that time begins. */
static void ask_for_start (call_t *call, subscription_t *subscription)
{
    subscription->start_batch = UINT64_MAX;
    job_t *job = job_new (call->engine, call->link, READ_SINCE, call->engine->durable);
    job->read.since_ms = (int64_t) call->request->subscribe->since_time;
    job->request = call->request->id;
    job->subscription = subscription;
    subscription->job = job;
}

void on_subscribe (call_t *call)
{
    engine_t *self = call->engine;
    link_t *link = call->link;
    const Taskmq__Subscribe *request = call->request->subscribe;
    uint64_t newest = link->space->last_seq;
    bool foreign = request->generation != 0 && request->generation != self->generation;
    bool by_cursor = !request->from_now && request->since_time == 0;
    if (find (self, link, request->subscription) != NULL) {
        reply_code (call, TMQ_CONFLICT, "the subscription's number is in use on this link");
        return;
    }
    if (link->subscriptions_by_id.count >= TMQ_LINK_SUBSCRIPTIONS_MAX) {
        reply_code (call, TMQ_LIMIT, "too many subscriptions on this link");
        return;
    }
    if (by_cursor && !foreign && request->after_seq > newest) {
        reply_code (call, TMQ_BAD_CURSOR, "the cursor is beyond the newest event");
        return;
    }
    subscription_t *subscription = subscription_new (call);
    subscription->start_batch = batch_to_wait_for (self);
    if (subscription->snapshot_wanted && subscription->filter->ids_count > 0)
        take_snapshot_by_id (call, subscription);
    if (request->from_now)
        start_at (subscription, newest);
    else if (request->since_time > 0)
        ask_for_start (call, subscription);
    else if (foreign)
        start_anew (subscription, newest);
    else
        start_at (subscription, request->after_seq);
    if (subscription->start_batch == UINT64_MAX)
        return;
    answer_subscribed (self, link, call->request->id, subscription->cursor,
                       subscription->start_batch);
    if (subscription->start_batch > self->durable)
        list_push_back (&self->starting, &subscription->starting);
    else
        stream_wake (self, subscription);
}

void subscription_started (engine_t *self, job_t *job)
{
    subscription_t *subscription = job->subscription;
    if (job->read.error != 0) {
        reply_to (self, job->link, job->request, TMQ_INTERNAL, job->read.error_text, 0);
        stream_close (self, subscription);
        return;
    }
    start_at (subscription, job->read.seq);
    subscription->start_batch = 0;
    answer_subscribed (self, job->link, job->request, job->read.seq, 0);
    stream_wake (self, subscription);
}

/* credit, unsubscribe. */

void on_credit (call_t *call)
{
    const Taskmq__Credit *request = call->request->credit;
    subscription_t *subscription = find (call->engine, call->link, request->subscription);
    if (subscription == NULL) {
        reply_code (call, TMQ_NOT_FOUND, "no such subscription on this link");
        return;
    }
    stream_acknowledge (call->engine, subscription, request->received_upto);
    stream_acknowledge_snapshot (call->engine, subscription, request->snapshot_messages);
}

void on_unsubscribe (call_t *call)
{
    subscription_t *subscription =
        find (call->engine, call->link, call->request->unsubscribe->subscription);
    if (subscription != NULL)
        stream_close (call->engine, subscription);
    reply_code (call, TMQ_OK, NULL);
}
