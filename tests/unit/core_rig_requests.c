/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The rig's requests: each makes one message as the library would. */
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"
#include "ids.h"

static uint8_t request_id[16] = {1};

void rig_use_request_id (unsigned n)
{
    memset (request_id, 0, sizeof (request_id));
    memcpy (request_id, &n, sizeof (n));
}

tmq_id_t rig_id (unsigned n)
{
    uint8_t random[ID_RANDOM_BYTES] = {0};
    memcpy (random + 4, &n, sizeof (n));
    tmq_id_t id;
    id_make (&id, RIG_IDS_MADE_MS, random);
    return id;
}

static ProtobufCBinaryData bytes_of (const void *bytes, size_t length)
{
    return (ProtobufCBinaryData){length, (uint8_t *) bytes};
}

static Taskmq__Request request_of (Taskmq__Request__OpCase op)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = op;
    request.request_id = bytes_of (request_id, sizeof (request_id));
    return request;
}

uint64_t rig_submit_spec (rig_t *self, size_t peer, unsigned n, Taskmq__TaskSpec *spec,
                          const char *payload)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBMIT);
    bool own_id = spec->task_id.len > 0;
    if (!own_id)
        spec->task_id = bytes_of (id.bytes, sizeof (id.bytes));
    if (spec->queue[0] == '\0')
        spec->queue = (char *) "q";
    spec->payload_bytes = (uint32_t) strlen (payload);
    submit.n_tasks = 1;
    submit.tasks = &spec;
    request.submit = &submit;
    uint64_t sent = rig_send (self, peer, &request, payload, strlen (payload));
    if (!own_id)
        spec->task_id = (ProtobufCBinaryData){0}; /* the next one gets its own */
    return sent;
}

uint64_t rig_submit (rig_t *self, size_t peer, unsigned n, const char *queue, const char *payload)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = (char *) queue;
    return rig_submit_spec (self, peer, n, &spec, payload);
}

static uint64_t send_get (rig_t *self, size_t peer, unsigned n, Taskmq__Request__OpCase op)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Request request = request_of (op);
    get.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    request.get = &get; /* a union: the same place for all three */
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_get (rig_t *self, size_t peer, unsigned n)
{
    return send_get (self, peer, n, TASKMQ__REQUEST__OP_GET);
}

uint64_t rig_get_record (rig_t *self, size_t peer, unsigned n)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_GET);
    get.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    get.no_body = true;
    request.get = &get;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_why (rig_t *self, size_t peer, unsigned n)
{
    return send_get (self, peer, n, TASKMQ__REQUEST__OP_WHY); /* it has the same member */
}

uint64_t rig_result (rig_t *self, size_t peer, unsigned n)
{
    return send_get (self, peer, n, TASKMQ__REQUEST__OP_RESULT);
}

uint64_t rig_payload (rig_t *self, size_t peer, unsigned n)
{
    return send_get (self, peer, n, TASKMQ__REQUEST__OP_PAYLOAD);
}

uint64_t rig_cancel (rig_t *self, size_t peer, unsigned n)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CANCEL);
    cancel.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    cancel.message = (char *) "enough";
    request.cancel = &cancel;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_change (rig_t *self, size_t peer, unsigned op, unsigned first, unsigned count)
{
    tmq_id_t ids[TMQ_CHANGE_IDS_MAX];
    ProtobufCBinaryData bytes[TMQ_CHANGE_IDS_MAX];
    for (unsigned i = 0; i < count; i++) {
        ids[i] = rig_id (first + i);
        bytes[i] = bytes_of (ids[i].bytes, sizeof (ids[i].bytes));
    }
    Taskmq__Retry retry = TASKMQ__RETRY__INIT;
    Taskmq__Purge purge = TASKMQ__PURGE__INIT;
    Taskmq__Request request = request_of (op);
    retry.n_task_ids = purge.n_task_ids = count;
    retry.task_ids = purge.task_ids = bytes;
    if (op == TASKMQ__REQUEST__OP_PURGE)
        request.purge = &purge;
    else
        request.retry = &retry; /* of the same type as resume, in the same place */
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_set (rig_t *self, size_t peer, unsigned n, const Taskmq__Set *set)
{
    tmq_id_t id = rig_id (n);
    ProtobufCBinaryData bytes = bytes_of (id.bytes, sizeof (id.bytes));
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SET);
    Taskmq__Set own = *set;
    own.n_task_ids = 1;
    own.task_ids = &bytes;
    request.set = &own;
    return rig_send (self, peer, &request, NULL, 0);
}

unsigned rig_changed (const rig_t *self, size_t peer, uint64_t request)
{
    const rig_item_t *item = rig_reply (self, peer, request);
    assert_non_null (item);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->changed->n_items, 1);
    return item->reply->changed->items[0]->code;
}

uint64_t rig_wait (rig_t *self, size_t peer, unsigned first, unsigned count, uint32_t deadline_ms)
{
    tmq_id_t ids[TMQ_WAIT_IDS_MAX];
    ProtobufCBinaryData bytes[TMQ_WAIT_IDS_MAX];
    Taskmq__Wait wait = TASKMQ__WAIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_WAIT);
    assert_true (count <= TMQ_WAIT_IDS_MAX);
    for (unsigned i = 0; i < count; i++) {
        ids[i] = rig_id (first + i);
        bytes[i] = bytes_of (ids[i].bytes, sizeof (ids[i].bytes));
    }
    wait.n_task_ids = count;
    wait.task_ids = bytes;
    request.wait = &wait;
    request.deadline_ms = deadline_ms;
    return rig_send (self, peer, &request, NULL, 0);
}

/* Workers. */

static Taskmq__Lease lease_of (const Taskmq__Assignment *assignment)
{
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    lease.task_id = assignment->task_id;
    lease.attempt = assignment->attempt;
    lease.secret = assignment->secret;
    return lease;
}

static uint64_t send_register (rig_t *self, size_t peer, unsigned worker, char **queues,
                               size_t count, uint32_t capacity, Taskmq__Lease **leases,
                               size_t leases_count)
{
    tmq_id_t id = rig_id (worker);
    Taskmq__Register body = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_REGISTER);
    body.worker_id = bytes_of (id.bytes, sizeof (id.bytes));
    body.name = (char *) "w";
    body.n_queues = count;
    body.queues = queues;
    body.capacity = capacity;
    body.n_leases = leases_count;
    body.leases = leases;
    request.register_ = &body;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_register_queues (rig_t *self, size_t peer, unsigned worker, char **queues,
                              size_t count, uint32_t capacity)
{
    return send_register (self, peer, worker, queues, count, capacity, NULL, 0);
}

uint64_t rig_register (rig_t *self, size_t peer, unsigned worker, const char *queue,
                       uint32_t capacity)
{
    char *queues[] = {(char *) queue};
    return send_register (self, peer, worker, queues, 1, capacity, NULL, 0);
}

uint64_t rig_register_with (rig_t *self, size_t peer, unsigned worker, const char *queue,
                            uint32_t capacity, const Taskmq__Assignment *held)
{
    char *queues[] = {(char *) queue};
    Taskmq__Lease lease = lease_of (held);
    Taskmq__Lease *leases[] = {&lease};
    lease.started = true;
    return send_register (self, peer, worker, queues, 1, capacity, leases, 1);
}

uint64_t rig_worker_credit (rig_t *self, size_t peer, unsigned worker, uint64_t seen,
                            uint32_t capacity)
{
    tmq_id_t id = rig_id (worker);
    Taskmq__WorkerCredit credit = TASKMQ__WORKER_CREDIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_WORKER_CREDIT);
    credit.worker_id = bytes_of (id.bytes, sizeof (id.bytes));
    credit.seen = seen;
    credit.capacity = capacity;
    request.worker_credit = &credit;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_leave (rig_t *self, size_t peer, unsigned worker)
{
    tmq_id_t id = rig_id (worker);
    Taskmq__Leave leave = TASKMQ__LEAVE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_LEAVE);
    leave.worker_id = bytes_of (id.bytes, sizeof (id.bytes));
    request.leave = &leave;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_goodbye (rig_t *self, size_t peer)
{
    Taskmq__Goodbye goodbye = TASKMQ__GOODBYE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_GOODBYE);
    request.goodbye = &goodbye;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_started (rig_t *self, size_t peer, const Taskmq__Assignment *assignment)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Started started = TASKMQ__STARTED__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_STARTED);
    started.lease = &lease;
    request.started = &started;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_log (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                  tmq_log_stream_t stream, uint64_t offset, const char *bytes)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Log log = TASKMQ__LOG__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_LOG);
    log.lease = &lease;
    log.stream = stream;
    log.offset = offset;
    log.log_bytes = (uint32_t) strlen (bytes);
    request.log = &log;
    return rig_send (self, peer, &request, bytes, log.log_bytes);
}

uint64_t rig_read_log (rig_t *self, size_t peer, unsigned n)
{
    tmq_id_t id = rig_id (n);
    Taskmq__ReadLog read = TASKMQ__READ_LOG__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_READ_LOG);
    read.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    read.stream = TMQ_LOG_OUT;
    request.read_log = &read;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_checkpoint (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                         const char *state)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Checkpoint checkpoint = TASKMQ__CHECKPOINT__INIT;
    Taskmq__CheckpointRead read = TASKMQ__CHECKPOINT_READ__INIT;
    bool reads = state == NULL;
    Taskmq__Request request =
        request_of (reads ? TASKMQ__REQUEST__OP_CHECKPOINT_READ : TASKMQ__REQUEST__OP_CHECKPOINT);
    checkpoint.lease = read.lease = &lease;
    checkpoint.state_bytes = reads ? 0 : (uint32_t) strlen (state);
    if (reads)
        request.checkpoint_read = &read;
    else
        request.checkpoint = &checkpoint;
    return rig_send (self, peer, &request, state, checkpoint.state_bytes);
}

uint64_t rig_turn (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, uint32_t number,
                   const char *content)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Turn turn = TASKMQ__TURN__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_TURN);
    turn.lease = &lease;
    turn.number = number;
    turn.agent = (char *) (uintptr_t) "planner";
    turn.status = (char *) (uintptr_t) "ok";
    turn.content_bytes = (uint32_t) strlen (content);
    request.turn = &turn;
    return rig_send (self, peer, &request, content, turn.content_bytes);
}

uint64_t rig_turns (rig_t *self, size_t peer, unsigned n, uint32_t attempt, uint32_t after)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Turns turns = TASKMQ__TURNS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_TURNS);
    turns.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    turns.attempt = attempt;
    turns.after = after;
    turns.parts = TMQ_TURN_CONTENT;
    request.turns = &turns;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_complete (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                       const char *result)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_COMPLETE);
    complete.lease = &lease;
    complete.result_bytes = (uint32_t) strlen (result);
    request.complete = &complete;
    return rig_send (self, peer, &request, result, strlen (result));
}

uint64_t rig_ask_as (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                     const Taskmq__Ask *ask)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ASK);
    Taskmq__Ask own = *ask;
    own.lease = &lease;
    request.ask = &own;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_ask (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, const char *key,
                  const char *request_text)
{
    Taskmq__Ask ask = TASKMQ__ASK__INIT;
    ask.key = (char *) key;
    ask.request = (char *) request_text;
    return rig_ask_as (self, peer, assignment, &ask);
}

uint64_t rig_take_answers (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                           uint64_t seen)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__TakeAnswers take = TASKMQ__TAKE_ANSWERS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_TAKE_ANSWERS);
    take.lease = &lease;
    take.seen = seen;
    request.take_answers = &take;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_answer (rig_t *self, size_t peer, unsigned n, const char *key, const char *json)
{
    tmq_id_t id = rig_id (n);
    Taskmq__AnswerItem item = TASKMQ__ANSWER_ITEM__INIT;
    Taskmq__AnswerItem *items[] = {&item};
    Taskmq__Answer answer = TASKMQ__ANSWER__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_ANSWER);
    item.key = (char *) key;
    item.bytes = (uint32_t) strlen (json);
    answer.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    answer.items = items;
    answer.n_items = 1;
    request.answer = &answer;
    return rig_send (self, peer, &request, json, strlen (json));
}

uint64_t rig_inbox (rig_t *self, size_t peer, Taskmq__Inbox *inbox)
{
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_INBOX);
    request.inbox = inbox;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_fail_with (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                        int32_t code, bool final, const char *result)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Fail body = TASKMQ__FAIL__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_FAIL);
    body.lease = &lease;
    body.code = code;
    body.message = (char *) "it broke";
    body.final = final;
    body.result_bytes = (uint32_t) strlen (result);
    request.fail = &body;
    return rig_send (self, peer, &request, result, strlen (result));
}

uint64_t rig_fail (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, int32_t code,
                   bool final)
{
    return rig_fail_with (self, peer, assignment, code, final, "");
}

uint64_t rig_push (rig_t *self, size_t peer, const Taskmq__Assignment *assignment,
                   const char *message, double done)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    Taskmq__Push push = TASKMQ__PUSH__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_PUSH);
    progress.done = done;
    progress.total = 10;
    push.lease = &lease;
    push.status_message = (char *) message;
    push.progress = &progress;
    request.push = &push;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_release (rig_t *self, size_t peer, const Taskmq__Assignment *assignment, bool no_delay)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Release release = TASKMQ__RELEASE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RELEASE);
    release.lease = &lease;
    release.no_delay = no_delay;
    request.release = &release;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_cancel_ack (rig_t *self, size_t peer, const Taskmq__Assignment *assignment)
{
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__CancelAck ack = TASKMQ__CANCEL_ACK__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CANCEL_ACK);
    ack.lease = &lease;
    request.cancel_ack = &ack;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_renew (rig_t *self, size_t peer, unsigned worker, const Taskmq__Assignment *assignment)
{
    tmq_id_t id = rig_id (worker);
    Taskmq__Lease lease = lease_of (assignment);
    Taskmq__Lease *leases[] = {&lease};
    Taskmq__Renew renew = TASKMQ__RENEW__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RENEW);
    renew.worker_id = bytes_of (id.bytes, sizeof (id.bytes));
    renew.n_leases = 1;
    renew.leases = leases;
    request.renew = &renew;
    return rig_send (self, peer, &request, NULL, 0);
}

/* Subscribers. */

uint64_t rig_subscribe_as (rig_t *self, size_t peer, Taskmq__Subscribe *subscribe)
{
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SUBSCRIBE);
    request.subscribe = subscribe;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_subscribe (rig_t *self, size_t peer, uint64_t subscription, uint64_t after_seq)
{
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    subscribe.subscription = subscription;
    subscribe.after_seq = after_seq;
    return rig_subscribe_as (self, peer, &subscribe);
}

uint64_t rig_unsubscribe (rig_t *self, size_t peer, uint64_t subscription)
{
    Taskmq__Unsubscribe unsubscribe = TASKMQ__UNSUBSCRIBE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_UNSUBSCRIBE);
    unsubscribe.subscription = subscription;
    request.unsubscribe = &unsubscribe;
    return rig_send (self, peer, &request, NULL, 0);
}

static uint32_t snapshot_messages (const rig_t *self, size_t peer, uint64_t subscription)
{
    uint32_t count = 0;
    for (size_t i = 0; i < self->peers[peer].count; i++) {
        const Taskmq__Snapshot *snapshot = self->peers[peer].items[i].snapshot;
        count += snapshot != NULL && snapshot->subscription == subscription;
    }
    return count;
}

uint64_t rig_credit (rig_t *self, size_t peer, uint64_t subscription, uint64_t upto)
{
    Taskmq__Credit credit = TASKMQ__CREDIT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_CREDIT);
    credit.subscription = subscription;
    credit.received_upto = upto;
    credit.snapshot_messages = snapshot_messages (self, peer, subscription);
    request.credit = &credit;
    return rig_send (self, peer, &request, NULL, 0);
}

/* Reads. */

uint64_t rig_list (rig_t *self, size_t peer, Taskmq__Filter *filter, ProtobufCBinaryData cursor,
                   uint32_t limit)
{
    Taskmq__List list = TASKMQ__LIST__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_LIST);
    list.filter = filter;
    list.cursor = cursor;
    list.limit = limit;
    request.list = &list;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_search (rig_t *self, size_t peer, const char *text, ProtobufCBinaryData cursor,
                     bool ranked)
{
    Taskmq__Search search = TASKMQ__SEARCH__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SEARCH);
    search.text = (char *) (uintptr_t) text;
    search.cursor = cursor;
    search.ranked = ranked;
    request.search = &search;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_search_count (rig_t *self, size_t peer, const char *text)
{
    Taskmq__Search search = TASKMQ__SEARCH__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_SEARCH);
    search.text = (char *) (uintptr_t) text;
    search.count = true;
    request.search = &search;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_count (rig_t *self, size_t peer)
{
    Taskmq__Count count = TASKMQ__COUNT__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_COUNT);
    request.count = &count;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_resolve (rig_t *self, size_t peer, const char *suffix)
{
    Taskmq__Resolve resolve = TASKMQ__RESOLVE__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_RESOLVE);
    resolve.suffix = (char *) suffix;
    request.resolve = &resolve;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_history (rig_t *self, size_t peer, unsigned n)
{
    tmq_id_t id = rig_id (n);
    Taskmq__TaskEvents events = TASKMQ__TASK_EVENTS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_TASK_EVENTS);
    events.task_id = bytes_of (id.bytes, sizeof (id.bytes));
    request.task_events = &events;
    return rig_send (self, peer, &request, NULL, 0);
}

uint64_t rig_stats (rig_t *self, size_t peer)
{
    Taskmq__Stats stats = TASKMQ__STATS__INIT;
    Taskmq__Request request = request_of (TASKMQ__REQUEST__OP_STATS);
    request.stats = &stats;
    return rig_send (self, peer, &request, NULL, 0);
}

/* Looking. */

const Taskmq__Task *rig_task (rig_t *self, size_t peer, unsigned n)
{
    uint64_t id = rig_get (self, peer, n);
    rig_run (self);
    assert_int_equal (rig_code (self, peer, id), TMQ_OK);
    return rig_reply (self, peer, id)->reply->task;
}

unsigned rig_status (rig_t *self, size_t peer, unsigned n)
{
    return rig_task (self, peer, n)->status;
}

message_t rig_message_of (rig_t *rig, size_t peer, const Taskmq__Request *request, size_t count)
{
    static Taskmq__Request requests[RIG_REQUESTS_MAX];
    static Taskmq__Request *list[RIG_REQUESTS_MAX];
    static Taskmq__ClientMessage envelope;
    assert_in_range (count, 1, RIG_REQUESTS_MAX);
    for (size_t i = 0; i < count; i++) {
        requests[i] = *request;
        requests[i].id = 1000 + i;
        list[i] = &requests[i];
    }
    rig_peer_t *from = &rig->peers[peer];
    envelope = (Taskmq__ClientMessage) TASKMQ__CLIENT_MESSAGE__INIT;
    envelope.token = (ProtobufCBinaryData){sizeof (from->token), from->token};
    envelope.n_requests = count;
    envelope.requests = list;
    return (message_t){.peer = from->id, .identity = from->identity, .envelope = &envelope};
}

const Taskmq__ArtifactPage *rig_artifacts (rig_t *self, unsigned n)
{
    tmq_id_t id = rig_id (n);
    Taskmq__Artifacts message = TASKMQ__ARTIFACTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    message.task_id = (ProtobufCBinaryData){sizeof (id.bytes), id.bytes};
    request.op_case = TASKMQ__REQUEST__OP_ARTIFACTS;
    request.artifacts = &message;
    uint64_t sent = rig_send (self, 0, &request, NULL, 0);
    rig_settle (self);
    const rig_item_t *item = rig_reply (self, 0, sent);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->body_case, TASKMQ__REPLY__BODY_ARTIFACT_PAGE);
    return item->reply->artifact_page;
}
