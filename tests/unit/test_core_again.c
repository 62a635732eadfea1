/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Changes of tasks by name: retry, resume, set, purge. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { SUBJECT = 1, WORKER = 100, DAY_MS = 86400000 };

/* How the task's rows stand when it is changed. */
typedef enum place { IN_MEMORY, IN_TABLES } place_t;

static void move_to (rig_t *rig, place_t place)
{
    if (place == IN_TABLES)
        rig_settle (rig);
    else
        rig_run (rig);
}

static uint64_t change (rig_t *rig, unsigned op, unsigned by)
{
    rig_use_request_id (by + 1000);
    return rig_change (rig, 0, op, SUBJECT, 1);
}

static uint64_t retry (rig_t *rig, unsigned by)
{
    return change (rig, TASKMQ__REQUEST__OP_RETRY, by);
}

static uint64_t purge (rig_t *rig, unsigned by)
{
    return change (rig, TASKMQ__REQUEST__OP_PURGE, by);
}

static uint64_t set (rig_t *rig, Taskmq__Set *what, unsigned by)
{
    rig_use_request_id (by + 1000);
    return rig_set (rig, 0, SUBJECT, what);
}

static const Taskmq__ChangedItem *answer (rig_t *rig, uint64_t request)
{
    rig_run (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    assert_non_null (item);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->changed->n_items, 1);
    return item->reply->changed->items[0];
}

static void assert_done (rig_t *rig, uint64_t request, tmq_status_t status)
{
    const Taskmq__ChangedItem *item = answer (rig, request);
    if (item->code != TMQ_OK)
        fail_msg ("%u %s", item->code, item->text);
    assert_int_equal (item->status, status);
}

static void assert_refused (rig_t *rig, uint64_t request, tmq_code_t code, const char *text)
{
    const Taskmq__ChangedItem *item = answer (rig, request);
    assert_int_equal (item->code, code);
    if (strstr (item->text, text) == NULL)
        fail_msg ("%s", item->text);
}

static const Taskmq__Assignment *claim (rig_t *rig)
{
    size_t before = rig_assignments (rig, 1);
    if (before == 0)
        rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), before + 1);
    return rig_assignment (rig, 1, before)->assignment;
}

static void fail_it (rig_t *rig, place_t place)
{
    rig_submit (rig, 0, SUBJECT, "q", "payload");
    rig_run (rig);
    rig_fail_with (rig, 1, claim (rig), 5, true, "it was");
    rig_worker_credit (rig, 1, WORKER, 1, 0);
    move_to (rig, place);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_FAILED);
}

static void failed_is_done_again (rig_t *rig, place_t place)
{
    fail_it (rig, place);
    rig_advance (rig, 2000);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->phase, TMQ_PHASE_READY);
    assert_int_equal (task->attempt, 1);
    assert_int_equal (task->failures, 0);
    assert_int_equal (task->result_bytes, 0);
    assert_null (task->error);
    assert_int_equal (task->finished_at, 0);
    assert_int_equal (task->expires_at, (uint64_t) rig->now.wall_ms + DAY_MS);
    move_to (rig, place);
    rig_worker_credit (rig, 1, WORKER, 1, 1);
    rig_settle (rig);
    const rig_item_t *again = rig_assignment (rig, 1, 1);
    assert_non_null (again);
    assert_int_equal (again->assignment->attempt, 2);
    assert_int_equal (again->body_bytes, 7);
    assert_memory_equal (again->body, "payload", 7);
    rig_complete (rig, 1, again->assignment, "done");
    rig_settle (rig);
    uint64_t result = rig_result (rig, 0, SUBJECT);
    rig_run (rig);
    assert_int_equal (rig_reply (rig, 0, result)->body_bytes, 4);
}

static void a_failed_task_is_done_again (void **state)
{
    failed_is_done_again (*state, IN_MEMORY);
}

static void a_failed_task_in_the_tables_is_done_again (void **state)
{
    failed_is_done_again (*state, IN_TABLES);
}

/* Also when the task has failed again since, and is in the tables alone. */
static void a_repeat_gets_the_first_answer (void **state)
{
    rig_t *rig = *state;
    fail_it (rig, IN_TABLES);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    rig_worker_credit (rig, 1, WORKER, 1, 1);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_WORKING);
    rig_fail (rig, 1, rig_assignment (rig, 1, 1)->assignment, 6, true);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_FAILED);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_done (rig, retry (rig, 1), TMQ_STATUS_FAILED);
    assert_done (rig, retry (rig, 2), TMQ_STATUS_QUEUED);
}

/* A repeat that was long under way does nothing again. Behind eight it is not known any more. */
static void eight_retries_are_remembered (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    for (unsigned by = 1; by <= 9; by++) {
        rig_cancel (rig, 0, SUBJECT);
        rig_settle (rig);
        assert_done (rig, retry (rig, by), TMQ_STATUS_QUEUED);
    }
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    for (unsigned by = 2; by <= 9; by++)
        assert_done (rig, retry (rig, by), TMQ_STATUS_CANCELLED);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_done (rig, retry (rig, 2), TMQ_STATUS_CANCELLED);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
}

static void only_what_failed_or_was_cancelled_is_retried (void **state)
{
    rig_t *rig = *state;
    assert_refused (rig, retry (rig, 1), TMQ_NOT_FOUND, "");
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    assert_refused (rig, retry (rig, 1), TMQ_WRONG_STATUS, "the task is queued");
    const Taskmq__Assignment *assignment = claim (rig);
    assert_refused (rig, retry (rig, 1), TMQ_WRONG_STATUS, "it cannot be retried: the task is wor");
    rig_complete (rig, 1, assignment, "r");
    rig_settle (rig);
    assert_refused (rig, change (rig, TASKMQ__REQUEST__OP_RESUME, 1), TMQ_WRONG_STATUS,
                    "it cannot be resumed: the task is completed");
    rig_advance (rig, DAY_MS);
    assert_refused (rig, retry (rig, 1), TMQ_EXPIRED, "");
}

/* The worker has not stopped yet: nobody else may begin. */
static void a_retry_waits_for_the_lease_beside_it (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *assignment = claim (rig);
    rig_started (rig, 1, assignment);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    rig_register (rig, 0, WORKER + 1, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->phase, TMQ_PHASE_BLOCKED);
    assert_int_equal (rig_assignments (rig, 0), 0);
    uint64_t renew = rig_renew (rig, 1, WORKER, assignment);
    rig_run (rig);
    assert_int_equal (rig_reply (rig, 1, renew)->reply->renewed->leases[0]->code, TMQ_CANCELLED);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register (rig, 0, WORKER + 1, "q", 1);
    rig_register_with (rig, 1, WORKER, "q", 1, assignment);
    rig_run (rig);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->phase, TMQ_PHASE_BLOCKED);
    uint64_t complete = rig_complete (rig, 1, assignment, "late");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_WRONG_STATUS);
    assert_int_equal (rig_assignments (rig, 0), 1);
    assert_int_equal (rig_assignment (rig, 0, 0)->assignment->attempt, 2);
}

/* The next attempt begins as after any other end: what the old worker says is of no account. */
static void what_the_old_worker_says_counts_no_more (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *assignment = claim (rig);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    uint64_t words[] = {
        rig_started (rig, 1, assignment), rig_push (rig, 1, assignment, "here I am", 1),
        rig_ask (rig, 1, assignment, "key", "1"), rig_checkpoint (rig, 1, assignment, "old")};
    rig_settle (rig);
    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++)
        assert_int_equal (rig_code (rig, 1, words[i]), TMQ_WRONG_STATUS);
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->phase, TMQ_PHASE_BLOCKED);
    assert_string_equal (task->status_message, "");
    assert_int_equal (task->started_at, 0);
    rig_register_with (rig, 1, WORKER, "q", 1, assignment);
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->started_at, 0);
    rig_cancel_ack (rig, 1, assignment);
    rig_worker_credit (rig, 1, WORKER, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->attempt, 2);
    const Taskmq__Extra *extra = rig_assignment (rig, 1, 1)->assignment->extra;
    assert_true (extra == NULL || extra->checkpoint_bytes == 0);
}

static void a_lease_that_ends_lets_it_go_on (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    rig_started (rig, 1, claim (rig));
    rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    rig_goodbye (rig, 1);
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->phase, TMQ_PHASE_READY);
}

static void a_blocked_task_may_be_cancelled (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *assignment = claim (rig);
    rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    rig_use_request_id (9);
    rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_CANCELLED);
    uint64_t ack = rig_cancel_ack (rig, 1, assignment);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, ack), TMQ_OK);
}

/* Those who waited for the end have seen it, although it is over. */
static void a_wait_is_told_of_an_end_that_was_undone (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    uint64_t wait = rig_wait (rig, 0, SUBJECT, 1, 0);
    rig_run (rig);
    rig_gather (rig);
    rig_cancel (rig, 0, SUBJECT);
    uint64_t again = retry (rig, 1);
    rig_send_gathered (rig, 0);
    assert_done (rig, again, TMQ_STATUS_QUEUED);
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status,
                      TMQ_STATUS_CANCELLED);
}

static void a_key_stays_with_its_task (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = "q";
    spec.dedup_key = "key";
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_run (rig);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    Taskmq__TaskSpec same = TASKMQ__TASK_SPEC__INIT;
    same.queue = "q";
    same.dedup_key = "key";
    uint64_t submit = rig_submit_spec (rig, 0, SUBJECT + 1, &same, "p");
    rig_run (rig);
    assert_true (rig_reply (rig, 0, submit)->reply->submitted->items[0]->existing);
}

static void a_failed_commit_takes_it_back (void **state)
{
    rig_t *rig = *state;
    fail_it (rig, IN_TABLES);
    retry (rig, 1);
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_FAILED);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
}

static void live_tasks_have_a_limit (void **state)
{
    rig_t *rig = *state;
    rig->config.live_tasks_max = 1;
    engine_configure (rig->engine, &rig->config);
    fail_it (rig, IN_TABLES);
    rig_submit (rig, 0, SUBJECT + 1, "other", "p");
    rig_run (rig);
    assert_refused (rig, retry (rig, 1), TMQ_LIMIT, "live tasks: 1, as many as there may be");
    rig_cancel (rig, 0, SUBJECT + 1);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
}

static void set_queue (rig_t *rig, const char *queue, Taskmq__QueueSettings *settings,
                       uint32_t field)
{
    uint32_t fields[] = {field};
    static uint8_t sets = 0; /* each is a request of its own */
    uint8_t request_id[16] = {9, ++sets};
    Taskmq__QueueSet body = TASKMQ__QUEUE_SET__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_QUEUE_SET;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.queue_set = &body;
    body.queue = (char *) (uintptr_t) queue;
    body.settings = settings;
    body.fields = fields;
    body.n_fields = 1;
    uint64_t number = rig_send (rig, 0, &request, NULL, 0);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, number), TMQ_OK);
}

/* What is set for a queue holds for who comes back by hand, too. */
static void a_queue_has_a_limit (void **state)
{
    rig_t *rig = *state;
    Taskmq__QueueSettings settings = TASKMQ__QUEUE_SETTINGS__INIT;
    fail_it (rig, IN_TABLES);
    settings.max_tasks = 1;
    set_queue (rig, "q", &settings, TMQ_QUEUE_FIELD_MAX_TASKS);
    rig_submit (rig, 0, SUBJECT + 1, "q", "p");
    rig_run (rig);
    assert_refused (rig, retry (rig, 1), TMQ_LIMIT,
                    "queued tasks of the queue: 1, as many as there may be");
    rig_cancel (rig, 0, SUBJECT + 1);
    rig_settle (rig);
    settings.max_bytes = 6; /* of 7 */
    set_queue (rig, "q", &settings, TMQ_QUEUE_FIELD_MAX_BYTES);
    assert_refused (rig, retry (rig, 2), TMQ_LIMIT, "bytes of payloads of the queue's queued");
    settings.max_bytes = 7;
    set_queue (rig, "q", &settings, TMQ_QUEUE_FIELD_MAX_BYTES);
    assert_done (rig, retry (rig, 3), TMQ_STATUS_QUEUED);
}

static void dependencies_have_a_limit (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Dependency after = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *list[] = {&after};
    tmq_id_t parent = rig_id (5);
    spec.queue = (char *) "q";
    spec.extra = &extra;
    extra.after = list;
    extra.n_after = 1;
    after.task_id = (ProtobufCBinaryData){sizeof (parent), parent.bytes};
    rig_submit (rig, 0, 5, "q", "p");
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_cancel (rig, 0, SUBJECT);
    rig_submit_spec (rig, 0, SUBJECT + 1, &spec, "p");
    rig_settle (rig);
    rig->config.dependencies_max = 1;
    engine_configure (rig->engine, &rig->config);
    assert_refused (rig, retry (rig, 1), TMQ_LIMIT, "dependencies of waiting tasks: 1, as many");
    rig_cancel (rig, 0, SUBJECT + 1);
    rig_settle (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
}

static void each_id_has_its_own_answer (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 255; n++)
        rig_submit (rig, 0, n, "q", "p");
    for (unsigned n = 1; n <= 255; n += 2)
        rig_cancel (rig, 0, n);
    rig_settle (rig);
    uint64_t request = rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, 1, 256);
    rig_run (rig);
    const Taskmq__Changed *changed = rig_reply (rig, 0, request)->reply->changed;
    assert_int_equal (changed->n_items, 256);
    for (unsigned n = 1; n <= 256; n++) {
        unsigned code = n == 256 ? TMQ_NOT_FOUND : n % 2 == 0 ? TMQ_WRONG_STATUS : TMQ_OK;
        assert_int_equal (changed->items[n - 1]->code, code);
    }
}

/* set. */

static void what_waits_is_set (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Label first = TASKMQ__LABEL__INIT;
    Taskmq__Label second = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&first, &second};
    first.key = "a";
    first.value = "1";
    second.key = "b";
    second.value = "2";
    spec.queue = "q";
    spec.n_labels = 2;
    spec.labels = labels;
    rig_submit (rig, 0, SUBJECT + 1, "q", "p");
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_settle (rig);
    rig_advance (rig, 3000);
    Taskmq__Set what = TASKMQ__SET__INIT;
    char *drop[] = {"a", "none"};
    second.value = "3";
    what.ttl_ms = 60000;
    what.priority_plus_1 = 201;
    what.max_attempts = 7;
    what.n_labels = 1;
    what.labels = &labels[1];
    what.n_drop_labels = 2;
    what.drop_labels = drop;
    assert_done (rig, set (rig, &what, 1), TMQ_STATUS_QUEUED);
    for (int i = 0; i < 2; i++) {
        const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
        assert_int_equal (task->priority, 200);
        assert_int_equal (task->max_attempts, 7);
        assert_int_equal (task->ttl_ms, 60000);
        assert_int_equal (task->expires_at, (uint64_t) rig->now.wall_ms + 60000);
        assert_int_equal (task->n_labels, 1);
        assert_string_equal (task->labels[0]->key, "b");
        assert_string_equal (task->labels[0]->value, "3");
        rig_restart (rig);
        rig_link (rig, 0, "default");
        rig_link (rig, 1, "default");
    }
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    tmq_id_t id = rig_id (SUBJECT);
    assert_memory_equal (rig_assignment (rig, 1, 0)->assignment->task_id.data, id.bytes, 16);
}

static void a_start_is_put_off_and_brought_forward (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    Taskmq__Set later = TASKMQ__SET__INIT;
    later.not_before = (uint64_t) rig->now.wall_ms + 5000;
    assert_done (rig, set (rig, &later, 1), TMQ_STATUS_QUEUED);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->phase, TMQ_PHASE_SCHEDULED);
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    Taskmq__Set now = TASKMQ__SET__INIT;
    now.at_once = true;
    assert_done (rig, set (rig, &now, 2), TMQ_STATUS_QUEUED);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_refused (rig, set (rig, &later, 3), TMQ_WRONG_STATUS, "its start cannot be set");
}

static void what_has_ended_keeps_its_result (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    rig_complete (rig, 1, claim (rig), "result");
    rig_settle (rig);
    Taskmq__Set what = TASKMQ__SET__INIT;
    what.ttl_never = true;
    assert_done (rig, set (rig, &what, 1), TMQ_STATUS_COMPLETED);
    for (int i = 0; i < 2; i++) {
        uint64_t result = rig_result (rig, 0, SUBJECT);
        rig_run (rig);
        const rig_item_t *item = rig_reply (rig, 0, result);
        assert_int_equal (item->body_bytes, 6);
        assert_int_equal (item->reply->task->expires_at, 0);
        rig_settle (rig);
    }
    what.priority_plus_1 = 1;
    assert_refused (rig, set (rig, &what, 2), TMQ_WRONG_STATUS, "only its ttl and labels");
}

static void labels_have_a_limit (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    Taskmq__Label list[TMQ_LABELS_MAX];
    Taskmq__Label *labels[TMQ_LABELS_MAX];
    char keys[TMQ_LABELS_MAX][4];
    for (int i = 0; i < TMQ_LABELS_MAX; i++) {
        list[i] = (Taskmq__Label) TASKMQ__LABEL__INIT;
        snprintf (keys[i], sizeof (keys[i]), "k%d", i);
        list[i].key = keys[i];
        list[i].value = "v";
        labels[i] = &list[i];
    }
    Taskmq__Set what = TASKMQ__SET__INIT;
    what.n_labels = TMQ_LABELS_MAX;
    what.labels = labels;
    assert_done (rig, set (rig, &what, 1), TMQ_STATUS_QUEUED);
    assert_done (rig, set (rig, &what, 2), TMQ_STATUS_QUEUED);
    what.n_labels = 1;
    list[0].key = "more";
    assert_refused (rig, set (rig, &what, 3), TMQ_LIMIT, "labels of a task: 16");
    assert_int_equal (rig_task (rig, 0, SUBJECT)->n_labels, TMQ_LABELS_MAX);
}

/* purge. */

static void purged_is_gone (rig_t *rig, place_t place)
{
    fail_it (rig, place);
    assert_done (rig, purge (rig, 1), TMQ_STATUS_NONE);
    for (int i = 0; i < 3; i++) {
        uint64_t get = rig_get (rig, 0, SUBJECT);
        rig_run (rig);
        assert_int_equal (rig_code (rig, 0, get), TMQ_PURGED);
        assert_done (rig, purge (rig, 1), TMQ_STATUS_NONE);
        assert_refused (rig, retry (rig, 1), TMQ_PURGED, "the task was removed at 20");
        uint64_t submit = rig_submit (rig, 0, SUBJECT, "q", "payload");
        rig_run (rig);
        assert_int_equal (rig_reply (rig, 0, submit)->reply->submitted->items[0]->code, TMQ_PURGED);
        if (i == 0) {
            rig_settle (rig);
        } else {
            rig_restart (rig);
            rig_link (rig, 0, "default");
        }
    }
    assert_null (rig->rows[1]);
}

static void what_has_ended_is_purged (void **state)
{
    purged_is_gone (*state, IN_MEMORY);
}

static void what_is_in_the_tables_is_purged (void **state)
{
    purged_is_gone (*state, IN_TABLES);
}

static void a_purge_is_taken_back_with_its_commit (void **state)
{
    rig_t *rig = *state;
    fail_it (rig, IN_MEMORY);
    purge (rig, 1);
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_FAILED);
}

static void what_lives_is_not_purged (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    assert_refused (rig, purge (rig, 1), TMQ_WRONG_STATUS, "only what has ended can be purged");
    const Taskmq__Assignment *assignment = claim (rig);
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    assert_refused (rig, purge (rig, 1), TMQ_WRONG_STATUS, "its worker has not stopped yet");
    rig_cancel_ack (rig, 1, assignment);
    rig_run (rig);
    assert_done (rig, purge (rig, 1), TMQ_STATUS_NONE);
}

/* A key is free again, and the exporter's order of things holds: the purge is the last event. */
static void a_purge_frees_the_key (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 3; n++) {
        Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
        spec.queue = "q";
        spec.dedup_key = "key";
        uint64_t submit = rig_submit_spec (rig, 0, n, &spec, "p");
        rig_run (rig);
        const Taskmq__SubmittedItem *item = rig_reply (rig, 0, submit)->reply->submitted->items[0];
        assert_int_equal (item->code, TMQ_OK);
        assert_false (item->existing);
        rig_cancel (rig, 0, n);
        move_to (rig, n == 2 ? IN_TABLES : IN_MEMORY);
        rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, n, 1);
        rig_run (rig);
    }
    rig_settle (rig);
}

/* Checkpoints. */

static size_t checkpoints (const rig_t *rig)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == ROW_KIND_CHECKPOINT;
    return count;
}

static void assert_kept (rig_t *rig, const Taskmq__Assignment *assignment, const char *state)
{
    uint64_t read = rig_checkpoint (rig, 1, assignment, NULL);
    rig_run (rig);
    const rig_item_t *item = rig_reply (rig, 1, read);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->checkpoint_state->body, strlen (state));
    assert_int_equal (item->body_bytes, strlen (state));
    if (state[0] != '\0')
        assert_memory_equal (item->body, state, strlen (state));
}

static void keep (rig_t *rig, const Taskmq__Assignment *assignment, const char *state)
{
    uint64_t request = rig_checkpoint (rig, 1, assignment, state);
    rig_outputs (rig);
    assert_null (rig_reply (rig, 1, request)); /* not before it is durable */
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_OK);
}

/* The newest one: there is room for one at a time. */
static const Taskmq__Assignment *claim_again (rig_t *rig)
{
    rig_advance (rig, 3000);
    return rig_assignment (rig, 1, rig_assignments (rig, 1) - 1)->assignment;
}

/* They count until they are gone, also through a restart. */
static void a_namespace_keeps_only_so_many_bytes_of_checkpoints (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_bytes_max = 10;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    keep (rig, first, "12345678");
    keep (rig, first, "1234567890");
    uint64_t request = rig_checkpoint (rig, 1, first, "12345678901");
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_LIMIT);
    assert_kept (rig, first, "1234567890");
    rig_fail (rig, 1, first, 5, false);
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register (rig, 1, WORKER, "q", 1);
    const Taskmq__Assignment *second = claim_again (rig);
    request = rig_checkpoint (rig, 1, second, "12345678901");
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_LIMIT);
    rig_complete (rig, 1, second, "");
    rig_settle (rig);
    rig_submit (rig, 0, SUBJECT + 1000, "q", "p");
    const Taskmq__Assignment *other = claim_again (rig);
    keep (rig, other, "1234567890");
    rig_free (rig);
}

/* Through a failed attempt, the tables, a restart, a failure for good and a resume. */
static void the_next_attempt_has_the_checkpoint (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    assert_kept (rig, first, "");
    keep (rig, first, "one");
    keep (rig, first, "three");
    assert_kept (rig, first, "three");
    rig_fail (rig, 1, first, 5, false);
    rig_settle (rig);
    const Taskmq__Assignment *second = claim_again (rig);
    assert_int_equal (second->extra->checkpoint_bytes, 5);
    assert_kept (rig, second, "three");
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_register_with (rig, 1, WORKER, "q", 1, second);
    assert_kept (rig, second, "three");
    rig_use_request_id (77);
    rig_fail (rig, 1, second, 6, true);
    rig_settle (rig);
    assert_int_equal (checkpoints (rig), 1);
    assert_done (rig, change (rig, TASKMQ__REQUEST__OP_RESUME, 1), TMQ_STATUS_QUEUED);
    const Taskmq__Assignment *third = claim_again (rig);
    assert_kept (rig, third, "three");
    rig_complete (rig, 1, third, "r");
    rig_settle (rig);
    assert_int_equal (checkpoints (rig), 0);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->extra->checkpoint_bytes, 0);
}

static void fail_with_checkpoint (rig_t *rig)
{
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *assignment = claim (rig);
    keep (rig, assignment, "state");
    rig_fail (rig, 1, assignment, 5, true);
    rig_settle (rig);
    assert_int_equal (checkpoints (rig), 1);
}

static void a_retry_begins_without_it (void **state)
{
    rig_t *rig = *state;
    fail_with_checkpoint (rig);
    assert_done (rig, retry (rig, 1), TMQ_STATUS_QUEUED);
    assert_kept (rig, claim_again (rig), "");
    assert_int_equal (checkpoints (rig), 0);
}

static void it_goes_with_the_task (void **state)
{
    rig_t *rig = *state;
    fail_with_checkpoint (rig);
    assert_done (rig, purge (rig, 1), TMQ_STATUS_NONE);
    rig_settle (rig);
    assert_int_equal (checkpoints (rig), 0);
}

static void only_the_holder_keeps_something (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    keep (rig, first, "one");
    rig_fail (rig, 1, first, 5, false);
    rig_run (rig);
    uint64_t late = rig_checkpoint (rig, 1, first, "late");
    uint64_t read = rig_checkpoint (rig, 1, first, NULL);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, late), TMQ_STALE_LEASE);
    assert_int_equal (rig_code (rig, 1, read), TMQ_STALE_LEASE);
    const Taskmq__Assignment *second = claim_again (rig);
    assert_kept (rig, second, "one");
    keep (rig, second, "");
    assert_kept (rig, second, "");
    rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    late = rig_checkpoint (rig, 1, second, "late");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, late), TMQ_WRONG_STATUS);
    assert_int_equal (checkpoints (rig), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_failed_task_is_done_again),
        TEST (a_failed_task_in_the_tables_is_done_again),
        TEST (a_repeat_gets_the_first_answer),
        TEST (eight_retries_are_remembered),
        TEST (only_what_failed_or_was_cancelled_is_retried),
        TEST (a_retry_waits_for_the_lease_beside_it),
        TEST (what_the_old_worker_says_counts_no_more),
        TEST (a_lease_that_ends_lets_it_go_on),
        TEST (a_blocked_task_may_be_cancelled),
        TEST (a_wait_is_told_of_an_end_that_was_undone),
        TEST (a_key_stays_with_its_task),
        TEST (a_failed_commit_takes_it_back),
        TEST (live_tasks_have_a_limit),
        TEST (a_queue_has_a_limit),
        TEST (dependencies_have_a_limit),
        TEST (each_id_has_its_own_answer),
        TEST (what_waits_is_set),
        TEST (a_start_is_put_off_and_brought_forward),
        TEST (what_has_ended_keeps_its_result),
        TEST (labels_have_a_limit),
        TEST (what_has_ended_is_purged),
        TEST (what_is_in_the_tables_is_purged),
        TEST (a_purge_is_taken_back_with_its_commit),
        TEST (what_lives_is_not_purged),
        TEST (a_purge_frees_the_key),
        TEST (the_next_attempt_has_the_checkpoint),
        cmocka_unit_test (a_namespace_keeps_only_so_many_bytes_of_checkpoints),
        TEST (a_retry_begins_without_it),
        TEST (it_goes_with_the_task),
        TEST (only_the_holder_keeps_something),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
