/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* What is set for queues: pauses, caps, rates, limits, defaults; and how queues are shown. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

/* Requests. */

static uint64_t send (rig_t *rig, size_t peer, Taskmq__Request *request)
{
    static unsigned count = 1000; /* each is another request */
    uint8_t id[16] = {0};
    count++;
    memcpy (id, &count, sizeof (count));
    if (request->request_id.len == 0)
        request->request_id = (ProtobufCBinaryData){sizeof (id), id};
    uint64_t sent = rig_send (rig, peer, request, NULL, 0);
    rig_settle (rig);
    return sent;
}

static uint64_t set (rig_t *rig, size_t peer, const char *queue, Taskmq__QueueSettings *settings,
                     const uint32_t *fields, size_t count)
{
    Taskmq__QueueSet body = TASKMQ__QUEUE_SET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.queue = (char *) queue;
    body.settings = settings;
    body.fields = (uint32_t *) fields;
    body.n_fields = count;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &body;
    return send (rig, peer, &request);
}

static uint64_t pause_queue (rig_t *rig, size_t peer, const char *queue, const char *why)
{
    Taskmq__QueuePause body = TASKMQ__QUEUE_PAUSE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.queue = (char *) queue;
    body.why = (char *) why;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_PAUSE;
    request.queue_pause = &body;
    return send (rig, peer, &request);
}

static uint64_t resume_queue (rig_t *rig, size_t peer, const char *queue)
{
    Taskmq__QueueResume body = TASKMQ__QUEUE_RESUME__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.queue = (char *) queue;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_RESUME;
    request.queue_resume = &body;
    return send (rig, peer, &request);
}

static uint64_t ask_queue (rig_t *rig, size_t peer, const char *queue)
{
    Taskmq__QueueShow body = TASKMQ__QUEUE_SHOW__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.queue = (char *) queue;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SHOW;
    request.queue_show = &body;
    return send (rig, peer, &request);
}

static const Taskmq__QueueInfo *show (rig_t *rig, const char *queue)
{
    const rig_item_t *item = rig_reply (rig, 0, ask_queue (rig, 0, queue));
    assert_int_equal (item->reply->code, TMQ_OK);
    return item->reply->queue;
}

/* Sets one number; 0 takes it back. */
static unsigned set_one (rig_t *rig, const char *queue, uint32_t field, uint32_t value)
{
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    if (field == TMQ_QUEUE_FIELD_MAX_RUNNING)
        settings.max_running = value;
    else if (field == TMQ_QUEUE_FIELD_MAX_TASKS)
        settings.max_tasks = value;
    else if (field == TMQ_QUEUE_FIELD_MAX_BYTES)
        settings.max_bytes = value;
    else
        fail_msg ("a field that the test does not know");
    return rig_code (rig, 0, set (rig, 0, queue, &settings, &field, 1));
}

static void set_rate (rig_t *rig, const char *queue, uint32_t rate, uint32_t ms, uint32_t burst)
{
    static const uint32_t FIELDS[] = {TMQ_QUEUE_FIELD_RATE, TMQ_QUEUE_FIELD_RATE_MS,
                                      TMQ_QUEUE_FIELD_BURST};
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    settings.rate = rate;
    settings.rate_ms = ms;
    settings.burst = burst;
    assert_int_equal (rig_code (rig, 0, set (rig, 0, queue, &settings, FIELDS, 3)), TMQ_OK);
}

static void submit_many (rig_t *rig, unsigned first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        rig_submit (rig, 0, first + i, "q", "payload");
    rig_settle (rig);
}

/* Pause. */

static void a_paused_queue_gives_nothing (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 5);
    assert_int_equal (rig_code (rig, 0, pause_queue (rig, 0, "q", "the disk")), TMQ_OK);
    submit_many (rig, 1, 3);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_PAUSED);
    const Taskmq__QueueInfo *info = show (rig, "q");
    assert_true (info->settings->paused);
    assert_string_equal (info->settings->paused_by, "uid:0");
    assert_string_equal (info->settings->paused_why, "the disk");
    assert_true (info->settings->paused_at > 0);
    assert_int_equal (rig_code (rig, 0, pause_queue (rig, 0, "q", "")), TMQ_OK); /* once more */
    info = show (rig, "q");
    assert_string_equal (info->settings->paused_why, "the disk");
    assert_int_equal (info->closed, TMQ_QUEUE_CLOSED_PAUSED);
    assert_int_equal (info->ready, 3);
    assert_int_equal (info->workers, 1);
    assert_int_equal (rig_code (rig, 0, resume_queue (rig, 0, "q")), TMQ_OK);
    assert_int_equal (rig_assignments (rig, 1), 3);
    assert_null (show (rig, "q")->settings);
}

static void a_queue_tells_its_totals_and_its_oldest_task (void **state)
{
    rig_t *rig = *state;
    submit_many (rig, 1, 3);
    rig_advance (rig, 5000);
    const Taskmq__QueueInfo *info = show (rig, "q");
    assert_int_equal (info->submitted, 3);
    assert_int_equal (info->oldest_ready_ms, 5000);
    rig_register (rig, 1, 90, "q", 3);
    rig_settle (rig);
    rig_complete (rig, 1, rig_assignment (rig, 1, 0)->assignment, "");
    rig_fail (rig, 1, rig_assignment (rig, 1, 1)->assignment, 1, true);
    rig_fail (rig, 1, rig_assignment (rig, 1, 2)->assignment, 1, false);
    rig_settle (rig);
    info = show (rig, "q");
    assert_int_equal (info->submitted, 3);
    assert_int_equal (info->completed, 1);
    assert_int_equal (info->failed, 1);
    assert_int_equal (info->attempts_failed, 2);
    assert_int_equal (info->workers, 1);
    assert_int_equal (info->oldest_ready_ms, 0); /* what is left is tried again later */
}

static void what_is_held_goes_on (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, 90, "q", 1);
    submit_many (rig, 1, 2);
    assert_int_equal (rig_assignments (rig, 1), 1);
    pause_queue (rig, 0, "q", "");
    const Taskmq__Assignment *held = rig_assignment (rig, 1, 0)->assignment;
    uint64_t done = rig_complete (rig, 1, held, "done");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, done), TMQ_OK);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_COMPLETED);
}

static void a_list_shows_who_waits_for_a_pause (void **state)
{
    rig_t *rig = *state;
    submit_many (rig, 1, 2);
    pause_queue (rig, 0, "q", "");
    uint64_t listed = rig_list (rig, 0, NULL, (ProtobufCBinaryData){0}, 10);
    rig_settle (rig);
    const Taskmq__TaskPage *page = rig_reply (rig, 0, listed)->reply->page;
    assert_int_equal (page->n_tasks, 2);
    assert_int_equal (page->tasks[0]->phase, TMQ_PHASE_PAUSED);
}

static void a_pause_survives_a_restart_and_a_failed_commit (void **state)
{
    rig_t *rig = *state;
    pause_queue (rig, 0, "q", "why not"); /* nobody has used the queue yet */
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    submit_many (rig, 1, 1);
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_string_equal (show (rig, "q")->settings->paused_why, "why not");
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register (rig, 1, 90, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    resume_queue (rig, 0, "q");
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig_restart (rig); /* nothing is left of it */
    rig_link (rig, 0, "default");
    assert_null (show (rig, "q")->settings);
}

/* A change that was not durable is taken back with its batch. */
static void a_pause_that_was_not_kept_is_gone (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueuePause body = TASKMQ__QUEUE_PAUSE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t id[16] = {9};
    submit_many (rig, 1, 1);
    body.queue = (char *) "q";
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_PAUSE;
    request.queue_pause = &body;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    rig_send (rig, 0, &request, NULL, 0);
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    assert_null (show (rig, "q")->settings);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_READY);
}

static void a_repeat_changes_nothing (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueueResume body = TASKMQ__QUEUE_RESUME__INIT;
    Taskmq__QueuePause pausing = TASKMQ__QUEUE_PAUSE__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    uint8_t id[16] = {5};
    pausing.queue = body.queue = (char *) "q";
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_PAUSE;
    request.queue_pause = &pausing;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    send (rig, 0, &request);
    uint64_t at = show (rig, "q")->settings->paused_at;
    rig_advance (rig, 5000);
    pausing.why = (char *) "another word";
    assert_int_equal (rig_code (rig, 0, send (rig, 0, &request)), TMQ_OK);
    assert_string_equal (show (rig, "q")->settings->paused_why, "");
    assert_int_equal (show (rig, "q")->settings->paused_at, at);
    assert_int_equal (rig_code (rig, 0, resume_queue (rig, 0, "never.used")), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, ask_queue (rig, 0, "never.used")), TMQ_NOT_FOUND);
}

/* Caps and rates. */

static void a_cap_holds (void **state)
{
    rig_t *rig = *state;
    assert_int_equal (set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_RUNNING, 2), TMQ_OK);
    rig_register (rig, 1, 90, "q", 10);
    submit_many (rig, 1, 5);
    assert_int_equal (rig_assignments (rig, 1), 2);
    assert_int_equal (show (rig, "q")->closed, TMQ_QUEUE_CLOSED_CAP);
    assert_int_equal (rig_task (rig, 0, 3)->phase, TMQ_PHASE_READY);
    rig_complete (rig, 1, rig_assignment (rig, 1, 0)->assignment, "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 3);
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_RUNNING, 3); /* at once */
    assert_int_equal (rig_assignments (rig, 1), 4);
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_RUNNING, 1); /* below what runs: nothing is taken away */
    rig_complete (rig, 1, rig_assignment (rig, 1, 1)->assignment, "");
    rig_complete (rig, 1, rig_assignment (rig, 1, 2)->assignment, "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 4);
    assert_int_equal (show (rig, "q")->running, 1);
    rig_complete (rig, 1, rig_assignment (rig, 1, 3)->assignment, "");
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 5);
}

/* A cancelled task occupies its place until its worker has stopped (S5). */
static void a_cancelled_task_counts_until_its_worker_stopped (void **state)
{
    rig_t *rig = *state;
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_RUNNING, 1);
    rig_register (rig, 1, 90, "q", 10);
    submit_many (rig, 1, 2);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig_cancel_ack (rig, 1, rig_assignment (rig, 1, 0)->assignment);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_cap_holds_after_a_restart (void **state)
{
    rig_t *rig = *state;
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_RUNNING, 2);
    rig_register (rig, 1, 90, "q", 10);
    submit_many (rig, 1, 4);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 2, "default");
    rig_register (rig, 2, 91, "q", 10);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 2), 0); /* two leases live on */
    rig_advance (rig, 40000);
    rig_register (rig, 2, 91, "q", 10); /* it had been silent */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 2), 2);
}

static void a_rate_lets_so_many_begin (void **state)
{
    rig_t *rig = *state;
    set_rate (rig, "q", 10, 2000, 3);
    rig_register (rig, 1, 90, "q", 100);
    submit_many (rig, 1, 40);
    assert_int_equal (rig_assignments (rig, 1), 3);
    assert_int_equal (show (rig, "q")->closed, TMQ_QUEUE_CLOSED_RATE);
    rig_advance (rig, 180);
    assert_int_equal (rig_assignments (rig, 1), 3);
    rig_advance (rig, 40);
    assert_int_equal (rig_assignments (rig, 1), 4);
    for (int i = 0; i < 20; i++)
        rig_advance (rig, 100);
    assert_in_range (rig_assignments (rig, 1), 13, 14);
    set_rate (rig, "q", 0, 0, 0);
    assert_int_equal (rig_assignments (rig, 1), 40);
}

static void a_restart_gives_one_burst_at_most (void **state)
{
    rig_t *rig = *state;
    set_rate (rig, "q", 1, 60000, 2);
    rig_register (rig, 1, 90, "q", 100);
    submit_many (rig, 1, 10);
    assert_int_equal (rig_assignments (rig, 1), 2);
    rig_restart (rig);
    rig_link (rig, 1, "default");
    rig_register (rig, 1, 90, "q", 100); /* it gave back the two it had: they begin again */
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 4);
}

/* Limits and defaults. */

static const Taskmq__SubmittedItem *submit (rig_t *rig, unsigned n, const char *payload)
{
    uint64_t request = rig_submit (rig, 0, n, "q", payload);
    rig_settle (rig);
    return rig_reply (rig, 0, request)->reply->submitted->items[0];
}

static void what_is_queued_is_limited (void **state)
{
    rig_t *rig = *state;
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_TASKS, 2);
    assert_int_equal (submit (rig, 1, "x")->code, TMQ_OK);
    assert_int_equal (submit (rig, 2, "x")->code, TMQ_OK);
    const Taskmq__SubmittedItem *item = submit (rig, 3, "x");
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_true (item->retry_after_ms > 0);
    assert_non_null (strstr (item->text, "queued tasks of the queue: 2"));
    assert_true (submit (rig, 2, "x")->existing); /* a repeat is no further task */
    rig_register (rig, 1, 90, "q", 1);
    rig_settle (rig);
    assert_int_equal (submit (rig, 3, "x")->code, TMQ_OK); /* what works is not queued */
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_TASKS, 0);
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_BYTES, 10);
    item = submit (rig, 4, "123456789");
    assert_int_equal (item->code, TMQ_LIMIT);
    assert_non_null (strstr (item->text, "queue's queued tasks: 10"));
    assert_int_equal (submit (rig, 4, "12345678")->code, TMQ_OK);
}

static void a_queue_has_defaults (void **state)
{
    static const uint32_t FIELDS[] = {TMQ_QUEUE_FIELD_TTL_MS, TMQ_QUEUE_FIELD_LEASE_MS,
                                      TMQ_QUEUE_FIELD_BACKOFF_MS, TMQ_QUEUE_FIELD_MAX_ATTEMPTS};
    static const uint32_t FOR_EVER[] = {TMQ_QUEUE_FIELD_TTL_MS, TMQ_QUEUE_FIELD_TTL_NEVER};
    rig_t *rig = *state;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    settings.ttl_ms = 77000;
    settings.lease_ms = 5000;
    settings.backoff_ms = 60;
    settings.max_attempts = 1;
    set (rig, 0, "q", &settings, FIELDS, 4);
    submit (rig, 1, "x");
    assert_int_equal (rig_task (rig, 0, 1)->ttl_ms, 77000);
    assert_int_equal (rig_task (rig, 0, 1)->max_attempts, 1);
    rig_register (rig, 1, 90, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignment (rig, 1, 0)->assignment->lease_ms, 5000);
    settings.ttl_ms = 0;
    settings.ttl_never = true;
    set (rig, 0, "q", &settings, FOR_EVER, 2);
    submit (rig, 2, "x");
    assert_int_equal (rig_task (rig, 0, 2)->ttl_ms, 0);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT; /* its own word comes first */
    spec.ttl_ms = 5000;
    spec.max_attempts = 9;
    rig_submit_spec (rig, 0, 3, &spec, "x");
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, 3)->ttl_ms, 5000);
    assert_int_equal (rig_task (rig, 0, 3)->max_attempts, 9);
}

static void contradictions_are_refused (void **state)
{
    static const uint32_t RATE[] = {TMQ_QUEUE_FIELD_RATE, TMQ_QUEUE_FIELD_RATE_MS};
    static const uint32_t NEVER[] = {TMQ_QUEUE_FIELD_TTL_NEVER};
    static const uint32_t TTL[] = {TMQ_QUEUE_FIELD_TTL_MS};
    rig_t *rig = *state;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    settings.rate = 1;
    settings.rate_ms = 1;
    settings.ttl_ms = 1000;
    settings.ttl_never = true;
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "q", &settings, RATE, 1)), TMQ_INVALID);
    assert_int_equal (rig_code (rig, 0, ask_queue (rig, 0, "q")), TMQ_NOT_FOUND); /* as before */
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "q", &settings, TTL, 1)), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "q", &settings, NEVER, 1)), TMQ_INVALID);
    assert_int_equal (show (rig, "q")->settings->ttl_ms, 1000);
}

/* Who may, and lists. */

static void rights_are_judged (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig->peers[0].identity = "boss";
    rig->peers[1].identity = "me";
    rig->peers[2].identity = "eye";
    rig->peers[3].identity = "far";
    rig_access (rig, "boss uid:1 admin(default)\nme uid:2 client(default/q)\n"
                     "eye uid:3 observer(default)\nfar uid:4 client(default/x)\n");
    for (size_t i = 0; i < 4; i++)
        rig_link (rig, i, "default");
    assert_int_equal (rig_code (rig, 1, pause_queue (rig, 1, "q", "")), TMQ_DENIED);
    assert_int_equal (rig_code (rig, 2, pause_queue (rig, 2, "q", "")), TMQ_DENIED);
    assert_int_equal (rig_code (rig, 0, pause_queue (rig, 0, "q", "")), TMQ_OK);
    assert_int_equal (rig_code (rig, 1, resume_queue (rig, 1, "q")), TMQ_DENIED);
    assert_int_equal (rig_code (rig, 1, ask_queue (rig, 1, "q")), TMQ_OK);
    assert_int_equal (rig_code (rig, 2, ask_queue (rig, 2, "q")), TMQ_OK);
    assert_int_equal (rig_code (rig, 3, ask_queue (rig, 3, "q")), TMQ_NOT_FOUND);
    rig_free (rig);
}

static void queues_are_listed_page_by_page (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueueList body = TASKMQ__QUEUE_LIST__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    char name[16];
    for (unsigned i = 0; i < 5; i++) {
        snprintf (name, sizeof (name), "q%u", i);
        rig_submit (rig, 0, 1 + i, name, "x");
    }
    rig_settle (rig);
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_LIST;
    request.queue_list = &body;
    body.limit = 2;
    const Taskmq__QueuePage *page = rig_reply (rig, 0, send (rig, 0, &request))->reply->queue_page;
    assert_int_equal (page->n_queues, 2);
    assert_string_equal (page->queues[1]->queue, "q1");
    rig_cancel (rig, 0, 2); /* the one where the page ended goes */
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, ask_queue (rig, 0, "q1")), TMQ_NOT_FOUND);
    body.cursor = page->next;
    page = rig_reply (rig, 0, send (rig, 0, &request))->reply->queue_page;
    assert_int_equal (page->n_queues, 2);
    assert_string_equal (page->queues[0]->queue, "q2");
    body.cursor = page->next;
    page = rig_reply (rig, 0, send (rig, 0, &request))->reply->queue_page;
    assert_int_equal (page->n_queues, 1);
    assert_int_equal (page->next.len, 0);
    body.cursor.len = 3;
    assert_int_equal (rig_code (rig, 0, send (rig, 0, &request)), TMQ_BAD_CURSOR);
}

static void a_change_is_an_event_of_the_queue (void **state)
{
    rig_t *rig = *state;
    static const char *const WHAT[] = {"", "paused", "resumed"};
    uint32_t subjects[] = {TMQ_SUBJECT_QUEUE};
    char *queues[] = {(char *) "q"};
    Taskmq__Filter filter = TASKMQ__FILTER__INIT;
    Taskmq__Subscribe subscribe = TASKMQ__SUBSCRIBE__INIT;
    filter.n_subjects = 1;
    filter.subjects = subjects;
    filter.n_queues = 1;
    filter.queues = queues;
    subscribe.subscription = 1;
    subscribe.filter = &filter;
    rig_subscribe_as (rig, 1, &subscribe);
    rig_settle (rig);
    rig_submit (rig, 0, 1, "q", "p");
    set_one (rig, "q", TMQ_QUEUE_FIELD_MAX_RUNNING, 2);
    pause_queue (rig, 0, "q", "lunch");
    pause_queue (rig, 0, "other", "");
    resume_queue (rig, 0, "q");
    resume_queue (rig, 0, "q"); /* it was not paused */
    rig_settle (rig);
    size_t seen = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++) {
        const Taskmq__EventList *list = rig->peers[1].items[i].list;
        for (size_t k = 0; list != NULL && k < list->n_events; k++) {
            const Taskmq__Event *event = list->events[k];
            assert_true (seen < 3);
            assert_int_equal (event->kind, TMQ_EVENT_CHANGED);
            assert_int_equal (event->subject, TMQ_SUBJECT_QUEUE);
            assert_string_equal (event->name, "q");
            assert_string_equal (event->actor, rig->peers[0].identity);
            assert_string_equal (event->message, WHAT[seen++]);
        }
    }
    assert_int_equal (seen, 3);
}

/* What is set already may be changed, and a pause may be what helps. */
static void no_queue_is_set_up_on_a_full_disk (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    const uint32_t fields[] = {TMQ_QUEUE_FIELD_MAX_RUNNING};
    settings.max_running = 3;
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "old", &settings, fields, 1)), TMQ_OK);
    engine_set_full (rig->engine, true);
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "new", &settings, fields, 1)), TMQ_STORE_FULL);
    settings.max_running = 1;
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "old", &settings, fields, 1)), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, pause_queue (rig, 0, "third", "")), TMQ_OK);
    engine_set_full (rig->engine, false);
    assert_int_equal (rig_code (rig, 0, set (rig, 0, "new", &settings, fields, 1)), TMQ_OK);
}

static uint64_t weigh_by (rig_t *rig, unsigned n, tmq_weight_of_t weight_of)
{
    static uint32_t field = TMQ_QUEUE_FIELD_WEIGHT_OF;
    uint8_t id[16] = {99};
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    Taskmq__QueueSet body = TASKMQ__QUEUE_SET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    memcpy (id + 1, &n, sizeof (n));
    settings.weight_of = weight_of;
    body.queue = (char *) "q";
    body.settings = &settings;
    body.fields = &field;
    body.n_fields = 1;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.queue_set = &body;
    request.request_id = (ProtobufCBinaryData){sizeof (id), id};
    return rig_send (rig, 0, &request, NULL, 0);
}

/* Else tasks would be of three kinds of lanes. */
static void a_key_is_changed_when_all_have_come_to_their_lanes (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 5; n++)
        rig_submit (rig, 0, n, "q", "p");
    rig_settle (rig);
    uint64_t first = weigh_by (rig, 1, TMQ_WEIGHT_OF_OWNER);
    uint64_t again = weigh_by (rig, 2, TMQ_WEIGHT_OF_OWNER);
    uint64_t too_soon = weigh_by (rig, 3, TMQ_WEIGHT_OF_KEY);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, first), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, again), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, too_soon), TMQ_OVERLOADED);
    uint64_t later = weigh_by (rig, 4, TMQ_WEIGHT_OF_KEY);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, later), TMQ_OK);
    rig_register (rig, 1, 100, "q", 10);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 5);
}

/* A worker that waits gets what moves, as soon as the round allows. */
static void who_waits_gets_what_moves (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.lanes = 1;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= 20; n++)
        rig_submit (rig, 0, n, "q", "p");
    rig_register (rig, 1, 100, "q", 2);
    rig_settle (rig);
    weigh_by (rig, 1, TMQ_WEIGHT_OF_OWNER);
    rig_worker_credit (rig, 1, 100, 2, 20);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 20);
    rig_free (rig);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST (no_queue_is_set_up_on_a_full_disk),
        TEST (a_key_is_changed_when_all_have_come_to_their_lanes),
        cmocka_unit_test (who_waits_gets_what_moves),
        TEST (a_change_is_an_event_of_the_queue),
        TEST (a_paused_queue_gives_nothing),
        TEST (a_queue_tells_its_totals_and_its_oldest_task),
        TEST (what_is_held_goes_on),
        TEST (a_list_shows_who_waits_for_a_pause),
        TEST (a_pause_survives_a_restart_and_a_failed_commit),
        TEST (a_pause_that_was_not_kept_is_gone),
        TEST (a_repeat_changes_nothing),
        TEST (a_cap_holds),
        TEST (a_cancelled_task_counts_until_its_worker_stopped),
        TEST (a_cap_holds_after_a_restart),
        TEST (a_rate_lets_so_many_begin),
        TEST (a_restart_gives_one_burst_at_most),
        TEST (what_is_queued_is_limited),
        TEST (a_queue_has_defaults),
        TEST (contradictions_are_refused),
        cmocka_unit_test (rights_are_judged),
        TEST (queues_are_listed_page_by_page),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
