/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Subscriptions: made, found, ended. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/reads/jobs.h"
#include "core/streams/interest.h"
#include "core/streams/subscription.h"

static uint32_t subscription_hash (const streams_t *self, uint64_t id)
{
    return secrets_hash (&self->base->secrets, &id, sizeof (id));
}

subscription_t *subscription_find (const streams_t *self, const link_t *link, uint64_t id)
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

/* Life. */

enum { WATCH_BYTES = 256 }; /* a place in a topic, and the topic: about */

subscription_t *subscription_new (streams_t *self, link_t *link, event_log_t *log, uint64_t id,
                                  filter_copy_t *filter)
{
    subscription_t *subscription = memory_zero (1, sizeof (*subscription));
    subscription->id = id;
    subscription->link = link;
    subscription->log = log;
    subscription->filter = filter;
    subscription->phase = STREAM_STARTING;
    subscription->alarm.kind = ALARM_STREAM;
    list_push_back (&link->subscriptions, &subscription->of_link);
    map_insert (&link->subscriptions_by_id, subscription_hash (self, id), subscription);
    interest_add (self, subscription);
    self->count++;
    subscription->bytes =
        sizeof (*subscription) + filter->bytes + subscription->watches_count * WATCH_BYTES;
    self->bytes += subscription->bytes;
    return subscription;
}

/* It holds no page any more: another of its link may have one. */
static void give_place (streams_t *self, subscription_t *subscription)
{
    if (!node_is_linked (&subscription->paged))
        return;
    list_unlink (&subscription->paged);
    jobs_page_left (self->reads, subscription->link);
}

void subscription_keep_page (subscription_t *subscription, read_job_t *job)
{
    job_keep_page (job);
    list_push_back (&subscription->link->paged, &subscription->paged);
}

void subscription_drop_page (streams_t *self, subscription_t *subscription)
{
    if (subscription->page == NULL)
        return;
    for (size_t i = 0; i < subscription->page_count; i++) {
        free ((char *) subscription->page[i].ns);
        buf_drop (subscription->page[i].list);
    }
    free (subscription->page);
    subscription->page = NULL;
    subscription->page_count = 0;
    self->pages_held--;
    give_place (self, subscription);
}

void subscription_drop_snapshot (streams_t *self, subscription_t *subscription)
{
    if (subscription->snapshot != NULL) {
        self->pages_held--;
        self->bytes -= subscription->snapshot_bytes;
        subscription->snapshot_bytes = 0;
        for (size_t i = 0; i < subscription->snapshot_count; i++)
            record_free (subscription->snapshot[i]);
        free (subscription->snapshot);
        give_place (self, subscription);
    }
    subscription->snapshot = NULL;
    subscription->snapshot_count = subscription->snapshot_next = 0;
    subscription->snapshot_read = false;
}

void subscription_count_snapshot (streams_t *self, subscription_t *subscription, size_t bytes)
{
    subscription->snapshot_bytes += bytes;
    self->bytes += bytes;
}

/* Frees what it holds, and takes it out of the topics. */
static void forget (streams_t *self, subscription_t *subscription)
{
    interest_remove (subscription);
    self->bytes -= subscription->bytes;
    subscription_drop_page (self, subscription);
    subscription_drop_snapshot (self, subscription);
    free (subscription->sent);
    filter_free (subscription->filter);
    free (subscription);
}

/* Nothing finds it any more, and nothing wakes it. */
static void part (streams_t *self, subscription_t *subscription)
{
    list_remove (&subscription->left);
    list_remove (&subscription->starting);
    list_remove (&subscription->stream);
    list_remove (&subscription->of_link);
    list_remove (&subscription->of_interest);
    alarm_disarm (&subscription->alarm);
    give_place (self, subscription);
    subscription->link = NULL;
    self->count--;
    self->of_logs -= subscription->logs;
    read_job_t *job = subscription->job;
    if (job == NULL)
        return;
    job->filter = subscription->filter; /* the reader may still look at it */
    job->subscription = NULL;
    subscription->filter = NULL;
    if (job->read.kind != READ_SINCE) /* whose request wants an answer */
        job_drop (self->reads, job);
}

void subscription_free (streams_t *self, subscription_t *subscription)
{
    map_remove (&subscription->link->subscriptions_by_id,
                subscription_hash (self, subscription->id), subscription);
    part (self, subscription);
    forget (self, subscription);
}

void subscriptions_drop_link (streams_t *self, link_t *link)
{
    for (node_t *node = list_first (&link->subscriptions); node != NULL;
         node = list_first (&link->subscriptions)) {
        part (self, LIST_ITEM (node, subscription_t, of_link));
        list_push_back (&self->ended, node);
    }
    map_free (&link->subscriptions_by_id);
}

void subscriptions_run (streams_t *self)
{
    size_t *left = &self->base->round.endings;
    while (*left > 0 && !list_is_empty (&self->ended)) {
        subscription_t *subscription =
            LIST_ITEM (list_pop_front (&self->ended), subscription_t, of_link);
        budget_take (left, 1 + subscription->watches_count + subscription->snapshot_count);
        forget (self, subscription);
    }
}
