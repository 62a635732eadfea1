/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Clients as they were before brokers had standbys: they set no features, speak the wire by
 * themselves, and repeat what has no answer. The owner's database stands still, the owner is killed
 * meanwhile, and its standby takes over. They keep their task and its attempt, and no answer has a
 * code that they cannot know. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "support/cmocka_all.h"
#include "support/raw.h"
#include "support/timing.h"
#include "taskmq_types.h"

enum { RETRY_MS = 500 /* what goes with a refusal */ };

#define QUEUE "old"
#define LEASE "6s" /* so long is between the two refusals */
#define AWAY "200ms"

/* A task, and all that repeats of its requests have to have in common. */
typedef struct job {
    tmq_id_t id;
    tmq_id_t submit_id;
    tmq_id_t complete_id;
    uint8_t secret[16];
    uint32_t attempt;
} job_t;

typedef struct worker {
    raw_t raw;
    tmq_id_t id;
} worker_t;

static ProtobufCBinaryData bytes_of (const tmq_id_t *id)
{
    return (ProtobufCBinaryData){sizeof id->bytes, (uint8_t *) id->bytes};
}

static void job_make (job_t *self)
{
    memset (self, 0, sizeof *self);
    tmq_id_make (&self->id);
    tmq_id_make (&self->submit_id);
    tmq_id_make (&self->complete_id);
}

/* Answers. */

static void assert_known (uint32_t code)
{
    assert_int_not_equal (code, TMQ_UNAVAILABLE);
}

static Taskmq__BrokerMessage *answer (raw_t *raw, uint64_t id, const Taskmq__Reply **reply)
{
    Taskmq__BrokerMessage *message = raw_answer (raw, id, reply);
    for (size_t i = 0; i < message->n_replies; i++)
        assert_known (message->replies[i]->code);
    return message;
}

static void drop (Taskmq__BrokerMessage *message)
{
    taskmq__broker_message__free_unpacked (message, NULL);
}

/* Submitting. */

static uint64_t submit_begin (raw_t *raw, const job_t *job)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__TaskSpec *specs[] = {&spec};
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    spec.task_id = bytes_of (&job->id);
    spec.queue = QUEUE;
    submit.tasks = specs;
    submit.n_tasks = 1;
    request.request_id = bytes_of (&job->submit_id);
    request.op_case = TASKMQ__REQUEST__OP_SUBMIT;
    request.submit = &submit;
    return raw_begin (raw, &request, NULL, 0);
}

/* Whether it was there already. */
static bool submit (raw_t *raw, const job_t *job)
{
    const Taskmq__Reply *reply;
    Taskmq__BrokerMessage *message = answer (raw, submit_begin (raw, job), &reply);
    assert_int_equal (reply->code, TMQ_OK);
    assert_int_equal (reply->submitted->n_items, 1);
    assert_int_equal (reply->submitted->items[0]->code, TMQ_OK);
    bool existing = reply->submitted->items[0]->existing;
    drop (message);
    return existing;
}

static void assert_refused (raw_t *raw, const job_t *job, tmq_code_t code)
{
    const Taskmq__Reply *reply;
    Taskmq__BrokerMessage *message = raw_answer (raw, submit_begin (raw, job), &reply);
    assert_int_equal (reply->code, code);
    assert_int_equal (reply->retry_after_ms, RETRY_MS);
    drop (message);
}

static void assert_completed (raw_t *raw, const job_t *job)
{
    Taskmq__Get get = TASKMQ__GET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    const Taskmq__Reply *reply;
    get.task_id = bytes_of (&job->id);
    request.op_case = TASKMQ__REQUEST__OP_GET;
    request.get = &get;
    Taskmq__BrokerMessage *message = answer (raw, raw_begin (raw, &request, NULL, 0), &reply);
    assert_int_equal (reply->code, TMQ_OK);
    assert_int_equal (reply->task->status, TMQ_STATUS_COMPLETED);
    assert_int_equal (reply->task->attempt, job->attempt);
    drop (message);
}

/* Working. */

static Taskmq__Lease lease_of (const job_t *job)
{
    Taskmq__Lease lease = TASKMQ__LEASE__INIT;
    lease.task_id = bytes_of (&job->id);
    lease.attempt = job->attempt;
    lease.secret = (ProtobufCBinaryData){sizeof job->secret, (uint8_t *) job->secret};
    return lease;
}

/* With these leases; the code of the last one. */
static uint32_t register_worker (worker_t *worker, const job_t *jobs, size_t count, uint64_t seen)
{
    static char *queues[] = {QUEUE};
    Taskmq__Lease leases[2];
    Taskmq__Lease *listed[] = {&leases[0], &leases[1]};
    Taskmq__Register registration = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    const Taskmq__Reply *reply;
    for (size_t i = 0; i < count; i++)
        leases[i] = lease_of (&jobs[i]);
    registration.worker_id = bytes_of (&worker->id);
    registration.name = "old";
    registration.queues = queues;
    registration.n_queues = 1;
    registration.seen = seen;
    registration.capacity = 2;
    registration.leases = listed;
    registration.n_leases = count;
    request.op_case = TASKMQ__REQUEST__OP_REGISTER;
    request.register_ = &registration;
    Taskmq__BrokerMessage *message =
        answer (&worker->raw, raw_begin (&worker->raw, &request, NULL, 0), &reply);
    assert_int_equal (reply->code, TMQ_OK);
    assert_int_equal (reply->registered->n_leases, count);
    uint32_t code = count == 0 ? TMQ_OK : reply->registered->leases[count - 1]->code;
    drop (message);
    return code;
}

static void take_assignment (worker_t *worker, job_t *job)
{
    Taskmq__BrokerMessage *message = raw_receive (&worker->raw);
    assert_int_equal (message->n_assignments, 1);
    const Taskmq__Assignment *assignment = message->assignments[0];
    assert_memory_equal (assignment->task_id.data, job->id.bytes, sizeof job->id.bytes);
    assert_int_equal (assignment->secret.len, sizeof job->secret);
    memcpy (job->secret, assignment->secret.data, sizeof job->secret);
    job->attempt = assignment->attempt;
    assert_int_equal (job->attempt, 1);
    drop (message);
}

static uint64_t complete_begin (worker_t *worker, const job_t *job)
{
    Taskmq__Lease lease = lease_of (job);
    Taskmq__Complete complete = TASKMQ__COMPLETE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    complete.lease = &lease;
    complete.result_bytes = 4;
    request.request_id = bytes_of (&job->complete_id);
    request.op_case = TASKMQ__REQUEST__OP_COMPLETE;
    request.complete = &complete;
    return raw_begin (&worker->raw, &request, "done", 4);
}

static void complete (worker_t *worker, const job_t *job)
{
    const Taskmq__Reply *reply;
    Taskmq__BrokerMessage *message = answer (&worker->raw, complete_begin (worker, job), &reply);
    assert_int_equal (reply->code, TMQ_OK);
    drop (message);
}

/* A link of its own, which goes at once. */
static uint32_t code_of_hello (const daemon_t *broker, uint32_t features)
{
    raw_t raw;
    raw_open (&raw, broker->endpoint);
    uint32_t code = raw_say_hello (&raw, features);
    raw_close (&raw);
    return code;
}

/* The database stands still. Each client hears what it can know; `late` has no answer. */
static void be_away (cluster_t *cluster, raw_t *old, worker_t *worker, const job_t *ended,
                     const job_t *late)
{
    const daemon_t *owner = &cluster->brokers[0];
    job_t other;
    raw_t today;
    job_make (&other);
    raw_open (&today, owner->endpoint);
    assert_int_equal (raw_say_hello (&today, TMQ_FEATURE_UNAVAILABLE), TMQ_OK);
    postgres_signal (&cluster->stage.server, SIGSTOP);
    submit_begin (old, late);
    complete_begin (worker, ended);
    WAIT_FOR (daemon_logged (owner, "the store is out of reach"), TIMING_PATIENCE_MS);
    assert_refused (&today, &other, TMQ_UNAVAILABLE);
    assert_refused (old, &other, TMQ_OVERLOADED);
    WAIT_FOR (daemon_logged (owner, "the store is no longer surely ours"), TIMING_PATIENCE_MS);
    assert_int_equal (code_of_hello (owner, TMQ_FEATURE_UNAVAILABLE), TMQ_UNAVAILABLE);
    assert_int_equal (code_of_hello (owner, 0), TMQ_LIMIT);
    raw_close (&today);
}

static void reconnect (raw_t *raw, const daemon_t *broker)
{
    raw_close (raw);
    raw_open (raw, broker->endpoint);
    raw_hello (raw);
}

static void test_old_clients_go_on_at_the_standby (void **state)
{
    (void) state;
    enum { ENDED, HELD, JOBS };
    cluster_t cluster;
    job_t jobs[JOBS], late;
    raw_t old;
    worker_t worker;
    setenv ("TASKMQD_DATABASE_AWAY", AWAY, 1);
    cluster_init (&cluster, 2, false, LEASE, 1);
    cluster_start (&cluster);
    raw_open (&old, cluster.brokers[0].endpoint);
    raw_open (&worker.raw, cluster.brokers[0].endpoint);
    raw_hello (&old);
    raw_hello (&worker.raw);
    tmq_id_make (&worker.id);
    register_worker (&worker, NULL, 0, 0);
    for (size_t i = 0; i < JOBS; i++) {
        job_make (&jobs[i]);
        assert_false (submit (&old, &jobs[i]));
        take_assignment (&worker, &jobs[i]);
    }
    job_make (&late);
    be_away (&cluster, &old, &worker, &jobs[ENDED], &late);
    cluster_kill (&cluster, 0);
    postgres_signal (&cluster.stage.server, SIGCONT);
    reconnect (&old, &cluster.brokers[1]);
    reconnect (&worker.raw, &cluster.brokers[1]);
    assert_int_equal (cluster_owner (&cluster, &cluster.stage.server), 1);
    assert_true (submit (&old, &jobs[HELD]));
    assert_int_equal (register_worker (&worker, jobs, JOBS, JOBS), TMQ_OK);
    complete (&worker, &jobs[ENDED]);
    complete (&worker, &jobs[HELD]);
    complete (&worker, &jobs[HELD]);
    submit (&old, &late);
    for (size_t i = 0; i < JOBS; i++)
        assert_completed (&old, &jobs[i]);
    assert_true (submit (&old, &late));
    raw_close (&old);
    raw_close (&worker.raw);
    daemon_stop (&cluster.brokers[1]);
    cluster_destroy (&cluster);
    unsetenv ("TASKMQD_DATABASE_AWAY");
}

int main (void)
{
    postgres_need ();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_old_clients_go_on_at_the_standby),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
