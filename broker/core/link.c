/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Links: hello and welcome, the token that every message shows, heartbeats, silence, and the grace
 * after a hint that the connection ended (A38, A39).
 *
 * There is an object for every peer that an answer has to reach; it is an established link only
 * after a hello, and freed at once when it is neither that nor referred to. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_private.h"

/* The table. */

static uint32_t peer_hash (const engine_t *self, peer_t peer)
{
    uint8_t key[16] = {0};
    memcpy (key, &peer, sizeof (peer));
    return secrets_hash_id (&self->secrets, 0, key);
}

link_t *link_find (const engine_t *self, peer_t peer)
{
    uint32_t hash = peer_hash (self, peer);
    size_t cursor = MAP_START;
    link_t *link = map_next (&self->links, hash, &cursor);
    while (link != NULL && link->peer != peer)
        link = map_next (&self->links, hash, &cursor);
    return link;
}

link_t *link_make (engine_t *self, peer_t peer)
{
    link_t *link = link_find (self, peer);
    if (link != NULL)
        return link;
    link = memory_zero (1, sizeof (*link));
    link->peer = peer;
    link->alarm.kind = ALARM_LINK;
    list_init (&link->ready);
    list_init (&link->subscriptions);
    list_init (&link->streams);
    list_init (&link->workers);
    list_init (&link->waits);
    map_insert (&self->links, peer_hash (self, peer), link);
    return link;
}

void link_free_if_idle (engine_t *self, link_t *link)
{
    if (link->established || link->references > 0 || !list_is_empty (&link->ready))
        return;
    if (!link->dead)
        map_remove (&self->links, peer_hash (self, link->peer), link);
    list_remove (&link->output);
    map_free (&link->subscriptions_by_id);
    free (link);
}

void link_unreference (engine_t *self, link_t *link)
{
    assert (link->references > 0);
    link->references--;
    link_free_if_idle (self, link);
}

/* The end. */

static void close_workers (engine_t *self, link_t *link, bool goodbye)
{
    for (node_t *node = list_first (&link->workers); node != NULL;
         node = list_first (&link->workers)) {
        worker_t *worker = LIST_ITEM (node, worker_t, of_link);
        worker_detach (self, worker);
        if (goodbye)
            worker_drop_leases (self, worker, false, "the worker said goodbye");
        worker_release (self, worker);
    }
}

static void close_reads (engine_t *self, link_t *link)
{
    for (node_t *node = list_first (&link->subscriptions); node != NULL;
         node = list_first (&link->subscriptions))
        stream_close (self, LIST_ITEM (node, subscription_t, of_link));
    for (node_t *node = list_first (&link->waits); node != NULL; node = list_first (&link->waits))
        wait_drop (self, LIST_ITEM (node, wait_t, node));
}

/* Its subscriptions and waits end. Leases are given back only after a goodbye: otherwise the worker
 * may come back with them until they end. */
static void end (engine_t *self, link_t *link, bool goodbye)
{
    assert (!link->dead);
    map_remove (&self->links, peer_hash (self, link->peer), link);
    link->dead = true;
    link->silenced = !goodbye;
    alarm_disarm (&link->alarm);
    close_reads (self, link);
    close_workers (self, link, goodbye);
    if (!goodbye)
        release_drop_items (self, link);
    if (!link->established)
        return;
    link->established = false;
    self->established--;
    names_drop (&self->names, link->identity);
    link->identity = NULL;
    link->space->links--;
    space_release (self, link->space);
    link->space = NULL;
}

void link_close (engine_t *self, link_t *link)
{
    end (self, link, false);
    link_free_if_idle (self, link);
}

static void workers_changed (engine_t *self, link_t *link)
{
    for (node_t *node = link->workers.next; node != &link->workers; node = node->next)
        dispatch_worker_changed (self, LIST_ITEM (node, worker_t, of_link));
}

/* The workers stay with it: the hint that their connection ended may have come already or come
 * later, and gives their leases back either way. */
void link_lose (engine_t *self, link_t *link)
{
    if (!link->established) {
        link_close (self, link);
        return;
    }
    link->lost = true;
    close_reads (self, link);
    release_drop_items (self, link);
    workers_changed (self, link);
}

/* Hearing from it. */

static int64_t silence_ms (const engine_t *self)
{
    return (int64_t) self->config.heartbeat_ms * TMQ_HEARTBEATS_MISSED_MAX;
}

void link_heard (engine_t *self, link_t *link)
{
    link->heard = self->mono;
    if (!link->established)
        return;
    bool changed = link->silent || link->stalled || link->suspect || link->gone_due != 0;
    if (link->gone_due != 0 || link->silent)
        wheel_arm (&self->fine, &link->alarm, self->mono + silence_ms (self));
    link->silent = link->stalled = link->suspect = false;
    link->gone_due = 0;
    if (!changed)
        return;
    workers_changed (self, link);
    for (node_t *node = link->subscriptions.next; node != &link->subscriptions; node = node->next)
        stream_wake (self, LIST_ITEM (node, subscription_t, of_link));
}

/* Silence, or the end of the grace. A silent link has no alarm: its next message ends the silence,
 * its leases end by themselves, and its connection's end brings the hint. */
void link_alarm (engine_t *self, link_t *link)
{
    if (link->gone_due != 0 && link->gone_due > self->mono) {
        wheel_arm (&self->fine, &link->alarm, link->gone_due);
    } else if (link->gone_due != 0) {
        for (node_t *node = list_first (&link->workers); node != NULL;
             node = list_first (&link->workers)) {
            worker_t *worker = LIST_ITEM (node, worker_t, of_link);
            worker_detach (self, worker);
            worker_drop_leases (self, worker, true, "the worker's connection ended");
            worker_release (self, worker);
        }
        link_close (self, link);
    } else if (link->heard + silence_ms (self) > self->mono) {
        wheel_arm (&self->fine, &link->alarm, link->heard + silence_ms (self));
    } else {
        link->silent = true;
        workers_changed (self, link);
    }
}

void engine_peer_gone (engine_t *self, peer_t peer, now_t now)
{
    engine_clock (self, now);
    link_t *link = link_find (self, peer);
    if (link == NULL || !link->established)
        return;
    link->gone_due = self->mono + self->config.gone_grace_ms;
    wheel_arm (&self->fine, &link->alarm, link->gone_due);
    workers_changed (self, link);
}

bool link_token_is (const link_t *link, const ProtobufCBinaryData *token)
{
    return link->established && !link->lost && token->len == sizeof (link->token) &&
           sodium_memcmp (token->data, link->token, sizeof (link->token)) == 0;
}

/* Requests. */

static void send_welcome (call_t *call)
{
    engine_t *self = call->engine;
    link_t *link = call->link;
    Taskmq__Welcome welcome = TASKMQ__WELCOME__INIT;
    welcome.version = TMQ_PROTOCOL_VERSION;
    welcome.token = (ProtobufCBinaryData){sizeof (link->token), link->token};
    welcome.namespace_ = link->space->name;
    welcome.identity = (char *) name_text (link->identity);
    welcome.broker = (char *) self->config.broker;
    welcome.generation = self->generation;
    welcome.epoch = self->epoch;
    welcome.seq = link->space->durable_seq;
    welcome.heartbeat_ms = self->config.heartbeat_ms;
    welcome.envelope_bytes_max = TMQ_ENVELOPE_BYTES_MAX;
    welcome.frame_bytes_max = TMQ_FRAME_BYTES_MAX;
    welcome.submit_items_max = TMQ_SUBMIT_ITEMS_MAX;
    welcome.wait_ids_max = TMQ_WAIT_IDS_MAX;
    welcome.now = (uint64_t) self->wall;
    bytes_mark_t mark;
    bytes_t *out = reply_open (self, call->request->id, TMQ_OK, NULL, 0, false, &mark);
    bytes_append_message (out, TASKMQ__REPLY__BODY_WELCOME, &welcome.base);
    reply_close (self, link, mark, 0, NULL); /* says nothing that is not durable */
}

void on_hello (call_t *call)
{
    engine_t *self = call->engine;
    const Taskmq__Hello *hello = call->request->hello;
    if (hello->version_min > TMQ_PROTOCOL_VERSION || hello->version_max < TMQ_PROTOCOL_VERSION) {
        reply_code_at_once (call, TMQ_UNSUPPORTED, "this broker speaks protocol version 1", 0);
        return;
    }
    if (self->stopping) {
        reply_code_at_once (call, TMQ_STOPPING, NULL, 0);
        return;
    }
    if (!call->link->established && self->established >= self->config.links_max) {
        reply_code_at_once (call, TMQ_LIMIT, "the broker has as many links as it may have",
                            FULL_RETRY_MS);
        return;
    }
    if (call->link->established) {
        peer_t peer = call->link->peer;
        link_close (self, call->link);
        call->link = link_make (self, peer);
    }
    link_t *link = call->link;
    const char *name = hello->namespace_[0] == '\0' ? "default" : hello->namespace_;
    link->established = true;
    self->established++;
    link->space = space_make (self, name);
    link->space->links++;
    link->identity = names_keep (&self->names, call->identity);
    link->heard = self->mono;
    link->serial = ++self->hellos;
    secrets_take (&self->secrets, link->token, sizeof (link->token));
    wheel_arm (&self->fine, &link->alarm, self->mono + silence_ms (self));
    send_welcome (call);
}

void on_goodbye (call_t *call)
{
    engine_t *self = call->engine;
    link_t *link = call->link;
    end (self, link, true); /* what waits to leave for it still does */
    reply_code (call, TMQ_OK, NULL);
}

void on_heartbeat (call_t *call)
{
    reply_code_at_once (call, TMQ_OK, NULL, 0);
}
