/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The simulated network. A link keeps its order, as TCP does; order across links is chance. What
 * was under way when a link is cut is lost from some point on. A client's message may vanish or
 * arrive twice, which TCP would not do, because every request must be safe to repeat; the broker's
 * messages do not vanish silently within a link: they are refused (and the engine is told) or the
 * link ends. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint8_t *copy_bytes (const uint8_t *bytes, size_t length)
{
    uint8_t *out = NULL;
    if (bytes != NULL && length > 0) {
        out = malloc (length);
        memcpy (out, bytes, length);
    }
    return out;
}

void packet_free (packet_t *packet)
{
    if (packet != NULL) {
        free (packet->envelope);
        free (packet->body);
        free (packet);
    }
}

static void queue_clear (packet_queue_t *queue)
{
    while (queue->head != NULL) {
        packet_t *next = queue->head->next;
        packet_free (queue->head);
        queue->head = next;
    }
    queue->tail = NULL;
}

/* Drops everything behind a random point. */
static void queue_cut (world_t *world, packet_queue_t *queue)
{
    packet_queue_t kept = {.last_due_ms = queue->last_due_ms};
    while (queue->head != NULL && !rng_chance (&world->rng, 300)) {
        packet_t *packet = queue->head;
        queue->head = packet->next;
        packet->next = NULL;
        if (kept.tail == NULL) {
            kept.head = packet;
        } else {
            kept.tail->next = packet;
        }
        kept.tail = packet;
    }
    queue_clear (queue);
    *queue = kept;
}

static void queue_push (wire_t *link, packet_queue_t *queue, uint8_t *envelope,
                        size_t envelope_bytes, uint8_t *body, size_t body_bytes)
{
    world_t *world = link->client->world;
    int64_t due = world->mono_ms;
    due += rng_between (&world->rng, 0, world->faults ? world->options.delay_ms_max : 1);
    due = due > link->stalled_until ? due : link->stalled_until;
    if (queue == &link->down && due < link->broker->frozen_until) {
        due =
            link->broker->frozen_until; /* it stood still between its look at the clock and this */
    }
    due = due > queue->last_due_ms ? due : queue->last_due_ms;
    queue->last_due_ms = due;
    packet_t *packet = calloc (1, sizeof *packet);
    *packet = (packet_t){.due_ms = due,
                         .envelope = envelope,
                         .envelope_bytes = envelope_bytes,
                         .body = body,
                         .body_bytes = body_bytes};
    if (queue->tail == NULL) {
        queue->head = packet;
    } else {
        queue->tail->next = packet;
    }
    queue->tail = packet;
}

static packet_t *queue_pop (packet_queue_t *queue, int64_t now_ms)
{
    packet_t *packet = queue->head;
    if (packet == NULL || packet->due_ms > now_ms) {
        return NULL;
    }
    queue->head = packet->next;
    if (queue->head == NULL) {
        queue->tail = NULL;
    }
    return packet;
}

wire_t *wire_open (client_t *client)
{
    world_t *world = client->world;
    wire_t *link = calloc (1, sizeof *link);
    link->peer = ++world->next_peer;
    link->client = client;
    link->broker = &world->brokers[client->endpoint];
    link->open_at_client = true;
    link->open_at_broker = true;
    client->newest = link->peer;
    link->next = world->links;
    world->links = link;
    return link;
}

wire_t *wire_find (world_t *world, peer_t peer)
{
    wire_t *link = world->links;
    while (link != NULL && link->peer != peer) {
        link = link->next;
    }
    return link;
}

void wire_send_up (wire_t *link, uint8_t *envelope, size_t envelope_bytes, uint8_t *body,
                   size_t body_bytes, bool may_repeat)
{
    world_t *world = link->client->world;
    bool lost = link->cut || !link->open_at_broker ||
                (may_repeat && sim_fault (world, world->options.lose));
    if (lost) {
        free (envelope);
        free (body);
        return;
    }
    if (may_repeat && sim_fault (world, world->options.repeat)) {
        queue_push (link, &link->up, copy_bytes (envelope, envelope_bytes), envelope_bytes,
                    copy_bytes (body, body_bytes), body_bytes);
    }
    queue_push (link, &link->up, envelope, envelope_bytes, body, body_bytes);
}

bool wire_send_down (wire_t *link, const output_t *output)
{
    world_t *world = link->client->world;
    /* The transport may know of an end before or after the broker is told. */
    bool ended = link->cut && !link->open_at_client && rng_chance (&world->rng, 500);
    if (!link->open_at_broker || ended || sim_fault (world, world->options.refuse)) {
        link->refused = true;
        return false;
    }
    if (!link->cut && link->open_at_client) {
        queue_push (link, &link->down, copy_bytes (output->envelope, output->envelope_bytes),
                    output->envelope_bytes,
                    copy_bytes (buf_bytes (output->body), buf_length (output->body)),
                    buf_length (output->body));
    }
    return true;
}

packet_t *wire_receive_up (wire_t *link)
{
    return queue_pop (&link->up, link->client->world->mono_ms);
}

packet_t *wire_receive_down (wire_t *link)
{
    return queue_pop (&link->down, link->client->world->mono_ms);
}

static int64_t some_time_ahead (world_t *world, int64_t most_ms)
{
    return world->mono_ms + rng_between (&world->rng, 1, most_ms);
}

void wire_close (wire_t *link)
{
    link->open_at_client = false;
    link->cut = true;
    queue_clear (&link->down);
    link->broker_notices_at = some_time_ahead (link->client->world, 50);
    link->broker_is_told = !sim_fault (link->client->world, 300);
}

void wire_cut (wire_t *link)
{
    world_t *world = link->client->world;
    link->cut = true;
    queue_cut (world, &link->up);
    queue_cut (world, &link->down);
    link->client_notices_at = some_time_ahead (world, 3000);
    link->broker_notices_at = some_time_ahead (world, 3000);
    link->broker_is_told = !sim_fault (world, 500);
}

void network_broker_gone (world_t *world)
{
    for (wire_t *link = world->links; link != NULL; link = link->next) {
        if (link->open_at_broker && link->broker == world->broker) {
            link->open_at_broker = false;
            link->cut = true;
            queue_clear (&link->up);
            queue_cut (world, &link->down);
            link->client_notices_at = some_time_ahead (world, 200);
        }
    }
}

void network_faults (world_t *world)
{
    for (wire_t *link = world->links; link != NULL; link = link->next) {
        if (link->cut) {
            continue;
        }
        if (sim_fault (world, world->options.cut)) {
            wire_cut (link);
        } else if (sim_fault (world, world->options.stall)) {
            link->stalled_until = some_time_ahead (world, 12000);
        }
    }
}

static void tell_gone (world_t *world, const wire_t *link)
{
    broker_t *turn = world->broker;
    world->broker = link->broker;
    engine_peer_gone (link->broker->engine, link->peer, broker_now (world));
    check_gone (link);
    world->broker->tick_wanted = true;
    world->broker = turn;
}

void network_sweep (world_t *world)
{
    wire_t **at = &world->links;
    while (*at != NULL) {
        wire_t *link = *at;
        if (link->cut && link->open_at_client && link->down.head == NULL &&
            world->mono_ms >= link->client_notices_at) {
            link->open_at_client = false;
        }
        if (link->cut && link->open_at_broker && link->up.head == NULL &&
            world->mono_ms >= link->broker_notices_at) {
            link->open_at_broker = false;
            if (link->broker_is_told && link->broker->engine != NULL) {
                tell_gone (world, link);
            }
        }
        if (!link->open_at_client && !link->open_at_broker && link->client->link != link) {
            *at = link->next;
            queue_clear (&link->up);
            queue_clear (&link->down);
            free (link);
        } else {
            at = &link->next;
        }
    }
}

static int64_t earlier (int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t network_next_ms (const world_t *world)
{
    int64_t next = SIM_END_OF_TIME;
    for (const wire_t *link = world->links; link != NULL; link = link->next) {
        if (link->down.head != NULL) {
            next = earlier (next, link->down.head->due_ms);
        }
        if (link->up.head != NULL) {
            int64_t due = link->up.head->due_ms;
            int64_t frozen = link->broker->frozen_until;
            next = earlier (next, due > frozen ? due : frozen);
        }
        if (link->cut && link->open_at_client && link->down.head == NULL) {
            next = earlier (next, link->client_notices_at);
        }
        if (link->cut && link->open_at_broker && link->up.head == NULL) {
            next = earlier (next, link->broker_notices_at);
        }
    }
    return next;
}

void network_free (world_t *world)
{
    while (world->links != NULL) {
        wire_t *next = world->links->next;
        queue_clear (&world->links->up);
        queue_clear (&world->links->down);
        free (world->links);
        world->links = next;
    }
}
