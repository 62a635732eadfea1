/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

#include "session_stage.h"

uint8_t stage_request_id[16] = {7};

uint64_t stage_send (rig_t *rig, size_t peer, Taskmq__Request *request)
{
    request->request_id = (ProtobufCBinaryData){sizeof (stage_request_id), stage_request_id};
    uint64_t sent = rig_send (rig, peer, request, NULL, 0);
    rig_settle (rig);
    return sent;
}

void stage_next_request (void)
{
    if (++stage_request_id[1] == 0)
        stage_request_id[2]++;
}

/* Requests. */

uint64_t stage_send_status (rig_t *rig, size_t peer, const char *name, tmq_session_status_t status,
                            const char *why)
{
    Taskmq__SessionStatus body = TASKMQ__SESSION_STATUS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.name = (char *) name;
    body.status = status;
    body.why = (char *) why;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_STATUS;
    request.session_status = &body;
    return stage_send (rig, peer, &request);
}

void stage_set_status (rig_t *rig, const char *name, tmq_session_status_t status)
{
    stage_next_request ();
    assert_int_equal (rig_code (rig, 0, stage_send_status (rig, 0, name, status, "")), TMQ_OK);
}

uint64_t stage_send_set (rig_t *rig, size_t peer, Taskmq__SessionSet *body)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_SET;
    request.session_set = body;
    return stage_send (rig, peer, &request);
}

unsigned stage_set_goal (rig_t *rig, size_t peer, const char *name, const char *goal)
{
    uint32_t fields[] = {TMQ_SESSION_FIELD_GOAL};
    Taskmq__SessionSet body = TASKMQ__SESSION_SET__INIT;
    body.name = (char *) name;
    body.goal = (char *) goal;
    body.fields = fields;
    body.n_fields = 1;
    stage_next_request ();
    return rig_code (rig, peer, stage_send_set (rig, peer, &body));
}

/* There is one, whether a task has made it or not. */
void stage_pause (rig_t *rig)
{
    assert_int_equal (stage_set_goal (rig, 0, "trip", "Lisbon"), TMQ_OK);
    stage_set_status (rig, "trip", TMQ_SESSION_STATUS_PAUSED);
}

void stage_resume (rig_t *rig)
{
    stage_set_status (rig, "trip", TMQ_SESSION_STATUS_ACTIVE);
}

void stage_set_salience (rig_t *rig, const char *name, uint32_t salience)
{
    uint32_t fields[] = {TMQ_SESSION_FIELD_SALIENCE};
    Taskmq__SessionSet body = TASKMQ__SESSION_SET__INIT;
    body.name = (char *) name;
    body.salience = salience;
    body.fields = fields;
    body.n_fields = 1;
    stage_next_request ();
    assert_int_equal (rig_code (rig, 0, stage_send_set (rig, 0, &body)), TMQ_OK);
}

uint64_t stage_send_name (rig_t *rig, size_t peer, Taskmq__Request__OpCase op, const char *name)
{
    Taskmq__SessionName body = TASKMQ__SESSION_NAME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.name = (char *) name;
    request.op_case = op;
    request.session_show = &body;
    return stage_send (rig, peer, &request);
}

const Taskmq__Reply *stage_show (rig_t *rig, size_t peer, const char *name)
{
    uint64_t sent = stage_send_name (rig, peer, TASKMQ__REQUEST__OP_SESSION_SHOW, name);
    return rig_reply (rig, peer, sent)->reply;
}

unsigned stage_remove (rig_t *rig, size_t peer, const char *name)
{
    return rig_code (rig, peer,
                     stage_send_name (rig, peer, TASKMQ__REQUEST__OP_SESSION_REMOVE, name));
}

uint64_t stage_send_queue (rig_t *rig, bool paused)
{
    Taskmq__QueuePause pausing = TASKMQ__QUEUE_PAUSE__INIT;
    Taskmq__QueueResume resuming = TASKMQ__QUEUE_RESUME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    pausing.queue = resuming.queue = (char *) "q";
    request.op_case = paused ? TASKMQ__REQUEST__OP_QUEUE_PAUSE : TASKMQ__REQUEST__OP_QUEUE_RESUME;
    if (paused)
        request.queue_pause = &pausing;
    else
        request.queue_resume = &resuming;
    stage_next_request ();
    return stage_send (rig, 0, &request);
}

void stage_set_queue (rig_t *rig, uint32_t field, uint32_t value)
{
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    Taskmq__QueueSet body = TASKMQ__QUEUE_SET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    settings.weight_of = field == TMQ_QUEUE_FIELD_WEIGHT_OF ? value : 0;
    settings.max_running = field == TMQ_QUEUE_FIELD_MAX_RUNNING ? value : 0;
    settings.max_per_key = field == TMQ_QUEUE_FIELD_MAX_PER_KEY ? value : 0;
    body.queue = (char *) "q";
    body.settings = &settings;
    body.fields = &field;
    body.n_fields = 1;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &body;
    stage_next_request ();
    assert_int_equal (rig_code (rig, 0, stage_send (rig, 0, &request)), TMQ_OK);
}

uint64_t stage_submit_spec (rig_t *rig, unsigned n, const char *session, Taskmq__TaskSpec *spec)
{
    spec->queue = (char *) "q";
    spec->session = (char *) session;
    uint64_t sent = rig_submit_spec (rig, 0, n, spec, "payload");
    rig_settle (rig);
    return sent;
}

void stage_submit (rig_t *rig, unsigned n, const char *session)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    stage_submit_spec (rig, n, session, &spec);
}

unsigned stage_code_of_submit (rig_t *rig, unsigned n, const char *session)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    uint64_t sent = stage_submit_spec (rig, n, session, &spec);
    return rig_reply (rig, 0, sent)->reply->submitted->items[0]->code;
}

void stage_complete_all (rig_t *rig)
{
    size_t count = rig_assignments (rig, 1); /* others may come meanwhile */
    for (size_t i = 0; i < count; i++) {
        rig_complete (rig, 1, rig_assignment (rig, 1, i)->assignment, "done");
        rig_settle (rig);
    }
    rig_forget (rig, 1);
}

void stage_assert_held (rig_t *rig, unsigned n)
{
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_task (rig, 0, n)->phase, TMQ_PHASE_PAUSED);
}
