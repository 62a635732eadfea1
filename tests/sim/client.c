/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What every simulated client does: connect, hello, heartbeats, requests that are repeated with
 * the same request id until they are answered, reconnects. The deeds are the actors'. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum {
    RETRY_MS = 8000,  /* a request without an answer is repeated then */
    SILENT_MS = 7000, /* a broker that was not heard for this long is gone */
    AWAY_MS_MAX = 20000
};

void client_init (world_t *world, const actor_t *actor, const char *ns, const char *identity)
{
    client_t *client = &world->clients[world->clients_count];
    *client = (client_t){.world = world,
                         .index = world->clients_count,
                         .actor = actor,
                         .ns = ns,
                         .identity = identity,
                         .status = CLIENT_DOWN};
    world->clients_count++;
}

static void pending_free (pending_t *pending)
{
    free (pending->request);
    free (pending->body);
    free (pending->data);
    free (pending);
}

static void forget_all (client_t *client)
{
    while (client->pending != NULL) {
        pending_t *next = client->pending->next;
        pending_free (client->pending);
        client->pending = next;
    }
}

/* Sending. */

/* A request that the broker must see at most once on one connection, and in its place. */
static bool is_positional (Taskmq__Request__OpCase op)
{
    return op == TASKMQ__REQUEST__OP_HELLO || op == TASKMQ__REQUEST__OP_REGISTER ||
           op == TASKMQ__REQUEST__OP_SUBSCRIBE || op == TASKMQ__REQUEST__OP_UNSUBSCRIBE ||
           op == TASKMQ__REQUEST__OP_WORKER_CREDIT || op == TASKMQ__REQUEST__OP_LEAVE;
}

static void send_message (client_t *client, Taskmq__Request **requests, size_t count,
                          const uint8_t *body, size_t body_bytes)
{
    Taskmq__ClientMessage message = TASKMQ__CLIENT_MESSAGE__INIT;
    bool may_repeat = true;
    message.requests = requests;
    message.n_requests = count;
    if (client->status == CLIENT_LINKED) {
        message.token.data = client->token;
        message.token.len = sizeof client->token;
    }
    for (size_t i = 0; i < count; i++) {
        may_repeat = may_repeat && !is_positional (requests[i]->op_case) &&
                     requests[i]->op_case != TASKMQ__REQUEST__OP_WAIT;
    }
    size_t bytes = taskmq__client_message__get_packed_size (&message);
    uint8_t *packed = malloc (bytes);
    taskmq__client_message__pack (&message, packed);
    uint8_t *copy = NULL;
    if (body_bytes > 0) {
        copy = malloc (body_bytes);
        memcpy (copy, body, body_bytes);
    }
    wire_send_up (client->link, packed, bytes, copy, body_bytes, may_repeat);
}

static void send_pending (client_t *client, pending_t *pending)
{
    Taskmq__Request *request =
        taskmq__request__unpack (NULL, pending->request_bytes, pending->request);
    send_message (client, &request, 1, pending->body, pending->body_bytes);
    taskmq__request__free_unpacked (request, NULL);
    pending->sent = true;
    pending->refused = false;
    pending->sent_ms = client->world->mono_ms;
}

pending_t *client_request (client_t *client, Taskmq__Request *request, const void *body,
                           size_t body_bytes)
{
    uint8_t request_id[16];
    rng_fill (&client->world->rng, request_id, sizeof request_id);
    request->id = ++client->next_request;
    request->request_id.data = request_id;
    request->request_id.len = sizeof request_id;
    pending_t *pending = calloc (1, sizeof *pending);
    pending->id = request->id;
    pending->op = request->op_case;
    pending->request_bytes = taskmq__request__get_packed_size (request);
    pending->request = malloc (pending->request_bytes);
    taskmq__request__pack (request, pending->request);
    if (body_bytes > 0) {
        pending->body = malloc (body_bytes);
        memcpy (pending->body, body, body_bytes);
        pending->body_bytes = body_bytes;
    }
    pending_t **at = &client->pending;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = pending;
    if (client->status == CLIENT_LINKED || pending->op == TASKMQ__REQUEST__OP_HELLO) {
        send_pending (client, pending);
    }
    return pending;
}

uint64_t client_tell (client_t *client, Taskmq__Request *request)
{
    if (client->status == CLIENT_LINKED) {
        uint8_t request_id[16];
        rng_fill (&client->world->rng, request_id, sizeof request_id);
        request->id = ++client->next_request;
        request->request_id.data = request_id;
        request->request_id.len = sizeof request_id;
        send_message (client, &request, 1, NULL, 0);
    }
    return request->id;
}

size_t client_open (const client_t *client)
{
    size_t count = 0;
    for (const pending_t *pending = client->pending; pending != NULL; pending = pending->next) {
        count++;
    }
    return count;
}

/* Connections. */

/* Positional requests belong to a connection: the actor makes them anew when it is linked. */
static void forget_positional (client_t *client)
{
    pending_t **at = &client->pending;
    while (*at != NULL) {
        pending_t *pending = *at;
        if (is_positional (pending->op)) {
            *at = pending->next;
            pending_free (pending);
        } else {
            at = &pending->next;
        }
    }
}

static void next_endpoint (client_t *client)
{
    client->endpoint = (client->endpoint + 1) % client->world->options.brokers;
}

void client_reconnect (client_t *client)
{
    world_t *world = client->world;
    if (client->link != NULL) {
        wire_close (client->link);
        client->link = NULL;
    }
    forget_positional (client);
    client->status = CLIENT_DOWN;
    client->wake_ms = world->mono_ms + rng_between (&world->rng, 1, world->faults ? 800 : 50);
    if (world->options.brokers > 1 && rng_chance (&world->rng, 500)) {
        next_endpoint (client);
    }
}

static void hello (client_t *client)
{
    Taskmq__Hello hello = TASKMQ__HELLO__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    hello.version_min = TMQ_PROTOCOL_VERSION;
    hello.version_max = TMQ_PROTOCOL_VERSION;
    hello.features = client->index % 2 == 0 ? TMQ_FEATURE_UNAVAILABLE : 0;
    hello.namespace_ = (char *) (uintptr_t) client->ns;
    hello.client = (char *) (uintptr_t) client->actor->name;
    request.op_case = TASKMQ__REQUEST__OP_HELLO;
    request.hello = &hello;
    forget_positional (client);
    client->link->registered = false;
    client->status = CLIENT_HELLO;
    client->heard_ms = client->world->mono_ms;
    client_request (client, &request, NULL, 0);
}

static void connect_again (client_t *client)
{
    world_t *world = client->world;
    if (world->brokers[client->endpoint].engine == NULL) { /* a standby does not listen */
        next_endpoint (client);
        client->wake_ms = world->mono_ms + rng_between (&world->rng, 50, 500);
        return;
    }
    if (!client->running) {
        client->running = true;
        if (client->actor->start != NULL) {
            client->actor->start (client);
        }
    }
    client->link = wire_open (client);
    hello (client);
}

static void welcomed (client_t *client, const Taskmq__Welcome *welcome)
{
    if (welcome->token.len != sizeof client->token ||
        strcmp (welcome->namespace_, client->ns) != 0) {
        sim_fail (client->world, "client %u: a welcome without token or with namespace %s",
                  client->index, welcome->namespace_);
        return;
    }
    memcpy (client->token, welcome->token.data, sizeof client->token);
    client->generation = welcome->generation;
    client->status = CLIENT_LINKED;
    client->linked_ms = client->world->mono_ms;
    client->heartbeat_ms = client->world->mono_ms + TMQ_HEARTBEAT_MS;
    client->next_ms = client->world->mono_ms;
    if (client->actor->linked != NULL) {
        client->actor->linked (client);
    }
    for (pending_t *pending = client->pending; pending != NULL; pending = pending->next) {
        if (!is_positional (pending->op)) {
            send_pending (client, pending);
        }
    }
}

void client_crash (client_t *client)
{
    sim_log (client->world, "client %u (%s) crashes", client->index, client->actor->name);
    if (client->link != NULL) {
        wire_close (client->link);
        client->link = NULL;
    }
    forget_all (client);
    client->status = CLIENT_DOWN;
    client->running = false;
    if (client->actor->stop != NULL) {
        client->actor->stop (client);
    }
    client->wake_ms = client->world->mono_ms + rng_between (&client->world->rng, 10, AWAY_MS_MAX);
    /* The others must do its work. */
    client->gone_for_good = client->actor == &worker_actor && rng_chance (&client->world->rng, 300);
}

void client_goes (client_t *client)
{
    if (client->link != NULL) {
        wire_close (client->link);
        client->link = NULL;
    }
    client->status = CLIENT_DOWN;
    client->gone_for_good = true;
    client->wake_ms = SIM_END_OF_TIME;
}

void client_free (client_t *client)
{
    forget_all (client);
    if (client->actor->stop != NULL) {
        client->actor->stop (client);
    }
    free (client->state);
}

/* Receiving. */

static void answered (client_t *client, const Taskmq__Reply *reply, const uint8_t *body,
                      size_t body_bytes)
{
    pending_t **at = &client->pending;
    while (*at != NULL && (*at)->id != reply->id) {
        at = &(*at)->next;
    }
    pending_t *pending = *at;
    if (pending == NULL) {
        /* The answer to a repeat, or to what nobody waits for; only a refusal is news. */
        if (reply->code != TMQ_OK && client->actor->refused != NULL) {
            client->actor->refused (client, reply->id, reply->code);
        }
        return;
    }
    bool busy = reply->code == TMQ_OVERLOADED || reply->code == TMQ_STORE_FULL ||
                reply->code == TMQ_LIMIT || reply->code == TMQ_STOPPING ||
                reply->code == TMQ_UNAVAILABLE;
    if (busy) {
        pending->refused = true;
        return; /* not done: repeated when RETRY_MS is over */
    }
    if (!reply->more) {
        *at = pending->next;
    }
    if (pending->op == TASKMQ__REQUEST__OP_HELLO) {
        if (reply->code == TMQ_DENIED && client->actor == &prowler_actor) {
            pending_free (pending);
            client_reconnect (client); /* its principal may have rights again */
            return;
        }
        if (reply->code != TMQ_OK || reply->welcome == NULL) {
            sim_fail (client->world, "client %u: hello is refused: %u %s", client->index,
                      reply->code, reply->text);
        } else {
            welcomed (client, reply->welcome);
        }
    } else {
        client->actor->reply (client, pending, reply, body, body_bytes);
    }
    if (!reply->more) {
        pending_free (pending);
    }
}

static size_t body_of (const Taskmq__Reply *reply)
{
    if (reply->body_case == TASKMQ__REPLY__BODY_ANSWER_PAGE) {
        return reply->answer_page->body;
    }
    if (reply->body_case == TASKMQ__REPLY__BODY_CHECKPOINT_STATE) {
        return reply->checkpoint_state->body;
    }
    if (reply->body_case == TASKMQ__REPLY__BODY_TURN_PAGE) {
        return reply->turn_page->body;
    }
    if (reply->body_case == TASKMQ__REPLY__BODY_BLOB_PART) {
        return reply->blob_part->body;
    }
    if (reply->body_case == TASKMQ__REPLY__BODY_VALUE) {
        return reply->value->body;
    }
    return reply->body_case == TASKMQ__REPLY__BODY_TASK ? reply->task->body : 0;
}

static void received (client_t *client, const packet_t *packet)
{
    Taskmq__BrokerMessage *message =
        taskmq__broker_message__unpack (NULL, packet->envelope_bytes, packet->envelope);
    if (message == NULL) {
        sim_fail (client->world, "client %u: the broker's message cannot be decoded",
                  client->index);
        return;
    }
    client->heard_ms = client->world->mono_ms;
    const uint8_t *body = packet->body;
    size_t body_bytes = packet->body_bytes;
    wire_t *link = client->link;
    for (size_t i = 0; i < message->n_replies && client->link == link; i++) {
        const Taskmq__Reply *reply = message->replies[i];
        size_t own = body_of (reply);
        if (own > body_bytes) {
            sim_fail (client->world, "client %u: a reply's body is missing", client->index);
            break;
        }
        if (reply->code == TMQ_NO_LINK) {
            /* Nothing was done. Say hello again, sometimes on a new connection. */
            if (rng_chance (&client->world->rng, 500)) {
                client_reconnect (client);
            } else if (client->status == CLIENT_LINKED) {
                hello (client);
            }
            break;
        }
        answered (client, reply, body, own);
        body = body == NULL ? NULL : body + own;
        body_bytes -= own;
    }
    if (client->link == link && client->status == CLIENT_LINKED && client->actor->message != NULL) {
        client->actor->message (client, message, body, body_bytes);
    }
    taskmq__broker_message__free_unpacked (message, NULL);
}

/* Time. */

static void repeat_old (client_t *client)
{
    world_t *world = client->world;
    for (pending_t *pending = client->pending; pending != NULL; pending = pending->next) {
        bool old = world->mono_ms >= pending->sent_ms + RETRY_MS;
        /* A wait that the broker took is not asked again: it must be answered. */
        bool waits = pending->op == TASKMQ__REQUEST__OP_WAIT && !pending->refused;
        if (!pending->sent || !old || waits) {
            continue;
        }
        if (is_positional (pending->op)) {
            client_reconnect (client);
            return;
        }
        send_pending (client, pending);
    }
}

static void heartbeat (client_t *client)
{
    Taskmq__Heartbeat heartbeat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &heartbeat;
    client_tell (client, &request);
    client->heartbeat_ms = client->world->mono_ms + TMQ_HEARTBEAT_MS;
    repeat_old (client);
}

void client_step (client_t *client)
{
    world_t *world = client->world;
    if (client->actor->step != NULL) {
        client->actor->step (client);
        return;
    }
    if (client->status == CLIENT_DOWN) {
        if (world->mono_ms >= client->wake_ms && !client->gone_for_good) {
            connect_again (client);
        }
        return;
    }
    packet_t *packet;
    wire_t *link = client->link;
    while (client->link == link && (packet = wire_receive_down (link)) != NULL) {
        received (client, packet);
        packet_free (packet);
        if (world->failed) {
            return;
        }
    }
    if (client->link == NULL) {
        return;
    }
    if (!client->link->open_at_client || world->mono_ms >= client->heard_ms + SILENT_MS) {
        client_reconnect (client);
        return;
    }
    if (client->status == CLIENT_LINKED && world->mono_ms >= client->heartbeat_ms) {
        heartbeat (client);
    }
    if (client->status == CLIENT_LINKED && world->mono_ms >= client->next_ms) {
        client->actor->tick (client);
    }
}

int64_t client_next_ms (const client_t *client)
{
    if (client->actor->next_ms != NULL) {
        return client->actor->next_ms (client);
    }
    if (client->status == CLIENT_DOWN) {
        return client->gone_for_good ? SIM_END_OF_TIME : client->wake_ms;
    }
    int64_t next = client->heard_ms + SILENT_MS;
    if (client->status == CLIENT_LINKED) {
        next = next < client->heartbeat_ms ? next : client->heartbeat_ms;
        next = next < client->next_ms ? next : client->next_ms;
    }
    return next;
}
