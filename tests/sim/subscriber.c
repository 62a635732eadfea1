/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A subscriber with a cursor that it stores now and then. A crash takes it back to what it stored,
 * a new connection goes on where it stood. It may stop reading for a while. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum {
    KEPT_MAX = 1024 /* messages that a stalled application has not taken */
};

typedef struct kept {
    Taskmq__EventList *list;
    uint64_t upto;
} kept_t;

typedef struct subscriber {
    uint64_t stored; /* survives a crash */
    bool has_stored;
    uint64_t taken; /* by the application */
    bool has_taken;
    uint64_t arrived;      /* taken, or kept for it */
    uint64_t acknowledged; /* told to the broker */
    uint64_t first;        /* cursor with which this subscription began */
    uint64_t subscription; /* its number on the present link */
    bool subscribed;
    const char *queue; /* filter, or NULL */
    bool mirrors;      /* begins with a snapshot and follows the state of all tasks */
    bool mirrored;     /* the snapshot is complete */
    uint32_t snapshot_messages;
    mirror_t mirror;
    mirror_t stored_mirror; /* beside the stored cursor */
    bool thrifty;           /* gives credit only for half a window, as the library does */
    size_t taken_bytes;     /* since the last credit */
    int64_t stalled_until;
    int64_t credit_ms;
    kept_t kept[KEPT_MAX];
    size_t kept_count;
} subscriber_t;

static void forget_kept (subscriber_t *subscriber)
{
    for (size_t i = 0; i < subscriber->kept_count; i++) {
        taskmq__event_list__free_unpacked (subscriber->kept[i].list, NULL);
    }
    subscriber->kept_count = 0;
    subscriber->arrived = subscriber->taken;
}

static void subscriber_start (client_t *client)
{
    if (client->state == NULL) {
        subscriber_t *fresh = calloc (1, sizeof *fresh);
        fresh->queue = rng_chance (&client->world->rng, 300) ? "red" : NULL;
        fresh->mirrors = rng_chance (&client->world->rng, 300);
        fresh->thrifty = rng_chance (&client->world->rng, 300);
        client->state = fresh;
    }
    subscriber_t *subscriber = client->state;
    subscriber->taken = subscriber->stored;
    subscriber->has_taken = subscriber->has_stored;
    subscriber->mirrored = subscriber->has_stored;
    subscriber->mirror = subscriber->stored_mirror;
    subscriber->arrived = subscriber->taken;
    subscriber->subscription = 0;
}

static void subscriber_stop (client_t *client)
{
    if (client->state != NULL) {
        forget_kept (client->state);
    }
}

static void subscriber_linked (client_t *client)
{
    subscriber_t *subscriber = client->state;
    world_t *world = client->world;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    char *queues[1];
    forget_kept (subscriber);
    subscriber->subscribed = false;
    subscribe.subscription = ++subscriber->subscription;
    subscribe.filter = &filter;
    if (subscriber->queue != NULL) {
        queues[0] = (char *) (uintptr_t) subscriber->queue;
        filter.queues = queues;
        filter.n_queues = 1;
    }
    if (subscriber->mirrors && !subscriber->mirrored) {
        subscriber->mirror = (mirror_t){0};
        subscriber->has_taken = false; /* begin anew */
    }
    if (subscriber->has_taken) {
        subscribe.generation = client->generation;
        subscribe.after_seq = subscriber->taken;
    } else {
        subscribe.from_now = rng_chance (&world->rng, 500);
        subscribe.snapshot = subscriber->mirrors;
    }
    request.op_case = TASKMQ__REQUEST__OP_SUBSCRIBE;
    request.subscribe = &subscribe;
    uint64_t mark = check_told_mark (world, client->ns);
    client_request (client, &request, NULL, 0)->context = subscribe.from_now ? mark : 0;
}

static void subscriber_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                              const uint8_t *body, size_t body_bytes)
{
    subscriber_t *subscriber = client->state;
    world_t *world = client->world;
    (void) body;
    (void) body_bytes;
    if (pending->op != TASKMQ__REQUEST__OP_SUBSCRIBE) {
        return;
    }
    if (reply->code != TMQ_OK || reply->subscribed == NULL) {
        sim_fail (world, "subscriber %u: subscribe after %llu is answered %u %s", client->index,
                  (unsigned long long) subscriber->taken, reply->code, reply->text);
        return;
    }
    uint64_t seq = reply->subscribed->seq;
    check_from_now (world, client->ns, pending->context, seq);
    if (subscriber->has_taken && seq != subscriber->taken) {
        sim_fail (world, "I7: subscriber %u asked for events after %llu, it starts after %llu",
                  client->index, (unsigned long long) subscriber->taken, (unsigned long long) seq);
        return;
    }
    if (seq > model_log (&world->model->durable, client->ns)->events_count) {
        sim_fail (world, "I7: a cursor %llu beyond what is durable", (unsigned long long) seq);
        return;
    }
    subscriber->taken = seq;
    subscriber->arrived = seq;
    subscriber->acknowledged = seq;
    subscriber->first = seq;
    subscriber->taken_bytes = 0;
    subscriber->snapshot_messages = 0;
    subscriber->has_taken = true;
    subscriber->subscribed = true;
}

/* Events. */

static void take_kept (client_t *client)
{
    subscriber_t *subscriber = client->state;
    for (size_t i = 0; i < subscriber->kept_count; i++) {
        const Taskmq__EventList *list = subscriber->kept[i].list;
        for (size_t k = 0; subscriber->mirrors && k < list->n_events; k++) {
            const Taskmq__Event *event = list->events[k];
            mirror_take (client->world, &subscriber->mirror, event->task_id.data, event->seq,
                         event->status);
        }
        subscriber->taken = subscriber->kept[i].upto;
        taskmq__event_list__free_unpacked (subscriber->kept[i].list, NULL);
    }
    subscriber->kept_count = 0;
    bool whole = !subscriber->mirrors || subscriber->mirrored;
    if (whole && rng_chance (&client->world->rng, 300)) {
        subscriber->stored_mirror = subscriber->mirror;
        subscriber->stored = subscriber->taken;
        subscriber->has_stored = true;
    }
}

static void give_credit (client_t *client)
{
    subscriber_t *subscriber = client->state;
    Taskmq__Credit credit = TASKMQ__CREDIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    credit.subscription = subscriber->subscription;
    credit.received_upto = subscriber->acknowledged;
    credit.snapshot_messages = subscriber->snapshot_messages;
    request.op_case = TASKMQ__REQUEST__OP_CREDIT;
    request.credit = &credit;
    client_tell (client, &request);
}

static void keep (client_t *client, const Taskmq__EventBatch *batch, const uint8_t *body)
{
    subscriber_t *subscriber = client->state;
    world_t *world = client->world;
    Taskmq__EventList *list = taskmq__event_list__unpack (NULL, batch->list_bytes, body);
    if (list == NULL || list->n_events != batch->count) {
        sim_fail (world, "subscriber %u: %u events announced, %zu came", client->index,
                  batch->count, list == NULL ? 0 : list->n_events);
        taskmq__event_list__free_unpacked (list, NULL);
        return;
    }
    uint64_t from = subscriber->arrived;
    if (list->n_events > 0 && list->events[0]->seq <= from && client->link->refused) {
        /* The stream fell back to the newest credit that came through (A49). What is here
         * already is dropped, but looked at. */
        from = list->events[0]->seq - 1;
        if (from < subscriber->first) {
            sim_fail (world, "I7: subscriber %u: event %llu, asked was what follows %llu",
                      client->index, (unsigned long long) from + 1,
                      (unsigned long long) subscriber->first);
        }
    }
    if (batch->upto < subscriber->arrived && !client->link->refused) {
        sim_fail (world, "I7: subscriber %u: upto %llu after %llu", client->index,
                  (unsigned long long) batch->upto, (unsigned long long) subscriber->arrived);
    }
    if (batch->upto >= from) {
        check_events (world, client->ns, subscriber->queue, from, batch->upto, list);
    }
    if (batch->upto <= subscriber->arrived) {
        taskmq__event_list__free_unpacked (list, NULL);
        return;
    }
    subscriber->arrived = batch->upto;
    check_told (world, client->ns, batch->upto);
    subscriber->taken_bytes += batch->list_bytes;
    if (subscriber->kept_count == KEPT_MAX) {
        sim_fail (world, "subscriber %u: %d messages without credit", client->index, KEPT_MAX);
        taskmq__event_list__free_unpacked (list, NULL);
        return;
    }
    subscriber->kept[subscriber->kept_count++] = (kept_t){list, batch->upto};
}

static void take_snapshot (client_t *client, const Taskmq__Snapshot *snapshot)
{
    subscriber_t *subscriber = client->state;
    if (subscriber->mirrored || !subscriber->mirrors || !subscriber->subscribed) {
        sim_fail (client->world, "subscriber %u: a snapshot that nobody asked for", client->index);
        return;
    }
    for (size_t i = 0; i < snapshot->n_tasks; i++) {
        const Taskmq__Task *task = snapshot->tasks[i];
        mirror_take (client->world, &subscriber->mirror, task->task_id.data, task->seq,
                     task->status);
    }
    subscriber->mirrored = snapshot->last;
    subscriber->snapshot_messages++;
    give_credit (client);
}

static void take_batch (client_t *client, const Taskmq__EventBatch *batch, const uint8_t *body)
{
    const subscriber_t *subscriber = client->state;
    if (!subscriber->subscribed || (subscriber->mirrors && !subscriber->mirrored)) {
        sim_fail (client->world, "subscriber %u: events before the answer or its snapshot",
                  client->index);
        return;
    }
    keep (client, batch, body);
}

static void subscriber_message (client_t *client, const Taskmq__BrokerMessage *message,
                                const uint8_t *body, size_t body_bytes)
{
    subscriber_t *subscriber = client->state;
    if (message->gap != NULL) {
        sim_fail (client->world, "I7: a gap %llu..%llu though nothing was removed",
                  (unsigned long long) message->gap->from, (unsigned long long) message->gap->to);
    }
    if (message->snapshot != NULL && message->snapshot->subscription == subscriber->subscription) {
        take_snapshot (client, message->snapshot);
    }
    for (size_t i = 0; i < message->n_events; i++) {
        const Taskmq__EventBatch *batch = message->events[i];
        if (batch->list_bytes > body_bytes) {
            sim_fail (client->world, "a batch longer than its frame");
            return;
        }
        if (batch->subscription == subscriber->subscription) {
            take_batch (client, batch, body);
        }
        body += batch->list_bytes;
        body_bytes -= batch->list_bytes;
    }
}

static void subscriber_tick (client_t *client)
{
    subscriber_t *subscriber = client->state;
    world_t *world = client->world;
    client->next_ms = world->mono_ms + rng_between (&world->rng, 5, 100);
    if (!subscriber->subscribed || (world->faults && world->mono_ms < subscriber->stalled_until)) {
        return;
    }
    if (sim_fault (world, 10)) {
        subscriber->stalled_until = world->mono_ms + rng_between (&world->rng, 100, 10000);
        return;
    }
    take_kept (client);
    bool enough = subscriber->thrifty ? subscriber->taken_bytes >= TMQ_SUBSCRIPTION_WINDOW_BYTES / 2
                                      : subscriber->taken > subscriber->acknowledged;
    if (enough) {
        subscriber->acknowledged = subscriber->taken;
        subscriber->taken_bytes = 0;
    }
    if (enough || world->mono_ms >= subscriber->credit_ms) {
        subscriber->credit_ms = world->mono_ms + 2000; /* a credit may get lost */
        give_credit (client);
    }
}

uint64_t subscriber_upto (const client_t *client)
{
    const subscriber_t *subscriber = client->state;
    if (subscriber == NULL || (subscriber->mirrors && !subscriber->mirrored)) {
        return 0; /* its snapshot has not come whole */
    }
    return subscriber->taken;
}

void subscriber_check (client_t *client)
{
    const subscriber_t *subscriber = client->state;
    if (subscriber != NULL && subscriber->mirrors) { /* a story may end before it began */
        mirror_check (client->world, &subscriber->mirror, client, subscriber->queue);
    }
}

const actor_t subscriber_actor = {.name = "subscriber",
                                  .start = subscriber_start,
                                  .stop = subscriber_stop,
                                  .linked = subscriber_linked,
                                  .tick = subscriber_tick,
                                  .reply = subscriber_reply,
                                  .message = subscriber_message};
