/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers in the library's core: leases that hold through reconnects, ends that arrive. */
#include "lib_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 30000 };

static uint8_t secret[16] = {9, 8, 7};

static core_worker_t *worker_new (rig_t *rig, uint32_t capacity, bool notify)
{
    static const char *const queues[] = {"a", "b"};
    core_worker_t *worker = NULL;
    tmq_worker_options_t options;
    tmq_worker_options_init (&options);
    options.name = "tester";
    options.queues = queues;
    options.queues_count = 2;
    options.capacity = capacity;
    options.notify = notify;
    options.user = rig;
    assert_int_equal (core_worker_new (&worker, rig->core, &options, NULL, NULL), TMQ_OK);
    return worker;
}

static uint8_t worker_id[16]; /* of the registration seen last */

/* Answers the register that has to be next; every listed lease gets this code. */
static void registered (rig_t *rig, size_t leases, int code)
{
    const Taskmq__Request *request = rig_request (rig, TASKMQ__REQUEST__OP_REGISTER);
    assert_int_equal (request->register_->n_leases, leases);
    memcpy (worker_id, request->register_->worker_id.data, 16);
    Taskmq__LeaseState states[10];
    Taskmq__LeaseState *pointers[10];
    tmq_id_t ids[10];
    for (size_t i = 0; i < leases; i++) {
        taskmq__lease_state__init (&states[i]);
        pointers[i] = &states[i];
        memcpy (ids[i].bytes, request->register_->leases[i]->task_id.data, 16);
        states[i].task_id = rig_bytes (&ids[i]);
        states[i].attempt = request->register_->leases[i]->attempt;
        states[i].code = (uint32_t) code;
        states[i].lease_ms = LEASE_MS;
    }
    Taskmq__Registered body = TASKMQ__REGISTERED__INIT;
    body.n_leases = leases;
    body.leases = pointers;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_REGISTERED;
    reply.registered = &body;
    rig_reply (rig, &reply, NULL, 0);
}

static void assign (rig_t *rig, uint64_t number, uint32_t task)
{
    tmq_id_t id = rig_id (task);
    Taskmq__Assignment assignment = TASKMQ__ASSIGNMENT__INIT;
    Taskmq__Assignment *assignments[] = {&assignment};
    assignment.worker_id = (ProtobufCBinaryData){16, worker_id};
    assignment.number = number;
    assignment.task_id = rig_bytes (&id);
    assignment.attempt = 1;
    assignment.secret = (ProtobufCBinaryData){16, secret};
    assignment.lease_ms = LEASE_MS;
    assignment.payload_bytes = 4;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    extra.max_runtime_ms = 60000 + task;
    extra.trace = (char *) "00-1";
    assignment.extra = &extra;
    Taskmq__BrokerMessage message = TASKMQ__BROKER_MESSAGE__INIT;
    message.n_assignments = 1;
    message.assignments = assignments;
    rig_send (rig, &message, "load", 4);
}

static tmq_assignment_t *take (core_worker_t *worker, uint32_t task)
{
    tmq_assignment_t *assignment = NULL;
    tmq_id_t id = rig_id (task);
    assert_int_equal (core_worker_next (&assignment, worker, NULL), TMQ_OK);
    assert_memory_equal (assignment->task_id.bytes, id.bytes, 16);
    assert_int_equal (assignment->max_runtime_ms, 60000 + task);
    assert_string_equal (assignment->trace, "00-1");
    return assignment;
}

static void expect_nothing (core_worker_t *worker, int code)
{
    tmq_assignment_t *assignment = NULL;
    assert_int_equal (core_worker_next (&assignment, worker, NULL), code);
}

static void expect_change (core_worker_t *worker, tmq_attempt_state_t expected)
{
    tmq_attempt_change_t change;
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, expected);
}

/* A linked rig with one registered worker that holds task 1. */
static rig_t *working (core_worker_t **worker, tmq_assignment_t **assignment)
{
    rig_t *rig = rig_linked (NULL);
    *worker = worker_new (rig, 4, false);
    registered (rig, 0, TMQ_OK);
    assign (rig, 1, 1);
    *assignment = take (*worker, 1);
    return rig;
}

static void finish (rig_t *rig, tmq_assignment_t *assignment)
{
    tmq_assignment_free (assignment);
    rig_free (rig);
}

/* The first request of that kind among all that are to be sent; heartbeats and credit beside it. */
static const Taskmq__Request *find_request (rig_t *rig, Taskmq__Request__OpCase op)
{
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++)
            if (rig->message->requests[i]->op_case == op)
                return rig->message->requests[i];
    return NULL;
}

static int end (core_worker_t *worker, rig_t *rig, tmq_op_t op, const tmq_assignment_t *of,
                const char *result)
{
    tmq_outcome_t outcome = {.result = result, .result_bytes = strlen (result)};
    return core_worker_end (worker, op, of, &outcome, 0, (core_target_t){NULL, NULL},
                            rig->now_ms + 60000, rig->now_ms, NULL);
}

/* Assignments. */

static void options_are_copied (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    char name[] = "tester", queue[] = "films";
    const char *queues[] = {queue};
    core_worker_t *worker = NULL;
    tmq_worker_options_t options;
    tmq_worker_options_init (&options);
    options.name = name;
    options.queues = queues;
    options.queues_count = 1;
    assert_int_equal (core_worker_new (&worker, rig->core, &options, NULL, NULL), TMQ_OK);
    name[0] = queue[0] = 'x';
    queues[0] = NULL;
    memset (&options, 0, sizeof options);
    for (int i = 0; i < 2; i++) { /* with the first link, and with a later one */
        rig_welcome (rig);
        const Taskmq__Register *said = rig_request (rig, TASKMQ__REQUEST__OP_REGISTER)->register_;
        assert_string_equal (said->name, "tester");
        assert_int_equal (said->n_queues, 1);
        assert_string_equal (said->queues[0], "films");
        assert_int_equal (said->capacity, 1);
        rig_cut (rig);
        rig_pass (rig, 500);
    }
    rig_free (rig);
}

static void an_assignment_carries_its_payload (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    assert_int_equal (assignment->payload_bytes, 4);
    assert_memory_equal (assignment->payload, "load", 4);
    assert_int_equal (core_worker_held (worker), 1);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    assign (rig, 1, 2); /* a number that was seen */
    expect_nothing (worker, TMQ_TIMEOUT);
    finish (rig, assignment);
}

static void assignments_from_before_the_registration_do_not_count (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    assign (rig, 2, 2);
    expect_nothing (worker, TMQ_TIMEOUT);
    registered (rig, 1, TMQ_OK);
    assert_int_equal (rig->message->requests[0]->register_->seen, 1);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    assign (rig, 2, 3);
    tmq_assignment_free (take (worker, 3));
    finish (rig, assignment);
}

static void a_lease_that_is_not_held_any_more_is_told (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    registered (rig, 1, TMQ_STALE_LEASE);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_LOST);
    expect_change (worker, TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_held (worker), 0);
    assert_int_equal (end (worker, rig, TMQ_OP_FAIL, assignment, "late"), TMQ_STALE_LEASE);
    assert_int_equal (end (worker, rig, TMQ_OP_COMPLETE, assignment, "late"), TMQ_STALE_LEASE);
    finish (rig, assignment);
}

/* Leases. */

static void answer_renewal (rig_t *rig, const Taskmq__Request *request, int code)
{
    tmq_id_t id;
    memcpy (id.bytes, request->renew->leases[0]->task_id.data, 16);
    Taskmq__LeaseState lease = TASKMQ__LEASE_STATE__INIT;
    Taskmq__LeaseState *leases[] = {&lease};
    lease.task_id = rig_bytes (&id);
    lease.attempt = 1;
    lease.code = (uint32_t) code;
    lease.lease_ms = LEASE_MS;
    Taskmq__Renewed renewed = TASKMQ__RENEWED__INIT;
    renewed.n_leases = 1;
    renewed.leases = leases;
    Taskmq__Reply reply = TASKMQ__REPLY__INIT;
    reply.id = request->id;
    reply.body_case = TASKMQ__REPLY__BODY_RENEWED;
    reply.renewed = &renewed;
    rig_reply (rig, &reply, NULL, 0);
}

/* Lets time pass with a broker that answers heartbeats; the first renewal, or NULL. */
static const Taskmq__Request *pass_to_renewal (rig_t *rig, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 500) {
        rig_pass (rig, 500);
        while (rig_take (rig))
            for (size_t i = 0; i < rig->message->n_requests; i++) {
                const Taskmq__Request *request = rig->message->requests[i];
                if (request->op_case == TASKMQ__REQUEST__OP_RENEW)
                    return request;
                if (request->op_case == TASKMQ__REQUEST__OP_HEARTBEAT)
                    rig_ok (rig, request->id);
            }
    }
    return NULL;
}

static void a_lease_is_renewed_after_a_third (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    assign (rig, 2, 2); /* prefetched, not taken: renewed as well */
    int64_t start_ms = rig->now_ms;
    const Taskmq__Request *request = pass_to_renewal (rig, LEASE_MS);
    assert_non_null (request);
    assert_int_equal (request->renew->n_leases, 2);
    assert_in_range (rig->now_ms - start_ms, LEASE_MS / 3 - 500, LEASE_MS / 3 + 500);
    answer_renewal (rig, request, TMQ_OK);
    start_ms = rig->now_ms;
    request = pass_to_renewal (rig, LEASE_MS);
    assert_non_null (request);
    assert_true (rig->now_ms - start_ms >= LEASE_MS / 6 - 500);
    finish (rig, assignment);
}

static void an_attempt_whose_handler_returned_is_not_renewed (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    assert_int_equal (end (worker, rig, TMQ_OP_COMPLETE, assignment, "r"), TMQ_OK);
    core_worker_returned (worker, assignment);
    assert_int_equal (core_worker_held (worker), 1); /* its end is open */
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
    assert_non_null (request);
    rig_refuse (rig, request->id, TMQ_INVALID, 0);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_INVALID);
    core_worker_returned (worker, assignment);
    assert_int_equal (core_worker_held (worker), 0);
    assert_null (pass_to_renewal (rig, 2 * LEASE_MS));
    finish (rig, assignment);
}

static void half_of_a_lease_without_renewal_warns (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    tmq_attempt_change_t change;
    int64_t start_ms = rig->now_ms;
    while (core_worker_changed (&change, worker) == TMQ_TIMEOUT) {
        pass_to_renewal (rig, 500);
        assert_true (rig->now_ms - start_ms < 2 * LEASE_MS);
    }
    assert_int_equal (change.state, TMQ_ATTEMPT_ENDING);
    assert_in_range (rig->now_ms - start_ms, LEASE_MS / 2, LEASE_MS / 2 + 1000);
    /* Time alone ends nothing: the broker may have been away. */
    for (int i = 0; i < 200; i++)
        pass_to_renewal (rig, 500);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_ENDING);
    const Taskmq__Request *request = pass_to_renewal (rig, LEASE_MS);
    assert_non_null (request);
    answer_renewal (rig, request, TMQ_OK);
    expect_change (worker, TMQ_ATTEMPT_HELD);
    finish (rig, assignment);
}

static void a_thousand_leases_are_two_renewals (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig->heartbeat_ms = LEASE_MS; /* silence is no matter here */
    rig_welcome (rig);
    core_worker_t *worker = worker_new (rig, 1000, false);
    registered (rig, 0, TMQ_OK);
    for (uint32_t i = 1; i <= 1000; i++)
        assign (rig, i, i);
    assert_int_equal (core_worker_held (worker), 1000);
    size_t renewals = 0;
    size_t leases = 0;
    rig_pass (rig, LEASE_MS / 3 + 10);
    while (rig_take (rig))
        for (size_t i = 0; i < rig->message->n_requests; i++)
            if (rig->message->requests[i]->op_case == TASKMQ__REQUEST__OP_RENEW) {
                renewals++;
                leases += rig->message->requests[i]->renew->n_leases;
            }
    assert_int_equal (leases, 1000);
    assert_int_equal (renewals, 2);
    rig_free (rig);
}

/* Cancel. */

static void tell_end (rig_t *rig, uint32_t task, int32_t code)
{
    static char message[] = "changed my mind";
    tmq_id_t id = rig_id (task);
    Taskmq__CancelNotice notice = TASKMQ__CANCEL_NOTICE__INIT;
    Taskmq__CancelNotice *notices[] = {&notice};
    notice.worker_id = (ProtobufCBinaryData){16, worker_id};
    notice.task_id = rig_bytes (&id);
    notice.attempt = 1;
    notice.message = message;
    notice.code = code;
    Taskmq__BrokerMessage envelope = TASKMQ__BROKER_MESSAGE__INIT;
    envelope.n_cancels = 1;
    envelope.cancels = notices;
    rig_send (rig, &envelope, NULL, 0);
}

static void cancel (rig_t *rig, uint32_t task)
{
    tell_end (rig, task, 0);
}

/* Its max_runtime is 60 s and a little. */
static void half_of_max_runtime_warns_once (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    tmq_attempt_change_t change;
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_OK);
    int64_t start_ms = rig->now_ms;
    while (core_worker_changed (&change, worker) == TMQ_TIMEOUT) {
        const Taskmq__Request *request = pass_to_renewal (rig, 500);
        if (request != NULL)
            answer_renewal (rig, request, TMQ_OK);
        assert_true (rig->now_ms - start_ms < 40000);
    }
    assert_int_equal (change.state, TMQ_ATTEMPT_HURRY);
    assert_in_range (rig->now_ms - start_ms, 30000, 31000);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HURRY);
    for (int i = 0; i < 100; i++) {
        const Taskmq__Request *request = pass_to_renewal (rig, 500);
        if (request != NULL)
            answer_renewal (rig, request, TMQ_OK);
    }
    assert_int_equal (core_worker_changed (&change, worker), TMQ_TIMEOUT);
    finish (rig, assignment);
}

static void an_attempt_that_ran_too_long_is_lost (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    tmq_attempt_change_t change;
    assign (rig, 2, 2);
    tell_end (rig, 1, TMQ_TASK_ERROR_MAX_RUNTIME);
    tell_end (rig, 2, TMQ_TASK_ERROR_MAX_RUNTIME); /* it was never taken */
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, TMQ_ATTEMPT_LOST);
    assert_string_equal (change.message, "changed my mind");
    assert_int_equal (core_worker_held (worker), 0);
    assert_int_equal (end (worker, rig, TMQ_OP_RELEASE, assignment, ""), TMQ_STALE_LEASE);
    finish (rig, assignment);
}

/* The broker may keep it, so it is said with the secret of the lease that is over, also on another
 * link; nothing else is said of the attempt. */
static void a_late_success_is_sent (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    registered (rig, 1, TMQ_STALE_LEASE);
    expect_change (worker, TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_STALE_LEASE);
    assert_int_equal (end (worker, rig, TMQ_OP_COMPLETE, assignment, "late"), TMQ_OK);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
    assert_non_null (request);
    assert_int_equal (request->complete->lease->attempt, assignment->attempt);
    assert_int_equal (request->complete->lease->secret.len, 16);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_held (worker), 0);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 2);
    assert_int_equal (rig->message->requests[0]->register_->n_leases, 0);
    request = rig->message->requests[1];
    assert_int_equal (request->op_case, TASKMQ__REQUEST__OP_COMPLETE);
    rig_refuse (rig, request->id, TMQ_STALE_LEASE, 0);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_STALE_LEASE);
    assert_int_equal (end (worker, rig, TMQ_OP_COMPLETE, assignment, "again"), TMQ_STALE_LEASE);
    finish (rig, assignment);
}

static void a_cancel_is_told_and_acknowledged (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    tmq_attempt_change_t change;
    cancel (rig, 1);
    cancel (rig, 1); /* said twice, told once */
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_CANCELLED);
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, TMQ_ATTEMPT_CANCELLED);
    assert_string_equal (change.message, "changed my mind");
    assert_int_equal (core_worker_changed (&change, worker), TMQ_TIMEOUT);
    assert_int_equal (end (worker, rig, TMQ_OP_CANCELLED, assignment, ""), TMQ_OK);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_CANCEL_ACK);
    assert_non_null (request);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_CANCELLED, TMQ_OK);
    assert_int_equal (core_worker_held (worker), 0);
    finish (rig, assignment);
}

static void a_prefetched_task_is_acknowledged_by_the_library (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    assign (rig, 2, 2);
    cancel (rig, 2);
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_CANCEL_ACK));
    expect_nothing (worker, TMQ_TIMEOUT);
    assert_int_equal (core_worker_held (worker), 1);
    finish (rig, assignment);
}

/* The end. */

static void a_completion_survives_a_reconnect (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    uint8_t request_id[16];
    rig_t *rig = working (&worker, &assignment);
    assert_int_equal (end (worker, rig, TMQ_OP_COMPLETE, assignment, "done"), TMQ_OK);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
    assert_non_null (request);
    memcpy (request_id, request->request_id.data, 16);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_ENDED);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    /* It had been done: the registration says so, and that is not a loss. */
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 2);
    assert_int_equal (rig->message->requests[0]->op_case, TASKMQ__REQUEST__OP_REGISTER);
    request = rig->message->requests[1];
    assert_int_equal (request->op_case, TASKMQ__REQUEST__OP_COMPLETE);
    assert_memory_equal (request->request_id.data, request_id, 16);
    assert_int_equal (rig->body_bytes, 4);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_OK);
    tmq_attempt_change_t change;
    assert_int_equal (core_worker_changed (&change, worker), TMQ_TIMEOUT);
    assert_int_equal (core_worker_held (worker), 0);
    finish (rig, assignment);
}

static void an_end_without_answer_can_be_said_again (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    tmq_outcome_t outcome = {.result = "x", .result_bytes = 1};
    core_worker_end (worker, TMQ_OP_COMPLETE, assignment, &outcome, 0, (core_target_t){NULL, NULL},
                     rig->now_ms + 1000, rig->now_ms, NULL);
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_COMPLETE));
    rig_pass (rig, 1000);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_UNKNOWN);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    assert_int_equal (end (worker, rig, TMQ_OP_COMPLETE, assignment, "x"), TMQ_OK);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
    assert_non_null (request);
    rig_refuse (rig, request->id, TMQ_STALE_LEASE, 0);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_STALE_LEASE);
    assert_int_equal (core_worker_held (worker), 0);
    finish (rig, assignment);
}

static void an_outcome_is_copied (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    char result[] = "scene", type[] = "a/b", message[] = "torn", data[] = "{}";
    tmq_outcome_t outcome = {.result = result,
                             .result_bytes = 5,
                             .result_type = type,
                             .error_code = 7,
                             .error_message = message,
                             .error_data = data};
    assert_int_equal (core_worker_end (worker, TMQ_OP_FAIL, assignment, &outcome, 0,
                                       (core_target_t){NULL, NULL}, rig->now_ms + 60000,
                                       rig->now_ms, NULL),
                      TMQ_OK);
    result[0] = type[0] = message[0] = data[0] = 'x';
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_FAIL);
    assert_non_null (request);
    assert_string_equal (request->fail->message, "torn");
    assert_string_equal (request->fail->data, "{}");
    assert_string_equal (request->fail->result_type, "a/b");
    assert_int_equal (request->fail->code, 7);
    assert_false (request->fail->final);
    assert_memory_equal (rig->body, "scene", 5);
    finish (rig, assignment);
}

static void a_release_tells_its_delay (void **state)
{
    (void) state;
    static const struct {
        uint32_t said;
        uint32_t sent;
        bool no_delay;
    } delays[] = {{7500, 7500, false}, {0, 0, true}, {UINT32_MAX, 0, false}};
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
        core_worker_t *worker;
        tmq_assignment_t *assignment;
        rig_t *rig = working (&worker, &assignment);
        assert_int_equal (core_worker_end (worker, TMQ_OP_RELEASE, assignment, NULL, delays[i].said,
                                           (core_target_t){NULL, NULL}, rig->now_ms + 60000,
                                           rig->now_ms, NULL),
                          TMQ_OK);
        const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_RELEASE);
        assert_non_null (request);
        assert_int_equal (request->release->delay_ms, delays[i].sent);
        assert_int_equal (request->release->no_delay, delays[i].no_delay);
        rig_ok (rig, request->id);
        rig_answered (rig, TMQ_OP_RELEASE, TMQ_OK);
        assert_int_equal (core_worker_held (worker), 0);
        finish (rig, assignment);
    }
}

static void reserved_codes_are_refused (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    tmq_error_t error;
    rig_t *rig = working (&worker, &assignment);
    tmq_outcome_t outcome = {.error_code = TMQ_TASK_ERROR_EXPIRED, .error_message = "mine"};
    assert_int_equal (core_worker_end (worker, TMQ_OP_FAIL, assignment, &outcome, 0,
                                       (core_target_t){NULL, NULL}, CORE_NEVER, rig->now_ms,
                                       &error),
                      TMQ_INVALID);
    assert_non_null (strstr (error.text, "error_code"));
    outcome.error_code = -5;
    outcome.final = true;
    assert_int_equal (core_worker_end (worker, TMQ_OP_FAIL, assignment, &outcome, 0,
                                       (core_target_t){NULL, NULL}, CORE_NEVER, rig->now_ms, NULL),
                      TMQ_OK);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_FAIL);
    assert_non_null (request);
    assert_int_equal (request->fail->code, -5);
    assert_true (request->fail->final);
    assert_string_equal (request->fail->message, "mine");
    finish (rig, assignment);
}

static void draining_gives_back_what_was_not_taken (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    assign (rig, 2, 2);
    assert_int_equal (core_worker_drain (worker, NULL), TMQ_OK);
    assert_true (rig_take (rig));
    bool released = false;
    bool credit = false;
    for (size_t i = 0; i < rig->message->n_requests; i++) {
        const Taskmq__Request *request = rig->message->requests[i];
        if (request->op_case == TASKMQ__REQUEST__OP_RELEASE)
            released = request->release->no_delay;
        if (request->op_case == TASKMQ__REQUEST__OP_WORKER_CREDIT)
            credit = request->worker_credit->capacity == 0 && request->worker_credit->seen == 2;
    }
    assert_true (released);
    assert_true (credit);
    expect_nothing (worker, TMQ_CLOSED);
    assign (rig, 3, 3); /* was on its way */
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_RELEASE));
    expect_nothing (worker, TMQ_CLOSED);
    assert_int_equal (core_worker_held (worker), 1);
    finish (rig, assignment);
}

static void leaving_is_said (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    core_worker_free (worker);
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_LEAVE));
    assign (rig, 2, 2); /* for nobody */
    finish (rig, assignment);
}

static void a_refused_registration_ends_the_worker (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    core_worker_t *worker = worker_new (rig, 1, false);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_REGISTER)->id, TMQ_DENIED, 0);
    expect_nothing (worker, TMQ_DENIED);
    rig_free (rig);
}

static void a_worker_that_is_not_known_registers_again (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    rig_pass (rig, TMQ_HEARTBEAT_MS); /* at rest, credit goes with the heartbeat */
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_WORKER_CREDIT);
    assert_non_null (request);
    rig_refuse (rig, request->id, TMQ_NOT_FOUND, 0);
    request = find_request (rig, TASKMQ__REQUEST__OP_REGISTER);
    assert_non_null (request);
    assert_int_equal (request->register_->n_leases, 1);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    finish (rig, assignment);
}

static void a_registration_without_answer_ends_the_link (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint64_t connection = core_link_wanted (rig->core).connection;
    worker_new (rig, 1, false);
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_REGISTER));
    for (int i = 0; i < 31; i++) /* heartbeats are answered, the registration is not */
        pass_to_renewal (rig, 1000);
    assert_int_not_equal (core_link_wanted (rig->core).connection, connection);
    rig_free (rig);
}

/* Progress and messages. */

static void started_is_told_and_repeated (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_OK);
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_OK);
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_STARTED));
    assert_null (find_request (rig, TASKMQ__REQUEST__OP_STARTED));
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    registered (rig, 1, TMQ_OK);
    assert_true (rig->message->requests[0]->register_->leases[0]->started);
    finish (rig, assignment);
}

static void of_progress_the_latest_is_sent (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    size_t sent = 0;
    double newest = 0;
    for (unsigned i = 1; i <= 1000; i++) { /* one each millisecond */
        tmq_progress_t progress = {.done = i + 0.5, .total = 1000.5, .unit = "steps"};
        assert_int_equal (core_worker_progress (worker, assignment, &progress, rig->now_ms, NULL),
                          TMQ_OK);
        rig_pass (rig, 1);
        const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_PUSH);
        if (request != NULL) {
            sent++;
            newest = request->push->progress->done;
            assert_true (newest == i + 0.5 || newest == i - 0.5);
            assert_string_equal (request->push->progress->unit, "steps");
        }
    }
    assert_in_range (sent, 9, 12);
    rig_pass (rig, 100);
    const Taskmq__Request *last = find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_true (newest == 1000.5 || (last != NULL && last->push->progress->done == 1000.5));
    const double bad[] = {NAN, INFINITY, -1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tmq_progress_t progress = {.done = bad[i]};
        tmq_error_t error;
        assert_int_equal (core_worker_progress (worker, assignment, &progress, rig->now_ms, &error),
                          TMQ_INVALID);
        assert_string_equal (error.text, "done must be a finite number from 0 up");
        progress = (tmq_progress_t){.total = bad[i]};
        assert_int_equal (core_worker_progress (worker, assignment, &progress, rig->now_ms, &error),
                          TMQ_INVALID);
    }
    finish (rig, assignment);
}

static void say (core_worker_t *worker, rig_t *rig, const tmq_assignment_t *of, const char *text,
                 int64_t timeout_ms)
{
    assert_int_equal (core_worker_message (worker, of, text, (core_target_t){NULL, NULL},
                                           rig->now_ms + timeout_ms, rig->now_ms, NULL),
                      TMQ_OK);
}

static void messages_are_merged_and_all_answered (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    say (worker, rig, assignment, "first", 5000);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_PUSH, TMQ_OK);
    say (worker, rig, assignment, "second", 5000);
    say (worker, rig, assignment, "third", 5000);
    say (worker, rig, assignment, "fourth", 5000);
    assert_null (find_request (rig, TASKMQ__REQUEST__OP_PUSH)); /* not within 100 ms */
    rig_pass (rig, 100);
    request = find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    assert_string_equal (request->push->status_message, "fourth");
    rig_ok (rig, request->id);
    for (int i = 0; i < 3; i++)
        rig_answered (rig, TMQ_OP_PUSH, TMQ_OK);
    rig_no_answer (rig);
    finish (rig, assignment);
}

static void merged_messages_keep_their_deadlines (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    say (worker, rig, assignment, "first", 60000);
    assert_non_null (find_request (rig, TASKMQ__REQUEST__OP_PUSH));
    say (worker, rig, assignment, "older", 3000);
    say (worker, rig, assignment, "newer", 1000); /* leads, and has less time */
    rig_pass (rig, 100);
    uint8_t request_id[16];
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    memcpy (request_id, request->request_id.data, 16);
    rig_pass (rig, 900);
    rig_answered (rig, TMQ_OP_PUSH, TMQ_UNKNOWN);
    rig_no_answer (rig);
    request = find_request (rig, TASKMQ__REQUEST__OP_PUSH); /* the older one goes on with it */
    assert_non_null (request);
    assert_string_equal (request->push->status_message, "newer");
    assert_memory_equal (request->request_id.data, request_id, 16);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_PUSH, TMQ_OK);
    finish (rig, assignment);
}

static void what_was_said_before_the_end_is_sent_before_it (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    say (worker, rig, assignment, "first", 5000);
    find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    say (worker, rig, assignment, "last words", 5000);
    end (worker, rig, TMQ_OP_COMPLETE, assignment, "x");
    assert_true (rig_take (rig));
    assert_int_equal (rig->message->n_requests, 2);
    assert_string_equal (rig->message->requests[0]->push->status_message, "last words");
    assert_int_equal (rig->message->requests[1]->op_case, TASKMQ__REQUEST__OP_COMPLETE);
    finish (rig, assignment);
}

static void a_message_of_a_lost_attempt_is_stale (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = working (&worker, &assignment);
    say (worker, rig, assignment, "first", 5000);
    const Taskmq__Request *request = find_request (rig, TASKMQ__REQUEST__OP_PUSH);
    assert_non_null (request);
    uint64_t number = request->id;
    say (worker, rig, assignment, "second", 5000);
    say (worker, rig, assignment, "third", 5000);
    rig_refuse (rig, number, TMQ_STALE_LEASE, 0);
    for (int i = 0; i < 3; i++)
        rig_answered (rig, TMQ_OP_PUSH, TMQ_STALE_LEASE);
    expect_change (worker, TMQ_ATTEMPT_LOST);
    finish (rig, assignment);
}

static void readiness_is_told (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    core_worker_t *worker = worker_new (rig, 2, true);
    registered (rig, 0, TMQ_OK);
    assign (rig, 1, 1);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_WORKER_READY, TMQ_OK);
    assert_ptr_equal (answer->completion.user, rig);
    answer->queued = false;
    tmq_assignment_t *assignment = take (worker, 1);
    cancel (rig, 1);
    rig_answer (rig, TMQ_OP_WORKER_READY, TMQ_OK);
    finish (rig, assignment);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (options_are_copied),
        cmocka_unit_test (an_assignment_carries_its_payload),
        cmocka_unit_test (assignments_from_before_the_registration_do_not_count),
        cmocka_unit_test (a_lease_that_is_not_held_any_more_is_told),
        cmocka_unit_test (a_lease_is_renewed_after_a_third),
        cmocka_unit_test (an_attempt_whose_handler_returned_is_not_renewed),
        cmocka_unit_test (half_of_a_lease_without_renewal_warns),
        cmocka_unit_test (a_thousand_leases_are_two_renewals),
        cmocka_unit_test (half_of_max_runtime_warns_once),
        cmocka_unit_test (an_attempt_that_ran_too_long_is_lost),
        cmocka_unit_test (a_cancel_is_told_and_acknowledged),
        cmocka_unit_test (a_prefetched_task_is_acknowledged_by_the_library),
        cmocka_unit_test (a_completion_survives_a_reconnect),
        cmocka_unit_test (an_end_without_answer_can_be_said_again),
        cmocka_unit_test (a_late_success_is_sent),
        cmocka_unit_test (an_outcome_is_copied),
        cmocka_unit_test (a_release_tells_its_delay),
        cmocka_unit_test (reserved_codes_are_refused),
        cmocka_unit_test (draining_gives_back_what_was_not_taken),
        cmocka_unit_test (leaving_is_said),
        cmocka_unit_test (a_refused_registration_ends_the_worker),
        cmocka_unit_test (a_worker_that_is_not_known_registers_again),
        cmocka_unit_test (a_registration_without_answer_ends_the_link),
        cmocka_unit_test (started_is_told_and_repeated),
        cmocka_unit_test (of_progress_the_latest_is_sent),
        cmocka_unit_test (messages_are_merged_and_all_answered),
        cmocka_unit_test (merged_messages_keep_their_deadlines),
        cmocka_unit_test (what_was_said_before_the_end_is_sent_before_it),
        cmocka_unit_test (a_message_of_a_lost_attempt_is_stale),
        cmocka_unit_test (readiness_is_told),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
