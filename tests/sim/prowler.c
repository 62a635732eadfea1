/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A client that asks for everything, whatever its principal may see, while the policy changes at
 * random times. Each message is judged when it leaves the broker, by a rule of the simulation's
 * own: no byte of it may stem from a task that the policy of that moment does not show (I12). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "types.h"

enum { SUBSCRIPTIONS_MAX = 3, SWAP_PER_MILLE = 250, OPEN_MAX = 30 };

/* The policy, as the simulation knows it. */

static const char *const NAMES[PROWLERS] = {"ann", "ben", "cid"};
static const char *const QUEUES[] = {NULL, "red", "green"};

static const char *const ROLES_OF[] = {"client", "reader", "observer", "worker", "gateway"};
enum { CLIENT, READER, OBSERVER, WORKER, GATEWAY, ROLES_COUNT };

const char *prowler_name (uint32_t number)
{
    return NAMES[number];
}

static size_t print_grants (char *out, size_t size, const rights_t *rights)
{
    size_t used = 0;
    for (uint32_t i = 0; i < rights->count; i++) {
        const char *queue = QUEUES[rights->grants[i].queue];
        used += (size_t) snprintf (out + used, size - used, " %s(default%s%s)",
                                   ROLES_OF[rights->grants[i].role], queue == NULL ? "" : "/",
                                   queue == NULL ? "" : queue);
    }
    return used;
}

/* A worker that owned what uid:1 did would have its leases, too. */
static bool owns (const rights_t *rights)
{
    for (uint32_t i = 0; i < rights->count; i++) {
        if (rights->grants[i].role == WORKER) {
            return false;
        }
    }
    return true;
}

static void take_policy (world_t *world)
{
    /* The clients that were there before are the broker's own users: nothing changes for them. */
    static const policy_names_t names = {.own_uid = 1};
    char text[1024] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < PROWLERS; i++) {
        if (world->rights[i].count == 0) {
            continue;
        }
        used += (size_t) snprintf (text + used, sizeof text - used, "%s addr:10.0.0.%u%s", NAMES[i],
                                   i, owns (&world->rights[i]) ? " owns=uid:1" : "");
        used += print_grants (text + used, sizeof text - used, &world->rights[i]);
        /* The first one meets its quotas all the time. */
        used += (size_t) snprintf (text + used, sizeof text - used, "%s\n",
                                   i == 0 ? " links=1 reads=1/s subscriptions=1 waits=2" : "");
    }
    policy_error_t error;
    policy_drop (world->policy);
    world->policy = policy_parse (text, used, &names, &error);
    if (world->policy == NULL) {
        sim_fail (world, "the policy: %s", error.text);
    }
    sim_log (world, "policy:\n%s", text);
}

static void draw_rights (rng_t *rng, rights_t *out)
{
    out->count = rng_below (rng, 3);
    for (uint32_t i = 0; i < out->count; i++) {
        out->grants[i].role = rng_below (rng, ROLES_COUNT);
        out->grants[i].queue = rng_below (rng, 3);
    }
}

/* It stands still in the middle of its outputs, and takes a policy behind them. */
static bool somebody_sends (const world_t *world)
{
    bool sends = false;
    for (uint32_t i = 0; i < world->options.brokers; i++) {
        sends = sends || world->brokers[i].sends;
    }
    return sends;
}

void prowlers_swap (world_t *world, bool all)
{
    if (!all && (!sim_fault (world, SWAP_PER_MILLE) || somebody_sends (world))) {
        return;
    }
    uint32_t chosen = rng_below (&world->rng, PROWLERS);
    for (uint32_t i = 0; i < PROWLERS; i++) {
        if (all || i == chosen) {
            draw_rights (&world->rng, &world->rights[i]);
        }
    }
    take_policy (world);
    broker_t *turn = world->broker;
    for (uint32_t i = 0; i < world->options.brokers && world->policy != NULL; i++) {
        world->broker = &world->brokers[i];
        if (world->broker->engine != NULL) {
            engine_access (world->broker->engine, world->policy, broker_now (world));
            world->broker->tick_wanted = true;
        }
    }
    world->broker = turn;
}

/* What may be seen of a task: this is the rule. */
static bool shows (const rights_t *rights, const known_t *task, bool body)
{
    if (strcmp (task->ns, "default") != 0) {
        return false;
    }
    for (uint32_t i = 0; i < rights->count; i++) {
        const char *queue = QUEUES[rights->grants[i].queue];
        bool there = queue == NULL || strcmp (queue, task->queue) == 0;
        bool seen = rights->grants[i].role == READER ||
                    (rights->grants[i].role == CLIENT && task->owner == 1 && owns (rights)) ||
                    (rights->grants[i].role == OBSERVER && !body);
        if (there && seen) {
            return true;
        }
    }
    return false;
}

/* Judging. */

typedef struct judge {
    world_t *world;
    const client_t *client;
    const rights_t *rights;
} judge_t;

static void judge_id (const judge_t *judge, const ProtobufCBinaryData *id, bool body,
                      const char *what)
{
    const known_t *task = check_find (judge->world, id);
    if (task != NULL && !shows (judge->rights, task, body)) {
        sim_fail (judge->world, "I12: %s is shown %s of task %u of %s/%s and owner %u",
                  judge->client->identity, what, model_index (id->data), task->ns, task->queue,
                  task->owner);
    }
}

static void judge_task (const judge_t *judge, const Taskmq__Task *task, const char *what)
{
    bool body = task->body > 0 || task->meta[0] != '\0' ||
                (task->error != NULL && task->error->data[0] != '\0');
    judge_id (judge, &task->task_id, body, what);
}

static void judge_events (const judge_t *judge, const uint8_t *bytes, size_t length)
{
    Taskmq__EventList *list = taskmq__event_list__unpack (NULL, length, bytes);
    if (list == NULL) {
        sim_fail (judge->world, "a list of events cannot be decoded");
        return;
    }
    for (size_t i = 0; i < list->n_events; i++) {
        judge_id (judge, &list->events[i]->task_id, false, "an event");
    }
    taskmq__event_list__free_unpacked (list, NULL);
}

/* That a task is gone, or in another status than was wanted, tells that there is one. */
static void judge_code (const judge_t *judge, const Taskmq__Reply *reply)
{
    const pending_t *pending = judge->client->pending;
    while (pending != NULL && pending->id != reply->id) {
        pending = pending->next;
    }
    bool tells =
        reply->code == TMQ_EXPIRED || reply->code == TMQ_PURGED || reply->code == TMQ_WRONG_STATUS;
    if (pending == NULL || pending->context == 0 || !tells) {
        return;
    }
    known_t *task = &judge->world->tasks[pending->context - 1];
    const ProtobufCBinaryData id = {sizeof task->id, task->id.bytes};
    judge_id (judge, &id, false, code_text ((int) reply->code));
}

static void judge_reply (const judge_t *judge, const Taskmq__Reply *reply)
{
    judge_code (judge, reply);
    switch (reply->body_case) {
    case TASKMQ__REPLY__BODY_TASK: judge_task (judge, reply->task, "the record"); break;
    case TASKMQ__REPLY__BODY_PAGE:
        for (size_t i = 0; i < reply->page->n_tasks; i++) {
            judge_task (judge, reply->page->tasks[i], "a line");
        }
        break;
    case TASKMQ__REPLY__BODY_EVENT_PAGE:
        for (size_t i = 0; i < reply->event_page->list->n_events; i++) {
            judge_id (judge, &reply->event_page->list->events[i]->task_id, false, "the history");
        }
        break;
    case TASKMQ__REPLY__BODY_WAITED:
        for (size_t i = 0; i < reply->waited->n_items; i++) {
            if (reply->waited->items[i]->code != TMQ_NOT_FOUND) {
                judge_id (judge, &reply->waited->items[i]->task_id, false, "the end");
            }
        }
        break;
    case TASKMQ__REPLY__BODY_WELCOME:
        if (judge->rights->count == 0) {
            sim_fail (judge->world, "I12: %s has no line and is welcome", judge->client->identity);
        }
        break;
    case TASKMQ__REPLY__BODY_RESOLVED: judge_id (judge, &reply->resolved, false, "the id"); break;
    default: break;
    }
}

void prowler_judge (world_t *world, const client_t *client, const output_t *output)
{
    judge_t judge = {world, client, NULL};
    if (client->actor != &prowler_actor) {
        return;
    }
    for (uint32_t i = 0; i < PROWLERS; i++) {
        if (strcmp (client->identity, NAMES[i]) == 0) {
            judge.rights = &world->rights[i];
        }
    }
    Taskmq__BrokerMessage *message =
        taskmq__broker_message__unpack (NULL, output->envelope_bytes, output->envelope);
    if (message == NULL) {
        sim_fail (world, "a message cannot be decoded");
        return;
    }
    const uint8_t *body = buf_bytes (output->body);
    for (size_t i = 0; i < message->n_replies; i++) {
        judge_reply (&judge, message->replies[i]);
    }
    for (size_t i = 0; i < message->n_events; i++) {
        judge_events (&judge, body, message->events[i]->list_bytes);
        body += message->events[i]->list_bytes;
    }
    for (size_t i = 0; i < message->n_notices; i++) {
        judge_id (&judge, &message->notices[i]->task_id, false, "progress");
    }
    for (size_t i = 0; message->snapshot != NULL && i < message->snapshot->n_tasks; i++) {
        judge_task (&judge, message->snapshot->tasks[i], "a snapshot's line");
    }
    if (message->n_assignments > 0) {
        sim_fail (world, "I12: %s is given a task", client->identity);
    }
    taskmq__broker_message__free_unpacked (message, NULL);
}

/* Asking. */

/* Also for others, with a right to or without: whom they name has no task, so nothing may be seen
 * that the prowler's own rights do not show. */
static void ask_for_somebody (client_t *client, Taskmq__Request *request)
{
    if (rng_below (&client->world->rng, 3) == 0)
        request->owner = (char *) NAMES[rng_below (&client->world->rng, PROWLERS)];
}

static void subscribe_all (client_t *client)
{
    for (uint64_t i = 1; i <= SUBSCRIPTIONS_MAX; i++) {
        Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
        Taskmq__Request request = TASKMQ__REQUEST__INIT;
        subscribe.subscription = i;
        subscribe.snapshot = i == 1;
        subscribe.from_now = i == 2;
        request.op_case = TASKMQ__REQUEST__OP_SUBSCRIBE;
        request.subscribe = &subscribe;
        ask_for_somebody (client, &request);
        client_tell (client, &request);
    }
}

static void ask_for_task (client_t *client, const known_t *task)
{
    static const Taskmq__Request__OpCase OPS[] = {
        TASKMQ__REQUEST__OP_GET, TASKMQ__REQUEST__OP_RESULT, TASKMQ__REQUEST__OP_PAYLOAD};
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    get.task_id = (ProtobufCBinaryData){sizeof task->id, (uint8_t *) task->id.bytes};
    request.op_case = OPS[rng_below (&client->world->rng, 3)];
    request.get = &get;
    ask_for_somebody (client, &request);
    client_request (client, &request, NULL, 0)->context =
        (uint64_t) (task - client->world->tasks) + 1;
}

static void ask_for_end (client_t *client, const known_t *task)
{
    Taskmq__Wait wait = TASKMQ__WAIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    ProtobufCBinaryData id = {sizeof task->id, (uint8_t *) task->id.bytes};
    wait.n_task_ids = 1;
    wait.task_ids = &id;
    request.op_case = TASKMQ__REQUEST__OP_WAIT;
    request.wait = &wait;
    ask_for_somebody (client, &request);
    client_tell (client, &request);
}

static void ask_for_history (client_t *client, const known_t *task)
{
    Taskmq__TaskEvents events = TASKMQ__TASK_EVENTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    events.task_id = (ProtobufCBinaryData){sizeof task->id, (uint8_t *) task->id.bytes};
    request.op_case = TASKMQ__REQUEST__OP_TASK_EVENTS;
    request.task_events = &events;
    ask_for_somebody (client, &request);
    client_request (client, &request, NULL, 0)->context =
        (uint64_t) (task - client->world->tasks) + 1;
}

static void ask_for_list (client_t *client)
{
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_LIST;
    request.list = &list;
    ask_for_somebody (client, &request);
    client_tell (client, &request);
}

/* The events taken so far, so that further ones come. */
static void acknowledge (client_t *client)
{
    for (uint64_t i = 1; i <= SUBSCRIPTIONS_MAX; i++) {
        Taskmq__Credit credit = TASKMQ__CREDIT__INIT;
        Taskmq__Request request = TASKMQ__REQUEST__INIT;
        credit.subscription = i;
        credit.received_upto = UINT64_MAX >> 1;
        credit.snapshot_messages = 1000000;
        request.op_case = TASKMQ__REQUEST__OP_CREDIT;
        request.credit = &credit;
        client_tell (client, &request);
    }
}

static void prowler_tick (client_t *client)
{
    world_t *world = client->world;
    client->next_ms = world->mono_ms + rng_between (&world->rng, 100, 1500);
    if (world->tasks_count == 0) {
        return;
    }
    const known_t *task = &world->tasks[rng_below (&world->rng, world->tasks_count)];
    acknowledge (client);
    if (client_open (client) > OPEN_MAX) {
        return;
    }
    switch (rng_below (&world->rng, 4)) {
    case 0: ask_for_task (client, task); break;
    case 1: ask_for_end (client, task); break;
    case 2: ask_for_history (client, task); break;
    default: ask_for_list (client); break;
    }
}

static void prowler_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                           const uint8_t *body, size_t body_bytes)
{
    (void) client; /* everything was judged when it left */
    (void) pending;
    (void) reply;
    (void) body;
    (void) body_bytes;
}

const actor_t prowler_actor = {
    .name = "prowler", .linked = subscribe_all, .tick = prowler_tick, .reply = prowler_reply};
