/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which subscriptions an event concerns, so that ten thousand of them cost an event no more than
 * those that it is for. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/streams/interest.h"
#include "core/wire/scan.h"

struct topic {
    uint32_t hash;
    node_t members;     /* watches */
    node_t touched;     /* in the list of those that have an event in this advance … */
    uint64_t first_seq; /* … and which ones */
    uint64_t last_seq;
    hint_t hint; /* where the first one stands */
};

struct watch {
    node_t of_topic;
    topic_t *topic;
    subscription_t *subscription;
};

static uint32_t name_hash (const streams_t *self, interest_t kind, const void *name, size_t length)
{
    uint8_t key[1 + TMQ_NAME_LENGTH_MAX] = {(uint8_t) kind};
    if (length > TMQ_NAME_LENGTH_MAX)
        length = TMQ_NAME_LENGTH_MAX;
    if (length > 0)
        memcpy (key + 1, name, length);
    return secrets_hash (&self->base->secrets, key, 1 + length);
}

static topic_t *topic_find (const audience_t *audience, uint32_t hash)
{
    size_t cursor = MAP_START;
    return map_next (&audience->topics, hash, &cursor);
}

static void watch_name (streams_t *self, subscription_t *subscription, const void *name,
                        size_t length)
{
    audience_t *audience = subscription->log->audience;
    uint32_t hash = name_hash (self, subscription->interest, name, length);
    topic_t *topic = topic_find (audience, hash);
    for (size_t i = 0; i < subscription->watches_count; i++)
        if (subscription->watches[i].topic == topic)
            return; /* named twice */
    if (topic == NULL) {
        topic = memory_zero (1, sizeof (*topic));
        topic->hash = hash;
        list_init (&topic->members);
        map_insert (&audience->topics, hash, topic);
    }
    watch_t *watch = &subscription->watches[subscription->watches_count++];
    *watch = (watch_t){.topic = topic, .subscription = subscription};
    list_push_back (&topic->members, &watch->of_topic);
}

static void watch_texts (streams_t *self, subscription_t *subscription, const char *const *texts,
                         size_t count)
{
    subscription->watches = memory_alloc (count * sizeof (watch_t));
    for (size_t i = 0; i < count; i++)
        watch_name (self, subscription, texts[i], strlen (texts[i]));
}

/* Audiences. */

static audience_t *audience_make (event_log_t *log)
{
    if (log->audience != NULL)
        return log->audience;
    audience_t *audience = memory_zero (1, sizeof (*audience));
    list_init (&audience->wide);
    list_init (&audience->resting);
    log->audience = audience;
    return audience;
}

static void audience_release (event_log_t *log)
{
    audience_t *audience = log->audience;
    for (size_t i = 0; i < INTERESTS; i++)
        if (audience->interested[i] > 0)
            return;
    for (size_t i = 0; i < SLICES; i++)
        buf_drop (audience->slices[i].list);
    map_free (&audience->topics);
    free (audience);
    log->audience = NULL;
}

void interest_add (streams_t *self, subscription_t *subscription)
{
    const filter_copy_t *filter = subscription->filter;
    audience_t *audience = audience_make (subscription->log);
    subscription->match_seq = UINT64_MAX;
    if (filter->ids_count > 0) {
        subscription->interest = INTEREST_TASKS;
        subscription->watches = memory_alloc (filter->ids_count * sizeof (watch_t));
        for (size_t i = 0; i < filter->ids_count; i++)
            watch_name (self, subscription, filter->ids[i].bytes, sizeof (filter->ids[i].bytes));
    } else if (filter->filter.sessions_count > 0) {
        subscription->interest = INTEREST_SESSIONS;
        watch_texts (self, subscription, filter->filter.sessions, filter->filter.sessions_count);
    } else if (filter->filter.queues_count > 0) {
        subscription->interest = INTEREST_QUEUES;
        watch_texts (self, subscription, filter->filter.queues, filter->filter.queues_count);
    } else {
        subscription->interest = INTEREST_WIDE;
        list_push_back (&audience->wide, &subscription->of_interest);
    }
    audience->interested[subscription->interest]++;
}

void interest_remove (subscription_t *subscription)
{
    audience_t *audience = subscription->log->audience;
    list_remove (&subscription->concerned);
    list_remove (&subscription->of_interest);
    audience->interested[subscription->interest]--;
    for (size_t i = 0; i < subscription->watches_count; i++) {
        topic_t *topic = subscription->watches[i].topic;
        list_unlink (&subscription->watches[i].of_topic);
        if (!list_is_empty (&topic->members))
            continue;
        map_remove (&audience->topics, topic->hash, topic);
        free (topic);
    }
    free (subscription->watches);
    if (audience->topics.count == 0)
        map_free (&audience->topics);
    audience_release (subscription->log);
}

static void touch (const streams_t *self, const audience_t *audience, interest_t kind,
                   const void *name, size_t length, uint64_t seq, hint_t hint, node_t *touched)
{
    if (audience->interested[kind] == 0)
        return;
    topic_t *topic = topic_find (audience, name_hash (self, kind, name, length));
    if (topic == NULL)
        return;
    if (!node_is_linked (&topic->touched)) {
        list_push_back (touched, &topic->touched);
        topic->first_seq = seq;
        topic->hint = hint;
    }
    topic->last_seq = seq;
}

static void touch_block (const streams_t *self, const audience_t *audience,
                         const ring_block_t *block, node_t *touched)
{
    const uint8_t *begin = buf_bytes (block->list);
    const uint8_t *at = begin;
    const uint8_t *end = begin + buf_length (block->list);
    scanned_t event;
    while (scan_event (&at, end, &event)) {
        hint_t hint = {block->first_seq, (size_t) (event.element - begin)};
        if (event.id != NULL)
            touch (self, audience, INTEREST_TASKS, event.id, sizeof (tmq_id_t), event.seq, hint,
                   touched);
        touch (self, audience, INTEREST_SESSIONS, event.session, event.session_bytes, event.seq,
               hint, touched);
        touch (self, audience, INTEREST_QUEUES, event.queue, event.queue_bytes, event.seq, hint,
               touched);
    }
}

/* Blocks that are not durable yet stay in the ring, so all of these are there. */
static void touch_since (const streams_t *self, const event_log_t *log, uint64_t after_seq,
                         node_t *touched)
{
    const node_t *first = &log->blocks;
    while (first->prev != &log->blocks &&
           LIST_ITEM (first->prev, const ring_block_t, in_log)->first_seq > after_seq)
        first = first->prev;
    for (const node_t *node = first; node != &log->blocks; node = node->next) {
        const ring_block_t *block = LIST_ITEM (node, const ring_block_t, in_log);
        if (block->first_seq > log->durable_seq)
            return;
        touch_block (self, log->audience, block, touched);
    }
}

/* Sets the cursor of one that is at the end before the first event that may match. Topics come in
 * the order of their first events, so a further one of the same advance lies behind it. */
static void take_hit (subscription_t *subscription, const topic_t *topic)
{
    if (subscription->match_seq == UINT64_MAX)
        return;
    if (subscription->cursor >= subscription->match_seq) {
        subscription->cursor = topic->first_seq - 1;
        subscription->hint = topic->hint;
    }
    if (topic->last_seq > subscription->match_seq)
        subscription->match_seq = topic->last_seq;
}

/* One that stalls costs the others this look and no more. */
static void concern (subscription_t *subscription, node_t *concerned)
{
    if (subscription->link != NULL && !subscription->held &&
        !node_is_linked (&subscription->concerned))
        list_push_back (concerned, &subscription->concerned);
}

static void hit_topics (node_t *touched, node_t *concerned)
{
    for (node_t *node = list_pop_front (touched); node != NULL; node = list_pop_front (touched)) {
        topic_t *topic = LIST_ITEM (node, topic_t, touched);
        for (node_t *at = topic->members.next; at != &topic->members; at = at->next) {
            subscription_t *subscription = LIST_ITEM (at, watch_t, of_topic)->subscription;
            take_hit (subscription, topic);
            concern (subscription, concerned);
        }
    }
}

void interest_advance (streams_t *self, event_log_t *log, uint64_t after_seq, node_t *concerned,
                       node_t *moved)
{
    audience_t *audience = log->audience;
    if (audience == NULL)
        return;
    for (node_t *node = audience->wide.next; node != &audience->wide; node = node->next)
        concern (LIST_ITEM (node, subscription_t, of_interest), concerned);
    if (audience->topics.count == 0)
        return;
    node_t touched;
    list_init (&touched);
    touch_since (self, log, after_seq, &touched);
    hit_topics (&touched, concerned);
    for (node_t *node = list_pop_front (&audience->resting); node != NULL;
         node = list_pop_front (&audience->resting))
        list_push_back (moved, node);
}

void interest_rest (subscription_t *subscription)
{
    if (!node_is_linked (&subscription->of_interest))
        list_push_back (&subscription->log->audience->resting, &subscription->of_interest);
}

/* Notices. */

/* A list of subscriptions is told of in turn: those that a notice leaves out come first the next
 * time. */

static void tell (subscription_t *subscription, node_t *concerned, size_t *left)
{
    if (subscription->link != NULL && !node_is_linked (&subscription->concerned))
        list_push_back (concerned, &subscription->concerned);
    (*left)--;
}

static void turn (node_t *head, node_t *node)
{
    list_unlink (node);
    list_push_back (head, node);
}

static void tell_wide (audience_t *audience, node_t *concerned, size_t *left)
{
    const node_t *last = audience->wide.prev;
    for (node_t *node = &audience->wide; node != last && *left > 0;) {
        node = list_first (&audience->wide);
        turn (&audience->wide, node);
        tell (LIST_ITEM (node, subscription_t, of_interest), concerned, left);
    }
}

static void tell_topic (const streams_t *self, const audience_t *audience, interest_t kind,
                        const void *name, size_t length, node_t *concerned, size_t *left)
{
    if (audience->interested[kind] == 0 || *left == 0)
        return;
    topic_t *topic = topic_find (audience, name_hash (self, kind, name, length));
    if (topic == NULL)
        return;
    const node_t *last = topic->members.prev;
    for (node_t *node = NULL; node != last && *left > 0;) {
        node = list_first (&topic->members);
        turn (&topic->members, node);
        tell (LIST_ITEM (node, watch_t, of_topic)->subscription, concerned, left);
    }
}

size_t interest_notice (const streams_t *self, const event_log_t *log, const record_t *record,
                        size_t max, node_t *concerned)
{
    audience_t *audience = log->audience;
    size_t left = max;
    if (audience == NULL)
        return 0;
    tell_topic (self, audience, INTEREST_TASKS, record->id.bytes, sizeof (record->id), concerned,
                &left);
    tell_topic (self, audience, INTEREST_SESSIONS, record->session, strlen (record->session),
                concerned, &left);
    tell_topic (self, audience, INTEREST_QUEUES, record->queue, strlen (record->queue), concerned,
                &left);
    tell_wide (audience, concerned, &left);
    return max - left;
}
