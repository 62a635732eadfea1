/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Workers in the library's core: leases that hold through reconnects, ends that arrive. */
#include "worker_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_nothing (core_worker_t *worker, int code)
{
    tmq_assignment_t *assignment = NULL;
    assert_int_equal (core_worker_next (&assignment, worker, NULL), code);
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
    rig_t *rig = rig_working (&worker, &assignment);
    assert_int_equal (assignment->payload_bytes, 4);
    assert_memory_equal (assignment->payload, "load", 4);
    assert_int_equal (core_worker_held (worker), 1);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    rig_assign (rig, 1, 2); /* a number that was seen */
    expect_nothing (worker, TMQ_TIMEOUT);
    rig_finish (rig, assignment);
}

static void assignments_from_before_the_registration_do_not_count (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    rig_assign (rig, 2, 2);
    expect_nothing (worker, TMQ_TIMEOUT);
    rig_registered (rig, 1, TMQ_OK);
    assert_int_equal (rig->message->requests[0]->register_->seen, 1);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    rig_assign (rig, 2, 3);
    tmq_assignment_free (rig_task (worker, 3));
    rig_finish (rig, assignment);
}

static void a_lease_that_is_not_held_any_more_is_told (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    rig_registered (rig, 1, TMQ_STALE_LEASE);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_LOST);
    rig_change (worker, TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_held (worker), 0);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_FAIL, assignment, "late"), TMQ_STALE_LEASE);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "late"), TMQ_STALE_LEASE);
    rig_finish (rig, assignment);
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
    rig_t *rig = rig_working (&worker, &assignment);
    rig_assign (rig, 2, 2); /* prefetched, not taken: renewed as well */
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
    rig_finish (rig, assignment);
}

static void an_attempt_whose_handler_returned_is_not_renewed (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "r"), TMQ_OK);
    core_worker_returned (worker, assignment);
    assert_int_equal (core_worker_held (worker), 1); /* its end is open */
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
    assert_non_null (request);
    rig_refuse (rig, request->id, TMQ_INVALID, 0);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_INVALID);
    core_worker_returned (worker, assignment);
    assert_int_equal (core_worker_held (worker), 0);
    assert_null (pass_to_renewal (rig, 2 * LEASE_MS));
    rig_finish (rig, assignment);
}

static void half_of_a_lease_without_renewal_warns (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
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
    rig_change (worker, TMQ_ATTEMPT_HELD);
    rig_finish (rig, assignment);
}

static void a_thousand_leases_are_two_renewals (void **state)
{
    (void) state;
    rig_t *rig = rig_new (NULL);
    rig->heartbeat_ms = LEASE_MS; /* silence is no matter here */
    rig_welcome (rig);
    core_worker_t *worker = rig_worker (rig, 1000, false);
    rig_registered (rig, 0, TMQ_OK);
    for (uint32_t i = 1; i <= 1000; i++)
        rig_assign (rig, i, i);
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

static void cancel (rig_t *rig, uint32_t task)
{
    rig_end_task (rig, task, 0);
}

/* Its max_runtime is 60 s and a little. */
static void half_of_max_runtime_warns_once (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
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
    rig_finish (rig, assignment);
}

static void an_attempt_that_ran_too_long_is_lost (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    tmq_attempt_change_t change;
    rig_assign (rig, 2, 2);
    rig_end_task (rig, 1, TMQ_TASK_ERROR_MAX_RUNTIME);
    rig_end_task (rig, 2, TMQ_TASK_ERROR_MAX_RUNTIME); /* it was never taken */
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, TMQ_ATTEMPT_LOST);
    assert_string_equal (change.message, "changed my mind");
    assert_int_equal (core_worker_held (worker), 0);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_RELEASE, assignment, ""), TMQ_STALE_LEASE);
    rig_finish (rig, assignment);
}

/* The broker may keep it, so it is said with the secret of the lease that is over, also on another
 * link; nothing else is said of the attempt. */
static void a_late_success_is_sent (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    rig_cut (rig);
    rig_pass (rig, 200);
    rig_welcome (rig);
    rig_registered (rig, 1, TMQ_STALE_LEASE);
    rig_change (worker, TMQ_ATTEMPT_LOST);
    assert_int_equal (core_worker_started (worker, assignment, NULL), TMQ_STALE_LEASE);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "late"), TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
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
    assert_int_equal (rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "again"), TMQ_STALE_LEASE);
    rig_finish (rig, assignment);
}

static void a_cancel_is_told_and_acknowledged (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    tmq_attempt_change_t change;
    cancel (rig, 1);
    cancel (rig, 1); /* said twice, told once */
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_CANCELLED);
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, TMQ_ATTEMPT_CANCELLED);
    assert_string_equal (change.message, "changed my mind");
    assert_int_equal (core_worker_changed (&change, worker), TMQ_TIMEOUT);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_CANCELLED, assignment, ""), TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_CANCEL_ACK);
    assert_non_null (request);
    rig_ok (rig, request->id);
    rig_answered (rig, TMQ_OP_CANCELLED, TMQ_OK);
    assert_int_equal (core_worker_held (worker), 0);
    rig_finish (rig, assignment);
}

static void a_prefetched_task_is_acknowledged_by_the_library (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    rig_assign (rig, 2, 2);
    cancel (rig, 2);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_CANCEL_ACK));
    expect_nothing (worker, TMQ_TIMEOUT);
    assert_int_equal (core_worker_held (worker), 1);
    rig_finish (rig, assignment);
}

/* The end. */

static void a_completion_survives_a_reconnect (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    uint8_t request_id[16];
    rig_t *rig = rig_working (&worker, &assignment);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "done"), TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
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
    rig_finish (rig, assignment);
}

static void an_end_without_answer_can_be_said_again (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    tmq_outcome_t outcome = {.result = "x", .result_bytes = 1};
    core_worker_end (worker, TMQ_OP_COMPLETE, assignment, &outcome, 0,
                     (core_target_t){NULL, NULL, NULL}, rig->now_ms + 1000, rig->now_ms, NULL);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_COMPLETE));
    rig_pass (rig, 1000);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_UNKNOWN);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    assert_int_equal (rig_end (worker, rig, TMQ_OP_COMPLETE, assignment, "x"), TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_COMPLETE);
    assert_non_null (request);
    rig_refuse (rig, request->id, TMQ_STALE_LEASE, 0);
    rig_answered (rig, TMQ_OP_COMPLETE, TMQ_STALE_LEASE);
    assert_int_equal (core_worker_held (worker), 0);
    rig_finish (rig, assignment);
}

static void an_outcome_is_copied (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    char result[] = "scene", type[] = "a/b", message[] = "torn", data[] = "{}";
    tmq_outcome_t outcome = {.result = result,
                             .result_bytes = 5,
                             .result_type = type,
                             .error_code = 7,
                             .error_message = message,
                             .error_data = data};
    assert_int_equal (core_worker_end (worker, TMQ_OP_FAIL, assignment, &outcome, 0,
                                       (core_target_t){NULL, NULL, NULL}, rig->now_ms + 60000,
                                       rig->now_ms, NULL),
                      TMQ_OK);
    result[0] = type[0] = message[0] = data[0] = 'x';
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_FAIL);
    assert_non_null (request);
    assert_string_equal (request->fail->message, "torn");
    assert_string_equal (request->fail->data, "{}");
    assert_string_equal (request->fail->result_type, "a/b");
    assert_int_equal (request->fail->code, 7);
    assert_false (request->fail->final);
    assert_memory_equal (rig->body, "scene", 5);
    rig_finish (rig, assignment);
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
        rig_t *rig = rig_working (&worker, &assignment);
        assert_int_equal (core_worker_end (worker, TMQ_OP_RELEASE, assignment, NULL, delays[i].said,
                                           (core_target_t){NULL, NULL, NULL}, rig->now_ms + 60000,
                                           rig->now_ms, NULL),
                          TMQ_OK);
        const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_RELEASE);
        assert_non_null (request);
        assert_int_equal (request->release->delay_ms, delays[i].sent);
        assert_int_equal (request->release->no_delay, delays[i].no_delay);
        rig_ok (rig, request->id);
        rig_answered (rig, TMQ_OP_RELEASE, TMQ_OK);
        assert_int_equal (core_worker_held (worker), 0);
        rig_finish (rig, assignment);
    }
}

static void reserved_codes_are_refused (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    tmq_error_t error;
    rig_t *rig = rig_working (&worker, &assignment);
    tmq_outcome_t outcome = {.error_code = TMQ_TASK_ERROR_EXPIRED, .error_message = "mine"};
    assert_int_equal (core_worker_end (worker, TMQ_OP_FAIL, assignment, &outcome, 0,
                                       (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                                       &error),
                      TMQ_INVALID);
    assert_non_null (strstr (error.text, "error_code"));
    outcome.error_code = -5;
    outcome.final = true;
    assert_int_equal (core_worker_end (worker, TMQ_OP_FAIL, assignment, &outcome, 0,
                                       (core_target_t){NULL, NULL, NULL}, CORE_NEVER, rig->now_ms,
                                       NULL),
                      TMQ_OK);
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_FAIL);
    assert_non_null (request);
    assert_int_equal (request->fail->code, -5);
    assert_true (request->fail->final);
    assert_string_equal (request->fail->message, "mine");
    rig_finish (rig, assignment);
}

static void draining_gives_back_what_was_not_taken (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    rig_assign (rig, 2, 2);
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
    rig_assign (rig, 3, 3); /* was on its way */
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_RELEASE));
    expect_nothing (worker, TMQ_CLOSED);
    assert_int_equal (core_worker_held (worker), 1);
    rig_finish (rig, assignment);
}

static void leaving_is_said (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    core_worker_free (worker);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_LEAVE));
    rig_assign (rig, 2, 2); /* for nobody */
    rig_finish (rig, assignment);
}

static void a_refused_registration_ends_the_worker (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    core_worker_t *worker = rig_worker (rig, 1, false);
    rig_refuse (rig, rig_request (rig, TASKMQ__REQUEST__OP_REGISTER)->id, TMQ_DENIED, 0);
    expect_nothing (worker, TMQ_DENIED);
    rig_free (rig);
}

static void a_worker_that_is_not_known_registers_again (void **state)
{
    (void) state;
    core_worker_t *worker;
    tmq_assignment_t *assignment;
    rig_t *rig = rig_working (&worker, &assignment);
    rig_pass (rig, TMQ_HEARTBEAT_MS); /* at rest, credit goes with the heartbeat */
    const Taskmq__Request *request = rig_find_request (rig, TASKMQ__REQUEST__OP_WORKER_CREDIT);
    assert_non_null (request);
    rig_refuse (rig, request->id, TMQ_NOT_FOUND, 0);
    request = rig_find_request (rig, TASKMQ__REQUEST__OP_REGISTER);
    assert_non_null (request);
    assert_int_equal (request->register_->n_leases, 1);
    assert_int_equal (core_worker_state (worker, assignment), TMQ_ATTEMPT_HELD);
    rig_finish (rig, assignment);
}

static void a_registration_without_answer_ends_the_link (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    uint64_t connection = core_link_wanted (rig->core).connection;
    rig_worker (rig, 1, false);
    assert_non_null (rig_find_request (rig, TASKMQ__REQUEST__OP_REGISTER));
    for (int i = 0; i < 31; i++) /* heartbeats are answered, the registration is not */
        pass_to_renewal (rig, 1000);
    assert_int_not_equal (core_link_wanted (rig->core).connection, connection);
    rig_free (rig);
}

static void readiness_is_told (void **state)
{
    (void) state;
    rig_t *rig = rig_linked (NULL);
    core_worker_t *worker = rig_worker (rig, 2, true);
    rig_registered (rig, 0, TMQ_OK);
    rig_assign (rig, 1, 1);
    core_answer_t *answer = rig_answer (rig, TMQ_OP_WORKER_READY, TMQ_OK);
    assert_ptr_equal (answer->completion.user, rig);
    answer->queued = false;
    tmq_assignment_t *assignment = rig_task (worker, 1);
    cancel (rig, 1);
    rig_answer (rig, TMQ_OP_WORKER_READY, TMQ_OK);
    rig_finish (rig, assignment);
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
        cmocka_unit_test (readiness_is_told),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
