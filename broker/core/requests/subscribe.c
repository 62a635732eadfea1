/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The requests of subscribers: subscribe, credit, unsubscribe (A51). What they are sent stands in
 * streams/. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/reads/find.h"
#include "core/reads/jobs.h"
#include "core/requests/answer.h"
#include "core/requests/quota.h"
#include "core/requests/subscribe.h"
#include "core/streams/stream.h"
#include "core/streams/subscription.h"
#include "core/tasks/journal.h"
#include "core/tasks/view.h"

static void start_at (subscription_t *self, uint64_t seq)
{
    self->cursor = self->acked = self->sent_upto = seq;
}

/* A cursor of another history says nothing about this one. All of it follows, behind a gap that
 * names none of its events: what is lost may be in the other history. */
static void start_anew (subscription_t *self)
{
    start_at (self, 0);
    self->gap = true;
    self->gap_from = 1;
    self->gap_to = 0;
}

/* The tasks of a snapshot by id are looked up at once; any other snapshot is a list. */
static void take_snapshot_by_id (call_t *call, subscription_t *subscription)
{
    filter_copy_t *filter = subscription->filter;
    subscription->snapshot = memory_alloc (filter->ids_count * sizeof (record_t *));
    call->requests->streams->pages_held++;
    for (size_t i = 0; i < filter->ids_count; i++) {
        found_t found = find_id (call->requests->reads, call->link, filter->ids[i].bytes,
                                 RIGHT_READ | RIGHT_OBSERVE);
        record_t view;
        task_texts_t texts;
        if (found.task != NULL)
            task_view (found.task, &view, &texts);
        else if (found.record != NULL)
            view = *found.record;
        else
            continue;
        if (!filter_takes_record (filter, &view))
            continue;
        subscription->snapshot[subscription->snapshot_count++] = record_new (&view);
        subscription_count_snapshot (call->requests->streams, subscription,
                                     sizeof (view) + record_wire_bytes (&view));
    }
    subscription->snapshot_more = false;
    subscription->snapshot_read = true;
}

/* With the cursor before the gap, if there is one: who is cut off in between asks with it again. */
static void answer_subscribed (requests_t *self, link_t *link, uint64_t request,
                               uint64_t generation, uint64_t seq, uint64_t batch)
{
    Taskmq__Subscribed subscribed = TASKMQ__SUBSCRIBED__INIT;
    subscribed.generation = generation;
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
    read_job_t *job = job_for_stream (call->requests->reads, call->link, call->link->space->name,
                                      READ_SINCE, call->requests->base->durable, subscription);
    job->read.since_ms = (int64_t) call->request->subscribe->since_time;
    job->request = call->request->id;
    subscription->job = job;
}

void on_subscribe (call_t *call)
{
    requests_t *self = call->requests;
    link_t *link = call->link;
    const Taskmq__Subscribe *request = call->request->subscribe;
    uint64_t newest = link->space->log.last_seq;
    bool foreign = request->generation != 0 && request->generation != self->history->generation;
    bool by_cursor = !request->from_now && request->since_time == 0;
    if (subscription_find (self->streams, link, request->subscription) != NULL) {
        reply_code (call, TMQ_CONFLICT, "the subscription's number is in use on this link");
        return;
    }
    if (link->subscriptions_by_id.count >= TMQ_LINK_SUBSCRIPTIONS_MAX) {
        reply_limit (call, "subscriptions on a link", TMQ_LINK_SUBSCRIPTIONS_MAX);
        return;
    }
    if (quota_answered (call, quota_ask (self, link, QUOTA_SUBSCRIPTIONS)))
        return;
    if (by_cursor && !foreign && request->after_seq > newest) {
        reply_code (call, TMQ_BAD_CURSOR, "the cursor is beyond the newest event");
        return;
    }
    subscription_t *subscription =
        subscription_new (self->streams, link, &link->space->log, request->subscription,
                          filter_new (link->space->name, request->filter, &link->access));
    subscription->snapshot_wanted = subscription->snapshot_more = request->snapshot;
    subscription->logs = request->logs;
    self->streams->of_logs += subscription->logs;
    subscription->start_batch = journal_batch (self->tasks);
    subscription->live_seq = newest;
    if (subscription->snapshot_wanted && subscription->filter->ids_count > 0)
        take_snapshot_by_id (call, subscription);
    size_t bytes_max = self->base->config.stream_bytes_max;
    if (self->streams->bytes > bytes_max) {
        subscription_free (self->streams, subscription);
        reply_limit (call, "bytes of subscriptions and their snapshots", bytes_max);
        return;
    }
    if (request->from_now)
        start_at (subscription, newest);
    else if (request->since_time > 0)
        ask_for_start (call, subscription);
    else if (foreign)
        start_anew (subscription);
    else
        start_at (subscription,
                  request->after_seq == 0 ? link->space->log.base_seq : request->after_seq);
    if (subscription->start_batch == UINT64_MAX)
        return;
    bool before_gap = subscription->gap;
    answer_subscribed (
        self, link, call->request->id, before_gap ? request->generation : self->history->generation,
        before_gap ? request->after_seq : subscription->cursor, subscription->start_batch);
    stream_start (self->streams, subscription);
}

void subscribe_started (requests_t *self, read_job_t *job)
{
    subscription_t *subscription = job->subscription;
    subscription->job = NULL;
    if (job->read.error != 0) {
        reply_to (self, job->link, job->request, TMQ_INTERNAL, job->read.error_text, 0);
        subscription_free (self->streams, subscription);
        return;
    }
    start_at (subscription, job->read.seq);
    subscription->start_batch = 0;
    answer_subscribed (self, job->link, job->request, self->history->generation, job->read.seq, 0);
    stream_wake (self->streams, subscription);
}

void on_credit (call_t *call)
{
    const Taskmq__Credit *request = call->request->credit;
    subscription_t *subscription =
        subscription_find (call->requests->streams, call->link, request->subscription);
    if (subscription == NULL) {
        reply_code (call, TMQ_NOT_FOUND, "no such subscription on this link");
        return;
    }
    stream_acknowledge (call->requests->streams, subscription, request->received_upto);
    stream_acknowledge_snapshot (call->requests->streams, subscription, request->snapshot_messages);
}

void on_unsubscribe (call_t *call)
{
    subscription_t *subscription = subscription_find (call->requests->streams, call->link,
                                                      call->request->unsubscribe->subscription);
    if (subscription != NULL)
        subscription_free (call->requests->streams, subscription);
    reply_code (call, TMQ_OK, NULL);
}
