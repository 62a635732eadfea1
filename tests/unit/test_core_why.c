/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* why: each reason that there is. */
#include <string.h>

#include "core_rig.h"
#include "ids.h"

enum { OWNER = 0, WORKER = 1 };

static uint64_t send (rig_t *rig, Taskmq__Request *request)
{
    static uint8_t id[16] = {9};
    id[1]++;
    request->request_id = (ProtobufCBinaryData){sizeof (id), id};
    uint64_t sent = rig_send (rig, OWNER, request, NULL, 0);
    rig_run (rig);
    return sent;
}

static const Taskmq__Reply *why_reply (rig_t *rig, unsigned n)
{
    uint64_t sent = rig_why (rig, OWNER, n);
    rig_commit (rig);
    rig_outputs (rig);
    return rig_reply (rig, OWNER, sent)->reply;
}

/* The reason must be this one, and the sentence say so much. */
static const Taskmq__Explanation *expect (rig_t *rig, unsigned n, const char *reason,
                                          const char *sentence)
{
    const Taskmq__Reply *reply = why_reply (rig, n);
    assert_int_equal (reply->code, TMQ_OK);
    assert_string_equal (reply->explanation->reason, reason);
    if (strstr (reply->explanation->sentence, sentence) == NULL)
        fail_msg ("\"%s\" does not say \"%s\"", reply->explanation->sentence, sentence);
    return reply->explanation;
}

static uint64_t number_of (const Taskmq__Explanation *why, const char *name)
{
    for (size_t i = 0; i < why->n_facts; i++)
        if (strcmp (why->facts[i]->name, name) == 0)
            return why->facts[i]->number;
    fail_msg ("no fact %s", name);
    return 0;
}

static const char *text_of (const Taskmq__Explanation *why, const char *name)
{
    for (size_t i = 0; i < why->n_facts; i++)
        if (strcmp (why->facts[i]->name, name) == 0)
            return why->facts[i]->text;
    fail_msg ("no fact %s", name);
    return "";
}

static const Taskmq__Assignment *newest (rig_t *rig)
{
    rig_run (rig);
    return rig_assignment (rig, WORKER, rig_assignments (rig, WORKER) - 1)->assignment;
}

static void a_ready_task_has_a_place (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 5; n++)
        rig_submit (rig, OWNER, n, "q", "");
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.priority_plus_1 = 256;
    rig_submit_spec (rig, OWNER, 6, &spec, "");
    expect (rig, 3, "no_worker", "no worker serves queue 'q'");
    rig_register (rig, WORKER, 1, "q", 1);
    rig_run (rig); /* it has the sixth */
    const Taskmq__Explanation *why = expect (rig, 3, "ready", "about number 3 of queue 'q'");
    assert_non_null (strstr (why->sentence, "which 1 worker serves; none has room now"));
    assert_int_equal (number_of (why, "position"), 3);
    assert_int_equal (number_of (why, "workers"), 1);
    assert_int_equal (number_of (why, "ready"), 5);
    assert_int_equal (why->phase, TMQ_PHASE_READY);
    engine_set_full (rig->engine, true);
    expect (rig, 3, "disk_full", "the broker's disk is full");
    engine_set_full (rig->engine, false);
    engine_stop (rig->engine);
    expect (rig, 3, "stopping", "the broker is stopping");
}

static void a_queue_holds_its_tasks (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueuePause pause = TASKMQ__QUEUE_PAUSE__INIT;
    Taskmq__QueueResume resume = TASKMQ__QUEUE_RESUME__INIT;
    Taskmq__QueueSet set = TASKMQ__QUEUE_SET__INIT;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint32_t cap[] = {TMQ_QUEUE_FIELD_MAX_RUNNING};
    uint32_t rate[] = {TMQ_QUEUE_FIELD_MAX_RUNNING, TMQ_QUEUE_FIELD_RATE, TMQ_QUEUE_FIELD_RATE_MS,
                       TMQ_QUEUE_FIELD_BURST};
    rig_submit (rig, OWNER, 1, "q", "");
    rig_submit (rig, OWNER, 2, "q", "");
    pause.queue = resume.queue = set.queue = (char *) "q";
    pause.why = (char *) "the index is rebuilt";
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_PAUSE;
    request.queue_pause = &pause;
    send (rig, &request);
    const Taskmq__Explanation *why = expect (rig, 1, "queue_paused", "the index is rebuilt");
    assert_string_equal (text_of (why, "by"), "uid:0");
    assert_int_equal (why->phase, TMQ_PHASE_PAUSED);
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_RESUME;
    request.queue_resume = &resume;
    send (rig, &request);
    set.settings = &settings;
    settings.max_running = 1;
    set.fields = cap;
    set.n_fields = 1;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &set;
    send (rig, &request);
    rig_register (rig, WORKER, 1, "q", 5);
    rig_run (rig);
    why = expect (rig, 2, "cap", "has 1 tasks running, and may have 1");
    assert_int_equal (number_of (why, "max_running"), 1);
    settings = (Taskmq__QueueSettings) TASKMQ__QUEUE_SETTINGS__INIT;
    settings.rate = 1;
    settings.rate_ms = 60000;
    settings.burst = 1;
    set.fields = rate;
    set.n_fields = 4;
    send (rig, &request);
    rig_submit (rig, OWNER, 3, "q", "");
    rig_run (rig); /* the second has begun */
    why = expect (rig, 3, "rate", "may begin 1 tasks in 1m");
    assert_int_equal (number_of (why, "rate_ms"), 60000);
}

static void a_key_holds_its_tasks (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueueSet set = TASKMQ__QUEUE_SET__INIT;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    uint32_t cap[] = {TMQ_QUEUE_FIELD_MAX_PER_KEY};
    extra.fair_key = (char *) "tenant-7";
    spec.extra = &extra;
    set.queue = (char *) "q";
    set.settings = &settings;
    settings.max_per_key = 1;
    set.fields = cap;
    set.n_fields = 1;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &set;
    send (rig, &request);
    rig_submit_spec (rig, OWNER, 1, &spec, "");
    rig_submit_spec (rig, OWNER, 2, &spec, "");
    rig_register (rig, WORKER, 1, "q", 5);
    rig_run (rig);
    const Taskmq__Explanation *why =
        expect (rig, 2, "key_cap", "of the fair key 'tenant-7' 1 tasks of queue 'q' are running");
    assert_int_equal (number_of (why, "max_per_key"), 1);
}

/* A worker with this label, key "kind"; drained, when somebody wants it to end. */
static void register_kind (rig_t *rig, unsigned worker, const char *value)
{
    static uint8_t id[16];
    char *queues[] = {(char *) "q"};
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    Taskmq__Register registration = TASKMQ__REGISTER__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    id[0] = (uint8_t) worker;
    label.key = (char *) "kind";
    label.value = (char *) value;
    registration.worker_id = (ProtobufCBinaryData){sizeof (id), id};
    registration.name = (char *) "w";
    registration.queues = queues;
    registration.n_queues = 1;
    registration.capacity = 1;
    registration.labels = labels;
    registration.n_labels = 1;
    request.op_case = TASKMQ__REQUEST__OP_REGISTER;
    request.register_ = &registration;
    rig_send (rig, WORKER, &request, NULL, 0);
    rig_run (rig);
}

static void nobody_is_right_for_it (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    Taskmq__WorkerDrain drain = TASKMQ__WORKER_DRAIN__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    label.key = (char *) "kind";
    label.value = (char *) "big";
    extra.needs = labels;
    extra.n_needs = 1;
    spec.extra = &extra;
    rig_submit_spec (rig, OWNER, 1, &spec, "");
    register_kind (rig, 1, "small");
    const Taskmq__Explanation *why =
        expect (rig, 1, "no_worker_with_labels", "none has the label kind=big");
    assert_string_equal (text_of (why, "missing"), "kind=big");
    assert_int_equal (number_of (why, "workers"), 1);
    drain.name = (char *) "w";
    request.op_case = TASKMQ__REQUEST__OP_WORKER_DRAIN;
    request.worker_drain = &drain;
    send (rig, &request);
    rig_submit (rig, OWNER, 2, "q", "");
    why = expect (rig, 2, "drained", "worker 'w' of queue 'q' is drained");
    assert_string_equal (text_of (why, "worker"), "w");
}

static void a_task_waits_for_its_time (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.delay_ms = 90000;
    rig_submit_spec (rig, OWNER, 1, &spec, "");
    const Taskmq__Explanation *why = expect (rig, 1, "scheduled", "it may be claimed in 1m30s");
    assert_string_equal (text_of (why, "cause"), "delay");
    assert_int_equal (number_of (why, "until"), rig->now.wall_ms + 90000);
    rig_submit (rig, OWNER, 2, "q", "");
    rig_register (rig, WORKER, 1, "q", 1);
    rig_fail (rig, WORKER, newest (rig), 7, false);
    rig_run (rig);
    why = expect (rig, 2, "scheduled", "it failed 1 times of at most 3");
    assert_string_equal (text_of (why, "cause"), "backoff");
    rig_submit (rig, OWNER, 3, "q", "");
    rig_worker_credit (rig, WORKER, 1, 1, 1);
    rig_release (rig, WORKER, newest (rig), false);
    rig_run (rig);
    expect (rig, 3, "scheduled", "it was given back");
}

static void a_task_waits_for_others (void **state)
{
    rig_t *rig = *state;
    tmq_id_t first = rig_id (1);
    char id[ID_TEXT_SIZE];
    Taskmq__Dependency entry = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *list = &entry;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    entry.task_id = (ProtobufCBinaryData){sizeof (first), first.bytes};
    extra.n_after = 1;
    extra.after = &list;
    spec.extra = &extra;
    id_format (&first, id);
    rig_submit (rig, OWNER, 1, "q", "");
    rig_submit_spec (rig, OWNER, 2, &spec, "");
    const Taskmq__Explanation *why = expect (rig, 2, "blocked", id);
    assert_int_equal (why->n_after, 1);
    assert_memory_equal (why->after[0]->task_id.data, first.bytes, sizeof (first));
    assert_int_equal (why->phase, TMQ_PHASE_BLOCKED);
}

static void a_worker_has_it (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, OWNER, 1, "q", "");
    rig_register (rig, WORKER, 1, "q", 1);
    const Taskmq__Assignment *assignment = newest (rig);
    const Taskmq__Explanation *why = expect (rig, 1, "leased", "has it: attempt 1");
    assert_int_equal (number_of (why, "attempt"), 1);
    assert_int_equal (number_of (why, "until"), rig->now.wall_ms + 30000);
    rig_started (rig, WORKER, assignment);
    rig_run (rig);
    expect (rig, 1, "leased", "works on it");
    Taskmq__Assignment held = *assignment;
    rig_ask (rig, WORKER, assignment, "colour", "{\"text\":\"which?\"}");
    rig_run (rig);
    why = expect (rig, 1, "input", "1 question is open, asked ");
    assert_string_equal (text_of (why, "key"), "colour");
    rig_cancel (rig, OWNER, 1);
    rig_run (rig);
    expect (rig, 1, "cancelling", "has not confirmed yet");
    rig_cancel_ack (rig, WORKER, &held);
    rig_settle (rig);
    expect (rig, 1, "cancelled", "it was cancelled");
}

static void a_lease_has_run_out (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, OWNER, 1, "q", "");
    rig_register (rig, WORKER, 1, "q", 1);
    rig_run (rig);
    rig->heard_ms = rig->now.mono_ms; /* what has arrived since was not read */
    rig->now.mono_ms += 31000;
    rig->now.wall_ms += 31000;
    expect (rig, 1, "late", "ran out");
}

static void a_payload_is_read (void **state)
{
    rig_t *rig = *state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.payload_cache_bytes = 0;
    rig_t *cold = rig_new_with (&config);
    (void) rig;
    rig_link (cold, OWNER, "default");
    rig_link (cold, WORKER, "default");
    rig_submit (cold, OWNER, 1, "q", "bytes");
    rig_settle (cold); /* only the tables have it */
    rig_register (cold, WORKER, 1, "q", 1);
    expect (cold, 1, "payload", "its payload is being read");
    rig_free (cold);
}

static void it_has_ended (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    rig_register (rig, WORKER, 1, "q", 1);
    rig_submit (rig, OWNER, 1, "q", "");
    rig_complete (rig, WORKER, newest (rig), "done");
    rig_settle (rig);
    expect (rig, 1, "completed", "it completed");
    rig_worker_credit (rig, WORKER, 1, 1, 1);
    rig_submit (rig, OWNER, 2, "q", "");
    rig_fail (rig, WORKER, newest (rig), 7, true);
    rig_settle (rig);
    const Taskmq__Explanation *why = expect (rig, 2, "failed", "it failed");
    assert_int_equal (number_of (why, "error_code"), 7);
    rig_worker_credit (rig, WORKER, 1, 2, 1);
    spec.max_attempts = 1;
    rig_submit_spec (rig, OWNER, 3, &spec, "");
    rig_fail (rig, WORKER, newest (rig), 7, false);
    rig_settle (rig);
    expect (rig, 3, "dead", "1 of 1 attempts failed");
    spec.max_attempts = 0;
    spec.ttl_ms = 1000;
    spec.queue = (char *) "elsewhere";
    rig_submit_spec (rig, OWNER, 4, &spec, "");
    rig_cancel (rig, OWNER, 4);
    rig_settle (rig);
    rig_advance (rig, 3000);
    assert_int_equal (why_reply (rig, 4)->code, TMQ_EXPIRED);
    assert_int_equal (why_reply (rig, 5)->code, TMQ_NOT_FOUND);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_ready_task_has_a_place, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_queue_holds_its_tasks, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_key_holds_its_tasks, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (nobody_is_right_for_it, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_task_waits_for_its_time, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_task_waits_for_others, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_worker_has_it, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_lease_has_run_out, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (a_payload_is_read, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown (it_has_ended, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
