/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "worker_rig.h"

#include <string.h>

static uint8_t secret[16] = {9, 8, 7};

core_worker_t *rig_worker (rig_t *rig, uint32_t capacity, bool notify)
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

void rig_registered (rig_t *rig, size_t leases, int code)
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

void rig_assign (rig_t *rig, uint64_t number, uint32_t task)
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

tmq_assignment_t *rig_task (core_worker_t *worker, uint32_t task)
{
    tmq_assignment_t *assignment = NULL;
    tmq_id_t id = rig_id (task);
    assert_int_equal (core_worker_next (&assignment, worker, NULL), TMQ_OK);
    assert_memory_equal (assignment->task_id.bytes, id.bytes, 16);
    assert_int_equal (assignment->max_runtime_ms, 60000 + task);
    assert_string_equal (assignment->trace, "00-1");
    return assignment;
}

void rig_change (core_worker_t *worker, tmq_attempt_state_t expected)
{
    tmq_attempt_change_t change;
    assert_int_equal (core_worker_changed (&change, worker), TMQ_OK);
    assert_int_equal (change.state, expected);
}

void rig_end_task (rig_t *rig, uint32_t task, int32_t code)
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

rig_t *rig_working (core_worker_t **worker, tmq_assignment_t **assignment)
{
    rig_t *rig = rig_linked (NULL);
    *worker = rig_worker (rig, 4, false);
    rig_registered (rig, 0, TMQ_OK);
    rig_assign (rig, 1, 1);
    *assignment = rig_task (*worker, 1);
    return rig;
}

void rig_finish (rig_t *rig, tmq_assignment_t *assignment)
{
    tmq_assignment_free (assignment);
    rig_free (rig);
}

int rig_end (core_worker_t *worker, rig_t *rig, tmq_op_t op, const tmq_assignment_t *of,
             const char *result)
{
    tmq_outcome_t outcome = {.result = result, .result_bytes = strlen (result)};
    return core_worker_end (worker, op, of, &outcome, 0, (core_target_t){NULL, NULL, NULL},
                            rig->now_ms + 60000, rig->now_ms, NULL);
}
