/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Which subscriptions an event concerns, so that ten thousand of them cost an event no more than
 * one.
 *
 * A subscription is found under the most telling thing that its filter names: its tasks, else its
 * sessions, else its queues. Each such name is a topic; an event looks up its own task, session and
 * queue once. Topics know names by their keyed hash only: that two names share a topic wakes a
 * subscription in vain, and its filter decides anyway. A filter that names none of the three is
 * wide: it is asked about every event.
 *
 * Who is at the end of what is durable has `match_seq` at or before its cursor. When something that
 * may match becomes durable, its cursor is set right before it, and what lies between was never
 * looked at. One that is behind for another reason (`match_seq` UINT64_MAX) looks at everything
 * until it is at the end. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

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

/* Names. */

static uint32_t name_hash (const engine_t *self, interest_t kind, const void *name, size_t length)
{
    uint8_t key[1 + TMQ_NAME_LENGTH_MAX] = {(uint8_t) kind};
    if (length > TMQ_NAME_LENGTH_MAX)
        length = TMQ_NAME_LENGTH_MAX;
    if (length > 0)
        memcpy (key + 1, name, length);
    return secrets_hash (&self->secrets, key, 1 + length);
}

static topic_t *topic_find (const space_t *space, uint32_t hash)
{
    size_t cursor = MAP_START;
    return map_next (&space->topics, hash, &cursor);
}

/* Subscriptions come and go. */

static void watch_name (engine_t *self, subscription_t *subscription, const void *name,
                        size_t length)
{
    space_t *space = subscription->space;
    uint32_t hash = name_hash (self, subscription->interest, name, length);
    topic_t *topic = topic_find (space, hash);
    for (size_t i = 0; i < subscription->watches_count; i++)
        if (subscription->watches[i].topic == topic)
            return; /* named twice */
    if (topic == NULL) {
        topic = memory_zero (1, sizeof (*topic));
        topic->hash = hash;
        list_init (&topic->members);
        map_insert (&space->topics, hash, topic);
    }
    watch_t *watch = &subscription->watches[subscription->watches_count++];
    *watch = (watch_t){.topic = topic, .subscription = subscription};
    list_push_back (&topic->members, &watch->of_topic);
}

static void watch_texts (engine_t *self, subscription_t *subscription, const char *const *texts,
                         size_t count)
{
    subscription->watches = memory_alloc (count * sizeof (watch_t));
    for (size_t i = 0; i < count; i++)
        watch_name (self, subscription, texts[i], strlen (texts[i]));
}

void interest_add (engine_t *self, subscription_t *subscription)
{
    const filter_copy_t *filter = subscription->filter;
    space_t *space = subscription->space;
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
        list_push_back (&space->wide, &subscription->of_interest);
    }
    space->interested[subscription->interest]++;
}

void interest_remove (subscription_t *subscription)
{
    space_t *space = subscription->space;
    list_remove (&subscription->of_interest);
    space->interested[subscription->interest]--;
    for (size_t i = 0; i < subscription->watches_count; i++) {
        topic_t *topic = subscription->watches[i].topic;
        list_unlink (&subscription->watches[i].of_topic);
        if (!list_is_empty (&topic->members))
            continue;
        map_remove (&space->topics, topic->hash, topic);
        free (topic);
    }
    free (subscription->watches);
    if (space->topics.count == 0)
        map_free (&space->topics);
}

/* What became durable. */

static void touch (const engine_t *self, const space_t *space, interest_t kind, const void *name,
                   size_t length, uint64_t seq, hint_t hint, node_t *touched)
{
    if (space->interested[kind] == 0)
        return;
    topic_t *topic = topic_find (space, name_hash (self, kind, name, length));
    if (topic == NULL)
        return;
    if (!node_is_linked (&topic->touched)) {
        list_push_back (touched, &topic->touched);
        topic->first_seq = seq;
        topic->hint = hint;
    }
    topic->last_seq = seq;
}

static void touch_block (const engine_t *self, const space_t *space, const ring_block_t *block,
                         node_t *touched)
{
    const uint8_t *begin = buf_bytes (block->list);
    const uint8_t *at = begin;
    const uint8_t *end = begin + buf_length (block->list);
    scanned_t event;
    while (scan_event (&at, end, &event)) {
        hint_t hint = {block->first_seq, (size_t) (event.element - begin)};
        if (event.id != NULL)
            touch (self, space, INTEREST_TASKS, event.id, sizeof (tmq_id_t), event.seq, hint,
                   touched);
        touch (self, space, INTEREST_SESSIONS, event.session, event.session_bytes, event.seq, hint,
               touched);
        touch (self, space, INTEREST_QUEUES, event.queue, event.queue_bytes, event.seq, hint,
               touched);
    }
}

/* Blocks that are not durable yet stay in the ring, so all of these are there. */
static void touch_since (const engine_t *self, const space_t *space, uint64_t after_seq,
                         node_t *touched)
{
    const node_t *first = &space->blocks;
    while (first->prev != &space->blocks &&
           LIST_ITEM (first->prev, const ring_block_t, in_space)->first_seq > after_seq)
        first = first->prev;
    for (const node_t *node = first; node != &space->blocks; node = node->next) {
        const ring_block_t *block = LIST_ITEM (node, const ring_block_t, in_space);
        if (block->first_seq > space->durable_seq)
            return;
        touch_block (self, space, block, touched);
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
static void wake (engine_t *self, subscription_t *subscription)
{
    if (!subscription->held)
        stream_wake (self, subscription);
}

void interest_advance (engine_t *self, space_t *space, uint64_t after_seq)
{
    for (node_t *node = space->wide.next; node != &space->wide; node = node->next)
        wake (self, LIST_ITEM (node, subscription_t, of_interest));
    if (space->topics.count == 0)
        return;
    node_t touched;
    list_init (&touched);
    touch_since (self, space, after_seq, &touched);
    for (node_t *node = list_pop_front (&touched); node != NULL; node = list_pop_front (&touched)) {
        topic_t *topic = LIST_ITEM (node, topic_t, touched);
        for (node_t *at = topic->members.next; at != &topic->members; at = at->next) {
            subscription_t *subscription = LIST_ITEM (at, watch_t, of_topic)->subscription;
            take_hit (subscription, topic);
            wake (self, subscription);
        }
    }
    for (node_t *node = list_pop_front (&space->resting); node != NULL;
         node = list_pop_front (&space->resting))
        stream_wait_for_upto (self, LIST_ITEM (node, subscription_t, of_interest));
}

void interest_rest (subscription_t *subscription)
{
    if (!node_is_linked (&subscription->of_interest))
        list_push_back (&subscription->space->resting, &subscription->of_interest);
}

/* Notices. */

static void tell_topic (engine_t *self, const space_t *space, interest_t kind, const void *name,
                        size_t length, const record_t *record)
{
    if (space->interested[kind] == 0)
        return;
    topic_t *topic = topic_find (space, name_hash (self, kind, name, length));
    if (topic == NULL)
        return;
    for (node_t *node = topic->members.next; node != &topic->members; node = node->next)
        stream_notice (self, LIST_ITEM (node, watch_t, of_topic)->subscription, record);
}

void interest_notice (engine_t *self, space_t *space, const record_t *record)
{
    for (node_t *node = space->wide.next; node != &space->wide; node = node->next)
        stream_notice (self, LIST_ITEM (node, subscription_t, of_interest), record);
    tell_topic (self, space, INTEREST_TASKS, record->id.bytes, sizeof (record->id), record);
    tell_topic (self, space, INTEREST_SESSIONS, record->session, strlen (record->session), record);
    tell_topic (self, space, INTEREST_QUEUES, record->queue, strlen (record->queue), record);
}
