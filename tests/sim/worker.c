/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* A worker, well-behaved and otherwise: it registers, works for a while, renews or forgets to,
 * reports, completes, fails or gives back; it may bring its outcome long after its lease ended,
 * ignore a cancellation, crash and come back under the same id or a new one. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum {
    HOLDS_MAX = 12,
    CREDIT_EVERY_MS = 1500,
    RESULT_MAX = 200,
    FAILS_LASTING = 400 /* per mille: that an attempt of a task without a ttl does */
};

typedef enum plan { PLAN_COMPLETE, PLAN_FAIL, PLAN_FAIL_FOR_GOOD, PLAN_RELEASE } plan_t;

typedef struct hold {
    known_t *task;
    uint32_t attempt;
    uint8_t secret[16];
    uint32_t lease_ms;
    bool started;
    bool negligent; /* does not renew */
    bool stubborn;  /* goes on though it was told that the lease is lost or cancelled */
    bool lost;
    bool cancelled;
    bool ending;      /* the end was sent */
    uint64_t answers; /* number of the newest answer that it has */
    uint64_t said;    /* bytes of its log */
    uint32_t kept;    /* checkpoints */
    uint32_t told;    /* turns, … */
    uint32_t heard;   /* … and how many were acknowledged */
    bool mute;        /* one of them was refused: it tells no more */
    plan_t plan;
    int64_t act_ms;
    int64_t renew_ms;
    uint8_t result_seed;
    uint32_t result_bytes;
    bool plain; /* the result is no blob: it was not uploaded */
} hold_t;

typedef struct worker {
    uint8_t id[16];
    bool has_id;
    uint64_t seen;
    uint32_t capacity;
    bool registered; /* on this link */
    bool strong;     /* … with the label */
    int64_t credit_ms;
    uint64_t credit_id; /* of the newest credit's request */
    hold_t holds[HOLDS_MAX];
    size_t holds_count;
    bool drain_asked;     /* somebody wants this one to end, … */
    uint8_t drain_of[16]; /* … that had this id */
    bool drained;         /* … and the broker has said that it gets nothing more */
    bool drained_before;  /* its newest registration; what was assigned before may still come */
    int64_t leave_ms;
} worker_t;

/* Which attempt a request is about; kept beside it. */
typedef struct about {
    known_t *task;
    uint32_t attempt;
    uint8_t result_seed;
    uint32_t result_bytes;
    uint32_t question;
    uint32_t state_of; /* of a read of the checkpoint: what was known to be kept */
    uint32_t turn;     /* its number … */
    bool alone;        /* … and those before it were acknowledged */
} about_t;

static hold_t *find_hold (worker_t *worker, const known_t *task, uint32_t attempt)
{
    for (size_t i = 0; i < worker->holds_count; i++) {
        if (worker->holds[i].task == task && worker->holds[i].attempt == attempt) {
            return &worker->holds[i];
        }
    }
    return NULL;
}

static void drop_hold (worker_t *worker, hold_t *hold)
{
    if (hold != NULL) {
        *hold = worker->holds[--worker->holds_count];
    }
}

static void fill_lease (const hold_t *hold, Taskmq__Lease *lease)
{
    taskmq__lease__init (lease);
    lease->task_id.data = hold->task->id.bytes;
    lease->task_id.len = 16;
    lease->attempt = hold->attempt;
    lease->secret.data = (uint8_t *) (uintptr_t) hold->secret;
    lease->secret.len = 16;
    lease->started = hold->started;
}

static pending_t *request_about (client_t *client, Taskmq__Request *request, const hold_t *hold,
                                 const void *body, size_t body_bytes)
{
    pending_t *pending = client_request (client, request, body, body_bytes);
    about_t *about = calloc (1, sizeof *about);
    *about = (about_t){
        hold->task, hold->attempt, hold->result_seed, hold->result_bytes, 0, hold->task->state_of,
        0,          false};
    pending->data = about;
    return pending;
}

/* Questions. */

static void send_ask (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Ask ask = TASKMQ__ASK__INIT;
    Taskmq__Lease lease;
    char key[8];
    char text[16];
    uint32_t question = rng_below (&client->world->rng, SIM_QUESTIONS);
    fill_lease (hold, &lease);
    question_fill (&ask, question, key, text);
    ask.lease = &lease;
    request.op_case = TASKMQ__REQUEST__OP_ASK;
    request.ask = &ask;
    ((about_t *) request_about (client, &request, hold, NULL, 0)->data)->question = question;
}

static void take_answers (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__TakeAnswers take = TASKMQ__TAKE_ANSWERS__INIT;
    Taskmq__Lease lease;
    fill_lease (hold, &lease);
    take.lease = &lease;
    take.seen = hold->answers;
    request.op_case = TASKMQ__REQUEST__OP_TAKE_ANSWERS;
    request.take_answers = &take;
    request_about (client, &request, hold, NULL, 0);
}

static void answers_taken (client_t *client, const pending_t *pending, const Taskmq__Reply *reply,
                           const uint8_t *body, size_t body_bytes)
{
    const about_t *about = pending->data;
    hold_t *hold = find_hold (client->state, about->task, about->attempt);
    const Taskmq__AnswerPage *page = reply->answer_page;
    if (reply->code != TMQ_OK || page == NULL) {
        return;
    }
    question_taken (client->world, about->task, page, body, body_bytes);
    if (hold != NULL && page->n_answers > 0) {
        hold->answers = page->answers[page->n_answers - 1]->number;
    }
}

/* Checkpoints. */

static void keep_state (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Checkpoint checkpoint = TASKMQ__CHECKPOINT__INIT;
    Taskmq__Lease lease;
    uint8_t state[SIM_STATE_BYTES];
    fill_lease (hold, &lease);
    keeper_fill (hold->task, hold->attempt, ++hold->kept, state);
    checkpoint.lease = &lease;
    checkpoint.state_bytes = sizeof state;
    request.op_case = TASKMQ__REQUEST__OP_CHECKPOINT;
    request.checkpoint = &checkpoint;
    request_about (client, &request, hold, state, sizeof state);
}

static void read_state (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__CheckpointRead read = TASKMQ__CHECKPOINT_READ__INIT;
    Taskmq__Lease lease;
    fill_lease (hold, &lease);
    read.lease = &lease;
    request.op_case = TASKMQ__REQUEST__OP_CHECKPOINT_READ;
    request.checkpoint_read = &read;
    request_about (client, &request, hold, NULL, 0);
}

/* Turns. */

static void tell_turn (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Turn turn = TASKMQ__TURN__INIT;
    Taskmq__Lease lease;
    uint8_t body[SIM_TURN_BODY];
    hold->started = true;
    fill_lease (hold, &lease);
    size_t length = teller_fill (hold->task, hold->attempt, ++hold->told, &turn, body);
    turn.lease = &lease;
    request.op_case = TASKMQ__REQUEST__OP_TURN;
    request.turn = &turn;
    about_t *about = request_about (client, &request, hold, body, length)->data;
    about->turn = hold->told;
    about->alone = hold->told == hold->heard + 1;
}

/* Mostly one after the other; of two at once the second may come first. */
static bool tells_turns (client_t *client, hold_t *hold)
{
    rng_t *rng = &client->world->rng;
    if (hold->mute || hold->told > hold->heard || !teller_may_tell (hold->task)) {
        return false;
    }
    tell_turn (client, hold);
    if (rng_chance (rng, 200)) {
        tell_turn (client, hold);
    }
    hold->act_ms = client->world->mono_ms + rng_between (rng, 1, 1000);
    return true;
}

static void turn_told (client_t *client, const about_t *about, const Taskmq__Reply *reply)
{
    hold_t *hold = find_hold (client->state, about->task, about->attempt);
    teller_told (client->world, about->task, about->attempt, about->turn, about->alone, reply);
    if (hold != NULL && reply->code == TMQ_OK && about->turn > hold->heard) {
        hold->heard = about->turn;
    } else if (hold != NULL && reply->code != TMQ_OK) {
        hold->mute = true;
    }
}

/* Registration. */

static void be_another (worker_t *worker, rng_t *rng)
{
    rng_fill (rng, worker->id, sizeof worker->id);
    worker->has_id = true;
    worker->drain_asked = worker->drained = worker->drained_before = false;
}

static void worker_start (client_t *client)
{
    if (client->state == NULL) {
        client->state = calloc (1, sizeof (worker_t));
    }
    worker_t *worker = client->state;
    rng_t *rng = &client->world->rng;
    if (!worker->has_id || rng_chance (rng, 400)) {
        be_another (worker, rng);
    }
    worker->seen = 0;
    worker->holds_count = 0;
    worker->capacity = 1 + rng_below (rng, 6);
}

static void worker_stop (client_t *client)
{
    worker_t *worker = client->state;
    if (worker != NULL) {
        worker->holds_count = 0;
    }
}

static void worker_linked (client_t *client)
{
    worker_t *worker = client->state;
    if (memcmp (client->gone_id, worker->id, sizeof worker->id) == 0) {
        check_gone_forget (client);
    }
    Taskmq__Register reg = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Lease leases[HOLDS_MAX];
    Taskmq__Lease *pointers[HOLDS_MAX];
    static char *queues[] = {"red", "green", "blue"};
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    for (size_t i = 0; i < worker->holds_count; i++) {
        fill_lease (&worker->holds[i], &leases[i]);
        pointers[i] = &leases[i];
    }
    reg.worker_id.data = worker->id;
    reg.worker_id.len = 16;
    reg.name = "sim-worker";
    reg.queues = queues;
    reg.n_queues = 3;
    reg.seen = worker->seen;
    reg.capacity = worker->capacity;
    reg.leases = pointers;
    reg.n_leases = worker->holds_count;
    label.key = label.value = (char *) (uintptr_t) "strong";
    reg.labels = labels;
    worker->strong = warden_is_strong (client);
    reg.n_labels = worker->strong;
    request.op_case = TASKMQ__REQUEST__OP_REGISTER;
    request.register_ = &reg;
    worker->registered = false;
    worker->drained_before = worker->drained;
    client_request (client, &request, NULL, 0);
}

const uint8_t *worker_id (const client_t *client)
{
    const worker_t *worker = client->state;
    return worker->id;
}

/* The broker says that the attempt is not its any more. */
static void over (worker_t *worker, hold_t *hold)
{
    if (hold->stubborn) {
        hold->lost = true;
    } else if (!hold->ending) {
        drop_hold (worker, hold);
    }
}

/* What the broker says about a lease: at registration and at renewals. */
static void lease_state (client_t *client, const Taskmq__LeaseState *state)
{
    worker_t *worker = client->state;
    known_t *task = check_find (client->world, &state->task_id);
    hold_t *hold = task == NULL ? NULL : find_hold (worker, task, state->attempt);
    if (hold != NULL && state->code == TMQ_OK && state->answers > 0 && !hold->ending) {
        take_answers (client, hold);
    }
    if (hold == NULL || state->code == TMQ_OK) {
        return;
    }
    if (state->code == TMQ_CANCELLED) {
        hold->cancelled = true;
    } else {
        over (worker, hold);
    }
}

/* By the answer, or a notice: either may be lost. */
static void be_drained (client_t *client)
{
    worker_t *worker = client->state;
    if (!worker->drained) {
        worker->leave_ms = client->world->mono_ms + rng_between (&client->world->rng, 200, 20000);
    }
    worker->drained = true;
}

/* Assignments. */

static void take (client_t *client, const Taskmq__Assignment *assignment, const uint8_t *body)
{
    worker_t *worker = client->state;
    world_t *world = client->world;
    rng_t *rng = &world->rng;
    bool mine =
        assignment->worker_id.len == 16 && memcmp (assignment->worker_id.data, worker->id, 16) == 0;
    if (!mine || !worker->registered) {
        return; /* for the process that was here before the crash */
    }
    if (assignment->number <= worker->seen) {
        sim_fail (world, "worker %u: assignment %llu after %llu", client->index,
                  (unsigned long long) assignment->number, (unsigned long long) worker->seen);
        return;
    }
    if (worker->drained_before) {
        sim_fail (world, "worker %u: it was drained and got a task", client->index);
        return;
    }
    worker->seen = assignment->number;
    check_assigned (world, client->index, assignment, body);
    known_t *task = check_find (world, &assignment->task_id);
    if (world->failed || worker->holds_count == HOLDS_MAX) {
        return;
    }
    question_check_assigned (world, task, assignment);
    keeper_check_assigned (world, task, assignment);
    teller_check_assigned (world, task, assignment);
    hold_t *hold = &worker->holds[worker->holds_count++];
    *hold =
        (hold_t){.task = task, .attempt = assignment->attempt, .lease_ms = assignment->lease_ms};
    memcpy (hold->secret, assignment->secret.data, 16);
    uint32_t dice = rng_below (rng, 100);
    hold->plan = dice < 80   ? PLAN_COMPLETE
                 : dice < 90 ? PLAN_FAIL
                 : dice < 93 ? PLAN_FAIL_FOR_GOOD
                             : PLAN_RELEASE;
    if (task->lasting && rng_chance (rng, FAILS_LASTING)) {
        hold->plan = PLAN_FAIL_FOR_GOOD; /* there is a longer time for what failed */
    }
    hold->act_ms = world->mono_ms + rng_between (rng, 0, 2500);
    if (task->max_runtime_ms > 0 && rng_chance (rng, 400)) {
        hold->act_ms += rng_between (rng, 0, 3 * (int64_t) task->max_runtime_ms + 2000);
    }
    hold->renew_ms = world->mono_ms + hold->lease_ms / 3;
    hold->stubborn = sim_fault (world, 400);
    if (sim_fault (world, 120)) {
        hold->negligent = true;
        hold->stubborn = true;
        hold->act_ms = world->mono_ms + rng_between (rng, 0, 3 * (int64_t) hold->lease_ms);
    }
    hold->result_seed = (uint8_t) rng_next (rng);
    hold->result_bytes = rng_chance (rng, 200) ? 0 : rng_below (rng, RESULT_MAX);
    if (assignment->answers > 0) {
        take_answers (client, hold);
    }
    if (assignment->extra != NULL && assignment->extra->checkpoint_bytes > 0) {
        read_state (client, hold);
    }
    if (assignment->extra != NULL && assignment->extra->turns > 0) {
        teller_look (client, task);
    }
}

static void worker_message (client_t *client, const Taskmq__BrokerMessage *message,
                            const uint8_t *body, size_t body_bytes)
{
    worker_t *worker = client->state;
    for (size_t i = 0; i < message->n_assignments; i++) {
        const Taskmq__Assignment *assignment = message->assignments[i];
        if (assignment->payload_bytes > body_bytes) {
            sim_fail (client->world, "worker %u: a payload is missing", client->index);
            return;
        }
        const known_t *given = check_find (client->world, &assignment->task_id);
        if (given != NULL && given->needs && given->alias == 0 && !worker->strong) {
            sim_fail (client->world, "worker %u got a task that it may not have", client->index);
        }
        take (client, assignment, body);
        body = body == NULL ? NULL : body + assignment->payload_bytes;
        body_bytes -= assignment->payload_bytes;
    }
    for (size_t i = 0; i < message->n_drains; i++) {
        if (memcmp (message->drains[i]->worker_id.data, worker->id, sizeof worker->id) == 0) {
            be_drained (client);
        }
    }
    for (size_t i = 0; i < message->n_cancels; i++) {
        const Taskmq__CancelNotice *notice = message->cancels[i];
        known_t *task = check_find (client->world, &notice->task_id);
        hold_t *hold = task == NULL ? NULL : find_hold (worker, task, notice->attempt);
        if (hold != NULL && notice->code != 0) {
            over (worker, hold);
        } else if (hold != NULL) {
            hold->cancelled = true;
        }
    }
    for (size_t i = 0; i < message->n_answers; i++) {
        const Taskmq__AnswerNotice *notice = message->answers[i];
        known_t *task = check_find (client->world, &notice->task_id);
        hold_t *hold = task == NULL ? NULL : find_hold (worker, task, notice->attempt);
        if (hold != NULL && !hold->ending) {
            take_answers (client, hold);
        }
    }
}

/* Work. */

static void send_complete (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Lease lease;
    uint8_t result[RESULT_MAX];
    blob_name_t name;
    uint32_t blob = hold->plain ? SIM_BLOBS : carrier_brings (client, hold->task, hold->attempt);
    if (blob < SIM_BLOBS) {
        hold->result_bytes = 0;
        blobs_name (blob, &name);
        complete.result_blob = &name.blob;
    }
    fill_lease (hold, &lease);
    check_result_fill (hold->result_seed, result, hold->result_bytes);
    check_brought (hold->task, hold->attempt, hold->result_seed, hold->result_bytes);
    complete.lease = &lease;
    complete.result_bytes = hold->result_bytes;
    request.op_case = TASKMQ__REQUEST__OP_COMPLETE;
    request.complete = &complete;
    request_about (client, &request, hold, result, hold->result_bytes);
}

static void send_fail (client_t *client, hold_t *hold, bool for_good)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Fail fail = TASKMQ__FAIL__INIT;
    Taskmq__Lease lease;
    fill_lease (hold, &lease);
    fail.lease = &lease;
    fail.code = 7;
    fail.message = "it did not work";
    fail.final = for_good;
    request.op_case = TASKMQ__REQUEST__OP_FAIL;
    request.fail = &fail;
    request_about (client, &request, hold, NULL, 0);
}

static void send_release (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Release release = TASKMQ__RELEASE__INIT;
    Taskmq__Lease lease;
    fill_lease (hold, &lease);
    release.lease = &lease;
    release.no_delay = rng_chance (&client->world->rng, 500);
    request.op_case = TASKMQ__REQUEST__OP_RELEASE;
    request.release = &release;
    request_about (client, &request, hold, NULL, 0);
}

static void send_cancel_ack (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__CancelAck ack = TASKMQ__CANCEL_ACK__INIT;
    Taskmq__Lease lease;
    fill_lease (hold, &lease);
    ack.lease = &lease;
    request.op_case = TASKMQ__REQUEST__OP_CANCEL_ACK;
    request.cancel_ack = &ack;
    request_about (client, &request, hold, NULL, 0);
}

static void report (client_t *client, hold_t *hold)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Lease lease;
    Taskmq__Started started = TASKMQ__STARTED__INIT;
    Taskmq__Push push = TASKMQ__PUSH__INIT;
    Taskmq__Progress progress = TASKMQ__PROGRESS__INIT;
    fill_lease (hold, &lease);
    if (!hold->started) {
        hold->started = true;
        lease.started = true;
        started.lease = &lease;
        request.op_case = TASKMQ__REQUEST__OP_STARTED;
        request.started = &started;
    } else {
        progress.done = rng_below (&client->world->rng, 100);
        progress.total = 100;
        push.lease = &lease;
        push.progress = rng_chance (&client->world->rng, 500) ? &progress : NULL;
        push.status_message = push.progress == NULL ? "half way" : "";
        request.op_case = TASKMQ__REQUEST__OP_PUSH;
        request.push = &push;
    }
    request_about (client, &request, hold, NULL, 0);
}

static void send_log (client_t *client, hold_t *hold)
{
    uint8_t bytes[48];
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Log log = TASKMQ__LOG__INIT;
    Taskmq__Lease lease;
    fill_lease (hold, &lease);
    log.lease = &lease;
    log.stream = TMQ_LOG_OUT;
    log.offset = hold->said;
    log.log_bytes = 1 + (uint32_t) (hold->said % sizeof bytes);
    logs_fill (&hold->task->id, hold->attempt, hold->said, bytes, log.log_bytes);
    hold->said += log.log_bytes;
    request.op_case = TASKMQ__REQUEST__OP_LOG;
    request.log = &log;
    request_about (client, &request, hold, bytes, log.log_bytes);
}

static void act (client_t *client, hold_t *hold)
{
    rng_t *rng = &client->world->rng;
    if (hold->cancelled && !hold->stubborn) {
        hold->ending = true;
        send_cancel_ack (client, hold);
        return;
    }
    if (rng_chance (rng, hold->started ? 150 : 700)) {
        report (client, hold);
        hold->act_ms = client->world->mono_ms + rng_between (rng, 1, 800);
        return;
    }
    if (client->world->faults && rng_chance (rng, 120)) {
        send_ask (client, hold);
        hold->act_ms = client->world->mono_ms + rng_between (rng, 1, 2500);
        return;
    }
    if (client->world->faults && rng_chance (rng, hold->plan == PLAN_COMPLETE ? 120 : 500)) {
        keep_state (client, hold);
        hold->act_ms = client->world->mono_ms + rng_between (rng, 1, 1000);
        return;
    }
    if (client->world->faults && rng_chance (rng, hold->plan == PLAN_COMPLETE ? 550 : 800) &&
        tells_turns (client, hold)) {
        return;
    }
    for (int i = 0; client->world->faults && i < 4; i++) {
        send_log (client, hold);
    }
    hold->ending = true;
    switch (hold->plan) {
    case PLAN_COMPLETE: send_complete (client, hold); break;
    case PLAN_FAIL: send_fail (client, hold, false); break;
    case PLAN_FAIL_FOR_GOOD: send_fail (client, hold, true); break;
    case PLAN_RELEASE: send_release (client, hold); break;
    }
}

static void renew (client_t *client)
{
    worker_t *worker = client->state;
    world_t *world = client->world;
    Taskmq__Renew renew_op = TASKMQ__RENEW__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__Lease leases[HOLDS_MAX];
    Taskmq__Lease *pointers[HOLDS_MAX];
    for (size_t i = 0; i < worker->holds_count; i++) {
        hold_t *hold = &worker->holds[i];
        if (!hold->negligent && !hold->lost && world->mono_ms >= hold->renew_ms) {
            fill_lease (hold, &leases[renew_op.n_leases]);
            pointers[renew_op.n_leases] = &leases[renew_op.n_leases];
            renew_op.n_leases++;
            hold->renew_ms = world->mono_ms + hold->lease_ms / 3;
        }
    }
    if (renew_op.n_leases > 0) {
        renew_op.worker_id.data = worker->id;
        renew_op.worker_id.len = 16;
        renew_op.leases = pointers;
        request.op_case = TASKMQ__REQUEST__OP_RENEW;
        request.renew = &renew_op;
        client_request (client, &request, NULL, 0);
    }
}

static void send_credit (client_t *client)
{
    worker_t *worker = client->state;
    Taskmq__WorkerCredit credit = TASKMQ__WORKER_CREDIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    credit.worker_id.data = worker->id;
    credit.worker_id.len = 16;
    credit.seen = worker->seen;
    credit.capacity = worker->capacity;
    request.op_case = TASKMQ__REQUEST__OP_WORKER_CREDIT;
    request.worker_credit = &credit;
    worker->credit_id = client_tell (client, &request);
}

/* Somebody wants it to end. It does so when it holds nothing, and another one takes its place. */
static void drain (client_t *client)
{
    worker_t *worker = client->state;
    world_t *world = client->world;
    Taskmq__WorkerDrain wanted = TASKMQ__WORKER_DRAIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    if (worker->drained && worker->holds_count == 0 && world->mono_ms >= worker->leave_ms) {
        be_another (worker, &world->rng);
        worker->seen = 0;
        worker_linked (client);
        return;
    }
    if (worker->drain_asked || !sim_fault (world, 4)) {
        return;
    }
    worker->drain_asked = true;
    memcpy (worker->drain_of, worker->id, sizeof worker->id);
    wanted.worker_id.data = worker->id;
    wanted.worker_id.len = 16;
    request.op_case = TASKMQ__REQUEST__OP_WORKER_DRAIN;
    request.worker_drain = &wanted;
    client_request (client, &request, NULL, 0);
}

static void take_drain (client_t *client, const Taskmq__Reply *reply)
{
    worker_t *worker = client->state;
    if (reply->code != TMQ_OK || memcmp (worker->drain_of, worker->id, sizeof worker->id) != 0) {
        return; /* it is another one meanwhile */
    }
    be_drained (client);
}

/* The broker does not know the worker on this link: a register of the old link came late. */
static void worker_refused (client_t *client, uint64_t id, uint32_t code)
{
    worker_t *worker = client->state;
    if (id == worker->credit_id && code == TMQ_NOT_FOUND && worker->registered) {
        worker_linked (client);
    }
}

static void worker_tick (client_t *client)
{
    worker_t *worker = client->state;
    world_t *world = client->world;
    client->next_ms = world->mono_ms + rng_between (&world->rng, 5, 60);
    if (!worker->registered) {
        return;
    }
    for (size_t i = 0; i < worker->holds_count; i++) {
        hold_t *hold = &worker->holds[i];
        if (!hold->ending && world->mono_ms >= hold->act_ms) {
            act (client, hold);
        }
    }
    renew (client);
    drain (client);
    if (!worker->registered) {
        return;
    }
    if (world->mono_ms >= worker->credit_ms) {
        worker->credit_ms = world->mono_ms + CREDIT_EVERY_MS;
        if (rng_chance (&world->rng, 100)) {
            worker->capacity = 1 + rng_below (&world->rng, 6);
        }
        send_credit (client);
    }
    /* Also in the middle of it, when answers are on their way. */
    if (client->pending != NULL && sim_fault (world, world->options.client_crash / 10)) {
        client_crash (client);
    }
}

/* Answers. */

static void ended (client_t *client, const pending_t *pending, const Taskmq__Reply *reply)
{
    worker_t *worker = client->state;
    const about_t *about = pending->data;
    bool complete = pending->op == TASKMQ__REQUEST__OP_COMPLETE;
    hold_t *hold = find_hold (worker, about->task, about->attempt);
    if (complete && reply->code == TMQ_NO_BLOB) {
        if (hold != NULL) {
            hold->plain = true;
            send_complete (client, hold);
        }
        return;
    }
    bool stale = reply->code == TMQ_STALE_LEASE || reply->code == TMQ_NOT_FOUND ||
                 reply->code == TMQ_EXPIRED || reply->code == TMQ_WRONG_STATUS ||
                 reply->code == TMQ_CANCELLED || reply->code == TMQ_PURGED;
    if (reply->code == TMQ_OK && complete) {
        check_completed (client->world, about->task, about->attempt, about->result_seed,
                         about->result_bytes);
    } else if (reply->code == TMQ_OK) {
        check_ended_otherwise (client->world, about->task, about->attempt);
    } else if (!stale) {
        sim_fail (client->world, "worker %u: the end of task %u attempt %u is answered %u %s",
                  client->index, model_index (about->task->id.bytes), about->attempt, reply->code,
                  reply->text);
    }
    if (complete && reply->code == TMQ_STALE_LEASE && strstr (reply->text, "kept") != NULL &&
        about->attempt > about->task->kept_of) {
        about->task->kept_of = about->attempt;
    }
    if (complete && reply->code == TMQ_STALE_LEASE) {
        check_stale (client->world, about->task, about->attempt);
    }
    drop_hold (worker, find_hold (worker, about->task, about->attempt));
}

static void worker_reply (client_t *client, pending_t *pending, const Taskmq__Reply *reply,
                          const uint8_t *body, size_t body_bytes)
{
    worker_t *worker = client->state;
    switch (pending->op) {
    case TASKMQ__REQUEST__OP_ASK: {
        const about_t *about = pending->data;
        question_asked (client->world, about->task, about->question, reply);
        break;
    }
    case TASKMQ__REQUEST__OP_CHECKPOINT: {
        const about_t *about = pending->data;
        keeper_kept (client->world, about->task, about->attempt, reply);
        break;
    }
    case TASKMQ__REQUEST__OP_CHECKPOINT_READ: {
        const about_t *about = pending->data;
        keeper_read (client->world, about->task, about->attempt, about->state_of, reply, body);
        break;
    }
    case TASKMQ__REQUEST__OP_TURN: turn_told (client, pending->data, reply); break;
    case TASKMQ__REQUEST__OP_TURNS:
        teller_page (client->world, pending, reply, body, body_bytes);
        break;
    case TASKMQ__REQUEST__OP_TAKE_ANSWERS:
        answers_taken (client, pending, reply, body, body_bytes);
        break;
    case TASKMQ__REQUEST__OP_REGISTER:
        if (reply->code != TMQ_OK || reply->registered == NULL) {
            sim_fail (client->world, "worker %u: register is answered %u %s", client->index,
                      reply->code, reply->text);
            return;
        }
        worker->registered = true;
        client->link->registered = true;
        for (size_t i = 0; i < reply->registered->n_leases; i++) {
            lease_state (client, reply->registered->leases[i]);
        }
        break;
    case TASKMQ__REQUEST__OP_RENEW:
        for (size_t i = 0; reply->renewed != NULL && i < reply->renewed->n_leases; i++) {
            lease_state (client, reply->renewed->leases[i]);
        }
        break;
    case TASKMQ__REQUEST__OP_WORKER_DRAIN: take_drain (client, reply); break;
    case TASKMQ__REQUEST__OP_COMPLETE:
    case TASKMQ__REQUEST__OP_FAIL:
    case TASKMQ__REQUEST__OP_RELEASE:
    case TASKMQ__REQUEST__OP_CANCEL_ACK: ended (client, pending, reply); break;
    default: break; /* started, push: nothing follows from them */
    }
}

const actor_t worker_actor = {.name = "worker",
                              .start = worker_start,
                              .stop = worker_stop,
                              .linked = worker_linked,
                              .tick = worker_tick,
                              .reply = worker_reply,
                              .refused = worker_refused,
                              .message = worker_message};
