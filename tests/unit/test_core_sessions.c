/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Sessions: how a pause goes together with everything else that holds a task back, what a frozen
 * one refuses, shares, limits, rights, and what goes with one that is removed. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

static uint8_t next_id[16] = {7};

static uint64_t send (rig_t *rig, size_t peer, Taskmq__Request *request)
{
    request->request_id = (ProtobufCBinaryData){sizeof (next_id), next_id};
    uint64_t sent = rig_send (rig, peer, request, NULL, 0);
    rig_settle (rig);
    return sent;
}

static void another_request (void)
{
    if (++next_id[1] == 0)
        next_id[2]++;
}

/* Requests. */

static uint64_t send_status (rig_t *rig, size_t peer, const char *name, tmq_session_status_t status,
                             const char *why)
{
    Taskmq__SessionStatus body = TASKMQ__SESSION_STATUS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.name = (char *) name;
    body.status = status;
    body.why = (char *) why;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_STATUS;
    request.session_status = &body;
    return send (rig, peer, &request);
}

static void set_status (rig_t *rig, const char *name, tmq_session_status_t status)
{
    another_request ();
    assert_int_equal (rig_code (rig, 0, send_status (rig, 0, name, status, "")), TMQ_OK);
}

static uint64_t send_set (rig_t *rig, size_t peer, Taskmq__SessionSet *body)
{
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_SET;
    request.session_set = body;
    return send (rig, peer, &request);
}

static unsigned set_goal (rig_t *rig, size_t peer, const char *name, const char *goal)
{
    uint32_t fields[] = {TMQ_SESSION_FIELD_GOAL};
    Taskmq__SessionSet body = TASKMQ__SESSION_SET__INIT;
    body.name = (char *) name;
    body.goal = (char *) goal;
    body.fields = fields;
    body.n_fields = 1;
    another_request ();
    return rig_code (rig, peer, send_set (rig, peer, &body));
}

/* There is one, whether a task has made it or not. */
static void pause_session (rig_t *rig)
{
    assert_int_equal (set_goal (rig, 0, "trip", "Lisbon"), TMQ_OK);
    set_status (rig, "trip", TMQ_SESSION_STATUS_PAUSED);
}

static void resume_session (rig_t *rig)
{
    set_status (rig, "trip", TMQ_SESSION_STATUS_ACTIVE);
}

static void set_salience (rig_t *rig, const char *name, uint32_t salience)
{
    uint32_t fields[] = {TMQ_SESSION_FIELD_SALIENCE};
    Taskmq__SessionSet body = TASKMQ__SESSION_SET__INIT;
    body.name = (char *) name;
    body.salience = salience;
    body.fields = fields;
    body.n_fields = 1;
    another_request ();
    assert_int_equal (rig_code (rig, 0, send_set (rig, 0, &body)), TMQ_OK);
}

static uint64_t send_name (rig_t *rig, size_t peer, Taskmq__Request__OpCase op, const char *name)
{
    Taskmq__SessionName body = TASKMQ__SESSION_NAME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.name = (char *) name;
    request.op_case = op;
    request.session_show = &body;
    return send (rig, peer, &request);
}

static const Taskmq__Reply *show (rig_t *rig, size_t peer, const char *name)
{
    uint64_t sent = send_name (rig, peer, TASKMQ__REQUEST__OP_SESSION_SHOW, name);
    return rig_reply (rig, peer, sent)->reply;
}

static unsigned remove_session (rig_t *rig, size_t peer, const char *name)
{
    return rig_code (rig, peer, send_name (rig, peer, TASKMQ__REQUEST__OP_SESSION_REMOVE, name));
}

static size_t list_count (rig_t *rig, size_t peer, const char *after, uint32_t limit, bool *more)
{
    Taskmq__SessionList body = TASKMQ__SESSION_LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.after = (char *) after;
    body.limit = limit;
    request.op_case = TASKMQ__REQUEST__OP_SESSION_LIST;
    request.session_list = &body;
    const Taskmq__Reply *reply = rig_reply (rig, peer, send (rig, peer, &request))->reply;
    assert_int_equal (reply->code, TMQ_OK);
    *more = reply->session_page->more;
    return reply->session_page->n_sessions;
}

static uint64_t send_queue (rig_t *rig, bool paused)
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
    another_request ();
    return send (rig, 0, &request);
}

static void set_queue (rig_t *rig, uint32_t field, uint32_t value)
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
    another_request ();
    assert_int_equal (rig_code (rig, 0, send (rig, 0, &request)), TMQ_OK);
}

static uint64_t submit_spec (rig_t *rig, unsigned n, const char *session, Taskmq__TaskSpec *spec)
{
    spec->queue = (char *) "q";
    spec->session = (char *) session;
    uint64_t sent = rig_submit_spec (rig, 0, n, spec, "payload");
    rig_settle (rig);
    return sent;
}

static void submit (rig_t *rig, unsigned n, const char *session)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    submit_spec (rig, n, session, &spec);
}

static unsigned code_of_submit (rig_t *rig, unsigned n, const char *session)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    uint64_t sent = submit_spec (rig, n, session, &spec);
    return rig_reply (rig, 0, sent)->reply->submitted->items[0]->code;
}

static void complete_all (rig_t *rig)
{
    size_t count = rig_assignments (rig, 1); /* others may come meanwhile */
    for (size_t i = 0; i < count; i++) {
        rig_complete (rig, 1, rig_assignment (rig, 1, i)->assignment, "done");
        rig_settle (rig);
    }
    rig_forget (rig, 1);
}

static void assert_held (rig_t *rig, unsigned n)
{
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_task (rig, 0, n)->phase, TMQ_PHASE_PAUSED);
}

/* Made by a task. */

static void the_first_task_makes_its_session (void **state)
{
    rig_t *rig = *state;
    bool more;
    submit (rig, 1, "");
    assert_int_equal (list_count (rig, 0, "", 0, &more), 0);
    submit (rig, 2, "trip");
    submit (rig, 3, "trip");
    const Taskmq__Session *session = show (rig, 0, "trip")->session;
    assert_int_equal (session->status, TMQ_SESSION_STATUS_ACTIVE);
    assert_int_equal (session->salience, TMQ_SALIENCE_DEFAULT);
    assert_int_equal (session->tasks, 2);
    assert_string_equal (session->owner, "uid:0");
    assert_int_equal (show (rig, 0, "other")->code, TMQ_NOT_FOUND);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (show (rig, 0, "trip")->session->tasks, 2);
}

static void what_is_set_survives_a_restart (void **state)
{
    rig_t *rig = *state;
    uint32_t fields[] = {TMQ_SESSION_FIELD_GOAL, TMQ_SESSION_FIELD_SALIENCE,
                         TMQ_SESSION_FIELD_CONTEXT};
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    Taskmq__SessionSet body = TASKMQ__SESSION_SET__INIT;
    body.name = (char *) "trip";
    body.goal = (char *) "Lisbon";
    body.salience = 300;
    body.context = (char *) "{\"a\":1}";
    body.fields = fields;
    body.n_fields = 3;
    label.key = (char *) "who";
    label.value = (char *) "us";
    body.labels = labels;
    body.n_labels = 1;
    another_request ();
    uint64_t first = send_set (rig, 0, &body);
    assert_int_equal (rig_code (rig, 0, first), TMQ_OK);
    uint64_t version = rig_reply (rig, 0, first)->reply->session->version;
    rig_restart (rig);
    rig_link (rig, 0, "default");
    const Taskmq__Reply *again = rig_reply (rig, 0, send_set (rig, 0, &body))->reply;
    assert_int_equal (again->session->version, version); /* it is known by its request id */
    const Taskmq__Session *session = show (rig, 0, "trip")->session;
    assert_string_equal (session->goal, "Lisbon");
    assert_int_equal (session->salience, 300);
    assert_string_equal (session->context, "{\"a\":1}");
    assert_string_equal (session->labels[0]->value, "us");
    char *dropped[] = {(char *) "who"};
    Taskmq__SessionSet next = TASKMQ__SESSION_SET__INIT;
    next.name = (char *) "trip";
    next.drop_labels = dropped;
    next.n_drop_labels = 1;
    another_request ();
    assert_int_equal (rig_reply (rig, 0, send_set (rig, 0, &next))->reply->session->n_labels, 0);
    assert_string_equal (show (rig, 0, "trip")->session->goal, "Lisbon");
}

/* A pause beside everything else. */

static void a_paused_session_gives_nothing_to_workers (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, "trip"); /* it is ready, and stands before the others */
    pause_session (rig);
    submit (rig, 2, "trip");
    submit (rig, 3, "");
    submit (rig, 4, "else");
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_PAUSED);
    assert_int_equal (rig_task (rig, 0, 2)->phase, TMQ_PHASE_PAUSED);
    complete_all (rig);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    tmq_id_t first = rig_id (1); /* they have kept their order */
    assert_memory_equal (rig_assignment (rig, 1, 0)->assignment->task_id.data, first.bytes, 16);
}

static void a_pause_survives_a_restart (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, "trip");
    pause_session (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_held (rig, 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

/* Both hold it: it goes when both let it go, in either order. */
static void queue_and_session_are_paused (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    for (unsigned n = 1; n <= 4; n++) {
        bool queue_first = n % 2 == 1;
        bool session_before = n <= 2;
        if (session_before)
            pause_session (rig);
        assert_int_equal (rig_code (rig, 0, send_queue (rig, true)), TMQ_OK);
        submit (rig, n, "trip");
        if (!session_before)
            pause_session (rig);
        assert_held (rig, n);
        if (queue_first)
            send_queue (rig, false);
        else
            resume_session (rig);
        assert_held (rig, n);
        if (queue_first)
            resume_session (rig);
        else
            send_queue (rig, false);
        assert_int_equal (rig_assignments (rig, 1), 1);
        complete_all (rig);
    }
}

static void a_delay_ends_in_a_pause (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    rig_register (rig, 1, 90, "q", 5);
    spec.delay_ms = 1000;
    submit_spec (rig, 1, "trip", &spec);
    pause_session (rig);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_SCHEDULED);
    rig_advance (rig, 2000);
    assert_held (rig, 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_session_goes_on_before_a_delay_ends (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    rig_register (rig, 1, 90, "q", 5);
    pause_session (rig);
    spec.delay_ms = 1000;
    submit_spec (rig, 1, "trip", &spec);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    rig_advance (rig, 2000);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_retried_task_is_held (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    submit (rig, 1, "trip");
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, true);
    rig_settle (rig);
    rig_forget (rig, 1);
    pause_session (rig);
    rig_use_request_id (77);
    uint64_t retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_OK);
    assert_held (rig, 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_failed_attempt_is_tried_again_after_the_pause (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    submit (rig, 1, "trip");
    pause_session (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, false);
    rig_settle (rig);
    rig_forget (rig, 1);
    rig_advance (rig, 3000);
    assert_held (rig, 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_lost_lease_goes_back_into_the_pause (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    submit (rig, 1, "trip");
    assert_int_equal (rig_assignments (rig, 1), 1);
    pause_session (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING); /* nothing is taken away */
    rig_leave (rig, 1, 90);
    rig_settle (rig);
    rig_forget (rig, 1);
    rig_register (rig, 1, 91, "q", 5);
    rig_advance (rig, 3000);
    assert_held (rig, 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_dependency_ends_in_a_pause (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Dependency entry = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *after[] = {&entry};
    tmq_id_t id = rig_id (1);
    rig_register (rig, 1, 90, "q", 5);
    submit (rig, 1, "");
    entry.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    extra.after = after;
    extra.n_after = 1;
    spec.extra = &extra;
    submit_spec (rig, 2, "trip", &spec);
    pause_session (rig);
    assert_int_equal (rig_task (rig, 0, 2)->phase, TMQ_PHASE_BLOCKED);
    complete_all (rig);
    assert_held (rig, 2);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
}

static void a_held_task_expires_and_is_cancelled (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    pause_session (rig);
    spec.ttl_ms = 5000;
    submit_spec (rig, 1, "trip", &spec);
    submit (rig, 2, "trip");
    rig_cancel (rig, 0, 2);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_CANCELLED);
    rig_advance (rig, 7000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
    assert_int_equal (show (rig, 0, "trip")->session->tasks, 0);
    resume_session (rig);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
}

/* A cap is used by others while the session is paused, and counts when it goes on. */
static void a_pause_stands_beside_caps (void **state)
{
    rig_t *rig = *state;
    set_queue (rig, TMQ_QUEUE_FIELD_MAX_RUNNING, 1);
    rig_register (rig, 1, 90, "q", 5);
    pause_session (rig);
    submit (rig, 1, "trip");
    submit (rig, 2, "");
    assert_int_equal (rig_assignments (rig, 1), 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_READY);
    complete_all (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void a_pause_stands_beside_caps_of_keys (void **state)
{
    rig_t *rig = *state;
    set_queue (rig, TMQ_QUEUE_FIELD_WEIGHT_OF, TMQ_WEIGHT_OF_SESSION);
    set_queue (rig, TMQ_QUEUE_FIELD_MAX_PER_KEY, 1);
    for (unsigned n = 1; n <= 3; n++)
        submit (rig, n, "trip");
    submit (rig, 4, "else");
    pause_session (rig);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
    complete_all (rig);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_WORKING);
    assert_int_equal (rig_status (rig, 0, 3), TMQ_STATUS_QUEUED);
}

static void what_is_held_comes_back_some_in_each_round (void **state)
{
    enum { TASKS = 100 };
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.alarms = 10;
    config.round.assignments = 10;
    (void) state;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= TASKS; n++)
        submit (rig, n, "trip");
    submit (rig, TASKS + 1, "");
    pause_session (rig);
    rig_register (rig, 1, 90, "q", TASKS);
    for (unsigned i = 0; i < TASKS / 5; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1); /* behind all that are held */
    complete_all (rig);
    resume_session (rig);
    for (unsigned i = 0; i < TASKS / 5; i++)
        rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), TASKS);
    rig_free (rig);
}

/* Frozen and complete ones. */

static void a_frozen_session_takes_nothing (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, "trip");
    another_request ();
    assert_int_equal (
        rig_code (rig, 0, send_status (rig, 0, "trip", TMQ_SESSION_STATUS_FROZEN, "no more money")),
        TMQ_OK);
    for (unsigned i = 0; i < 2; i++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        uint64_t sent = submit_spec (rig, 2, "trip", &spec);
        const Taskmq__SubmittedItem *item = rig_reply (rig, 0, sent)->reply->submitted->items[0];
        assert_int_equal (item->code, TMQ_LIMIT);
        assert_true (item->retry_after_ms > 0);
        assert_non_null (strstr (item->text, "frozen"));
        assert_non_null (strstr (item->text, "no more money"));
        rig_restart (rig);
        rig_link (rig, 0, "default");
        rig_link (rig, 1, "default");
    }
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_held (rig, 1);
    assert_int_equal (code_of_submit (rig, 1, "trip"), TMQ_OK); /* it is there already */
    resume_session (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (code_of_submit (rig, 2, "trip"), TMQ_OK);
}

static void a_complete_session_lets_its_tasks_end (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, "trip");
    set_status (rig, "trip", TMQ_SESSION_STATUS_COMPLETE);
    assert_int_equal (code_of_submit (rig, 2, "trip"), TMQ_WRONG_STATUS);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, true);
    rig_settle (rig);
    rig_use_request_id (78);
    uint64_t retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_WRONG_STATUS);
    resume_session (rig);
    rig_use_request_id (79);
    retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_OK);
}

/* Shares. */

static unsigned served (rig_t *rig, unsigned first, unsigned last)
{
    unsigned count = 0;
    for (unsigned n = first; n <= last; n++)
        count += rig_status (rig, 0, n) == TMQ_STATUS_WORKING;
    return count;
}

static void salience_is_the_share_of_a_session (void **state)
{
    enum { EACH = 40 };
    rig_t *rig = *state;
    set_queue (rig, TMQ_QUEUE_FIELD_WEIGHT_OF, TMQ_WEIGHT_OF_SESSION);
    set_salience (rig, "big", 300);
    for (unsigned n = 1; n <= EACH; n++) {
        submit (rig, n, "big");
        submit (rig, EACH + n, "small");
    }
    for (unsigned i = 0; i < 2; i++) { /* the same after a restart */
        rig_register (rig, 1, 90, "q", 20);
        rig_settle (rig);
        unsigned big = served (rig, 1, EACH);
        assert_int_equal (served (rig, 1, 2 * EACH), 20);
        assert_in_range (big, 14, 16);
        rig_restart (rig);
        rig_link (rig, 0, "default");
        rig_link (rig, 1, "default");
        rig_register (rig, 1, 91, "q", 0);
        rig_advance (rig, 60000);
    }
}

/* Removal. */

static void put_value (rig_t *rig, const char *session, unsigned n)
{
    char key[16];
    Taskmq__ValuePut put = TASKMQ__VALUE_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    snprintf (key, sizeof (key), "key%u", n);
    put.session = (char *) session;
    put.key = key;
    put.body_bytes = 3;
    request.op_case = TASKMQ__REQUEST__OP_VALUE_PUT;
    request.value_put = &put;
    another_request ();
    request.request_id = (ProtobufCBinaryData){sizeof (next_id), next_id};
    rig_send (rig, 0, &request, "abc", 3);
}

static void put_item (rig_t *rig, const char *session)
{
    Taskmq__ItemPut put = TASKMQ__ITEM_PUT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    put.session = (char *) session;
    put.box = (char *) "inputs";
    put.body_bytes = 3;
    request.op_case = TASKMQ__REQUEST__OP_ITEM_PUT;
    request.item_put = &put;
    another_request ();
    request.request_id = (ProtobufCBinaryData){sizeof (next_id), next_id};
    rig_send (rig, 0, &request, "abc", 3);
}

static size_t rows_of (const rig_t *rig, row_kind_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == kind;
    return count;
}

static void fill_session (rig_t *rig, const char *session, unsigned values, unsigned items)
{
    for (unsigned i = 0; i < values; i++)
        put_value (rig, session, i);
    for (unsigned i = 0; i < items; i++)
        put_item (rig, session);
    rig_settle (rig);
}

static void what_belongs_to_a_session_goes_with_it (void **state)
{
    enum { VALUES = TMQ_SWEEP_ITEMS_MAX + 10, ITEMS = 20 }; /* more than a page */
    rig_t *rig = *state;
    assert_int_equal (set_goal (rig, 0, "trip", "Lisbon"), TMQ_OK);
    fill_session (rig, "trip", VALUES, ITEMS);
    fill_session (rig, "trip2", 3, 2);
    fill_session (rig, "", 3, 2);
    another_request ();
    assert_int_equal (remove_session (rig, 0, "trip"), TMQ_OK);
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_VALUE), 6);
    assert_int_equal (rows_of (rig, ROW_KIND_ITEM), 4);
    assert_int_equal (rows_of (rig, ROW_KIND_BOX), 2);
    assert_int_equal (rows_of (rig, ROW_KIND_SESSION), 0);
    assert_int_equal (show (rig, 0, "trip")->code, TMQ_NOT_FOUND);
    /* The same request gets the first answer, also after a restart; another one does not. */
    assert_int_equal (remove_session (rig, 0, "trip"), TMQ_OK);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (remove_session (rig, 0, "trip"), TMQ_OK);
    another_request ();
    assert_int_equal (remove_session (rig, 0, "trip"), TMQ_NOT_FOUND);
    assert_int_equal (code_of_submit (rig, 1, "trip"), TMQ_OK); /* a new one */
    assert_string_equal (show (rig, 0, "trip")->session->goal, "");
}

/* It is killed in the middle, and goes on. */
static void a_removal_goes_on_after_a_restart (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (set_goal (rig, 0, "trip", "Lisbon"), TMQ_OK);
    fill_session (rig, "trip", 10, 10);
    Taskmq__SessionName body = TASKMQ__SESSION_NAME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.name = (char *) "trip";
    request.op_case = TASKMQ__REQUEST__OP_SESSION_REMOVE;
    request.session_remove = &body;
    another_request ();
    request.request_id = (ProtobufCBinaryData){sizeof (next_id), next_id};
    rig_send (rig, 0, &request, NULL, 0);
    rig_commit (rig); /* no page is read yet */
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_advance (rig, 2000);
    assert_int_equal (rows_of (rig, ROW_KIND_VALUE), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_ITEM), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_BOX), 0);
    assert_int_equal (rows_of (rig, ROW_KIND_SESSION), 0);
}

static void a_session_with_live_tasks_stays (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, "trip");
    another_request ();
    assert_int_equal (remove_session (rig, 0, "trip"), TMQ_CONFLICT);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (remove_session (rig, 0, "trip"), TMQ_OK);
    rig_settle (rig);
    rig_use_request_id (80);
    uint64_t retry = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 1); /* makes it anew */
    rig_settle (rig);
    assert_int_equal (rig_changed (rig, 0, retry), TMQ_OK);
    assert_int_equal (show (rig, 0, "trip")->session->tasks, 1);
}

static void sessions_go_by_themselves (void **state)
{
    const int64_t DAY_MS = 24 * 60 * 60 * 1000;
    rig_t *rig = *state;
    bool more;
    submit (rig, 1, "implicit");
    submit (rig, 2, "kept");
    submit (rig, 3, "complete");
    fill_session (rig, "complete", 1, 0);
    fill_session (rig, "implicit", 1, 0);
    for (unsigned n = 1; n <= 3; n++)
        rig_cancel (rig, 0, n);
    rig_settle (rig);
    assert_int_equal (set_goal (rig, 0, "kept", "stay"), TMQ_OK);
    set_status (rig, "complete", TMQ_SESSION_STATUS_COMPLETE);
    rig->now.mono_ms += 29 * DAY_MS;
    rig->now.wall_ms += 29 * DAY_MS;
    rig_advance (rig, 5000);
    assert_int_equal (list_count (rig, 0, "", 0, &more), 3);
    rig->now.mono_ms += 3 * DAY_MS;
    rig->now.wall_ms += 3 * DAY_MS;
    rig_advance (rig, 5000);
    rig_link (rig, 0, "default");
    assert_int_equal (list_count (rig, 0, "", 0, &more), 1);
    assert_int_equal (show (rig, 0, "kept")->code, TMQ_OK);
    assert_int_equal (rows_of (rig, ROW_KIND_VALUE), 1); /* of the one that was only forgotten */
}

/* Limits, lists, rights. */

static void there_is_a_limit (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    bool more;
    config.space_sessions_max = 2;
    (void) state;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    submit (rig, 1, "a");
    assert_int_equal (set_goal (rig, 0, "b", "x"), TMQ_OK);
    assert_int_equal (set_goal (rig, 0, "c", "x"), TMQ_LIMIT);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    const Taskmq__SubmittedItem *item =
        rig_reply (rig, 0, submit_spec (rig, 2, "c", &spec))->reply->submitted->items[0];
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_non_null (strstr (item->text, "sessions of the namespace"));
    assert_int_equal (code_of_submit (rig, 3, "a"), TMQ_OK);
    assert_int_equal (code_of_submit (rig, 4, ""), TMQ_OK);
    assert_int_equal (set_goal (rig, 0, "b", "y"), TMQ_OK);
    assert_int_equal (list_count (rig, 0, "", 0, &more), 2);
    rig_free (rig);
}

static void lists_are_pages_by_name (void **state)
{
    rig_t *rig = *state;
    char name[16];
    bool more;
    for (unsigned i = 0; i < 60; i++) {
        snprintf (name, sizeof (name), "s%02u", (i * 7) % 60);
        assert_int_equal (set_goal (rig, 0, name, "x"), TMQ_OK);
    }
    assert_int_equal (list_count (rig, 0, "", 0, &more), 50);
    assert_true (more);
    assert_int_equal (list_count (rig, 0, "s49", 0, &more), 10);
    assert_false (more);
    assert_int_equal (list_count (rig, 0, "s40x", 5, &more), 5);
    assert_true (more);
}

static void a_session_belongs_to_who_made_it (void **state)
{
    rig_t *rig = *state;
    bool more;
    rig_access (
        rig, "alice uid:1 client(default)\nbob uid:2 client(default)\nboss uid:3 admin(default)\n"
             "eve uid:4 reader(default)\n");
    for (size_t i = 1; i <= 4; i++) {
        static const char *const IDENTITIES[] = {"", "alice", "bob", "boss", "eve"};
        rig->peers[i].identity = IDENTITIES[i];
        rig_link (rig, i, "default");
    }
    assert_int_equal (set_goal (rig, 1, "trip", "alice's"), TMQ_OK);
    assert_int_equal (show (rig, 2, "trip")->code, TMQ_NOT_FOUND);
    assert_int_equal (set_goal (rig, 2, "trip", "bob's"), TMQ_CONFLICT);
    another_request ();
    assert_int_equal (
        rig_code (rig, 2, send_status (rig, 2, "trip", TMQ_SESSION_STATUS_PAUSED, "")),
        TMQ_NOT_FOUND);
    assert_int_equal (remove_session (rig, 2, "trip"), TMQ_NOT_FOUND);
    assert_int_equal (list_count (rig, 2, "", 0, &more), 0);
    assert_int_equal (list_count (rig, 4, "", 0, &more), 1);
    assert_int_equal (set_goal (rig, 4, "trip", "eve's"), TMQ_DENIED);
    assert_int_equal (set_goal (rig, 4, "other", "eve's"), TMQ_DENIED);
    assert_int_equal (set_goal (rig, 3, "trip", "the boss's"), TMQ_OK);
    assert_string_equal (show (rig, 1, "trip")->session->owner, "alice");
    assert_string_equal (show (rig, 1, "trip")->session->goal, "the boss's");
    another_request ();
    assert_int_equal (remove_session (rig, 3, "trip"), TMQ_OK);
}

static void there_is_nothing_to_pause (void **state)
{
    rig_t *rig = *state;
    another_request ();
    assert_int_equal (
        rig_code (rig, 0, send_status (rig, 0, "nope", TMQ_SESSION_STATUS_PAUSED, "")),
        TMQ_NOT_FOUND);
}

static void why_names_the_session (void **state)
{
    rig_t *rig = *state;
    submit (rig, 1, "trip");
    another_request ();
    send_status (rig, 0, "trip", TMQ_SESSION_STATUS_PAUSED, "the user thinks");
    uint64_t why = rig_why (rig, 0, 1);
    rig_settle (rig);
    const Taskmq__Explanation *told = rig_reply (rig, 0, why)->reply->explanation;
    assert_string_equal (told->reason, "session_paused");
    assert_non_null (strstr (told->sentence, "its session 'trip' was paused by uid:0"));
    assert_non_null (strstr (told->sentence, "the user thinks"));
    send_queue (rig, true);
    why = rig_why (rig, 0, 1);
    rig_settle (rig);
    assert_string_equal (rig_reply (rig, 0, why)->reply->explanation->reason, "queue_paused");
}

static void changes_are_events (void **state)
{
    rig_t *rig = *state;
    static const char *const MESSAGES[] = {"made", "paused: tea", "set", "removed"};
    uint32_t subjects[] = {TMQ_SUBJECT_SESSION};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.subjects = subjects;
    filter.n_subjects = 1;
    subscribe.subscription = 5;
    subscribe.filter = &filter;
    subscribe.from_now = true;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    submit (rig, 1, "trip");
    another_request ();
    send_status (rig, 0, "trip", TMQ_SESSION_STATUS_PAUSED, "tea");
    set_goal (rig, 0, "trip", "Lisbon");
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    another_request ();
    remove_session (rig, 0, "trip");
    rig_settle (rig);
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++) {
        const Taskmq__EventList *list = rig->peers[1].items[i].list;
        for (size_t k = 0; list != NULL && k < list->n_events; k++) {
            assert_int_equal (list->events[k]->subject, TMQ_SUBJECT_SESSION);
            assert_string_equal (list->events[k]->name, "trip");
            assert_true (count < 4);
            assert_string_equal (list->events[k]->message, MESSAGES[count++]);
        }
    }
    assert_int_equal (count, 4);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (the_first_task_makes_its_session),
        TEST (what_is_set_survives_a_restart),
        TEST (a_paused_session_gives_nothing_to_workers),
        TEST (a_pause_survives_a_restart),
        TEST (queue_and_session_are_paused),
        TEST (a_delay_ends_in_a_pause),
        TEST (a_session_goes_on_before_a_delay_ends),
        TEST (a_retried_task_is_held),
        TEST (a_failed_attempt_is_tried_again_after_the_pause),
        TEST (a_lost_lease_goes_back_into_the_pause),
        TEST (a_dependency_ends_in_a_pause),
        TEST (a_held_task_expires_and_is_cancelled),
        TEST (a_pause_stands_beside_caps),
        TEST (a_pause_stands_beside_caps_of_keys),
        cmocka_unit_test (what_is_held_comes_back_some_in_each_round),
        TEST (a_frozen_session_takes_nothing),
        TEST (a_complete_session_lets_its_tasks_end),
        TEST (salience_is_the_share_of_a_session),
        TEST (what_belongs_to_a_session_goes_with_it),
        TEST (a_removal_goes_on_after_a_restart),
        TEST (a_session_with_live_tasks_stays),
        TEST (sessions_go_by_themselves),
        cmocka_unit_test (there_is_a_limit),
        TEST (lists_are_pages_by_name),
        TEST (a_session_belongs_to_who_made_it),
        TEST (there_is_nothing_to_pause),
        TEST (why_names_the_session),
        TEST (changes_are_events),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
