/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Submission and time to live: repeats, keys, conflicts, limits, overload, expiry,
 * removal, clocks. */
#include <stdlib.h>
#include <string.h>

#include "core/engine/rooms.h"
#include "core/tasks/extras.h"
#include "core/tasks/journal.h"
#include "core_rig.h"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static const Taskmq__SubmittedItem *item_of (rig_t *rig, size_t peer, uint64_t request)
{
    const rig_item_t *item = rig_reply (rig, peer, request);
    assert_non_null (item);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->reply->submitted->n_items, 1);
    return item->reply->submitted->items[0];
}

static uint64_t submit_key (rig_t *rig, size_t peer, unsigned n, const char *key,
                            const char *payload)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.dedup_key = (char *) key;
    return rig_submit_spec (rig, peer, n, &spec, payload);
}

static uint64_t submit_ttl (rig_t *rig, unsigned n, uint64_t ttl_ms)
{
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = ttl_ms;
    return rig_submit_spec (rig, 0, n, &spec, "p");
}

static void assert_id (const ProtobufCBinaryData *bytes, unsigned n)
{
    tmq_id_t id = rig_id (n);
    assert_int_equal (bytes->len, 16);
    assert_memory_equal (bytes->data, id.bytes, 16);
}

/* Which task it is (S13). */

static void the_same_submit_finds_its_task (void **state)
{
    rig_t *rig = *state;
    uint64_t requests[3];
    requests[0] = rig_submit (rig, 0, 1, "q", "p");
    requests[1] = rig_submit (rig, 0, 1, "q", "p"); /* in the same batch */
    rig_run (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig); /* now it is only in the tables */
    requests[2] = rig_submit (rig, 0, 1, "q", "p");
    rig_run (rig);
    assert_false (item_of (rig, 0, requests[0])->existing);
    assert_true (item_of (rig, 0, requests[1])->existing);
    assert_int_equal (item_of (rig, 0, requests[1])->status, TMQ_STATUS_QUEUED);
    assert_true (item_of (rig, 0, requests[2])->existing);
    assert_int_equal (item_of (rig, 0, requests[2])->status, TMQ_STATUS_CANCELLED);
}

static void a_new_id_is_not_looked_up_and_one_that_left_is (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    rig_submit (rig, 0, 2, "q", "p");
    rig_settle (rig);
    assert_int_equal (rig->loads, 0);
    rig_cancel (rig, 0, 1);
    rig_settle (rig); /* out of memory */
    uint64_t again = rig_submit (rig, 0, 1, "q", "p");
    rig_settle (rig);
    assert_int_equal (rig->loads, 1);
    assert_true (item_of (rig, 0, again)->existing);
    rig_fail_commit (rig); /* what left before is still known to the tables only */
    rig_link (rig, 0, "default");
    again = rig_submit (rig, 0, 1, "q", "p");
    rig_settle (rig);
    assert_true (item_of (rig, 0, again)->existing);
}

static void other_content_under_the_same_id_is_a_conflict (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    uint64_t payload = rig_submit (rig, 0, 1, "q", "other");
    uint64_t queue = rig_submit (rig, 0, 1, "q2", "p");
    rig_settle (rig);
    assert_int_equal (item_of (rig, 0, payload)->code, TMQ_CONFLICT);
    assert_int_equal (item_of (rig, 0, queue)->code, TMQ_CONFLICT);
}

/* Without an access file one user is known by several names: over ipc, over loopback. */
static void an_id_belongs_to_its_owner_where_there_are_several (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    rig->peers[2].identity = "local";
    rig_link (rig, 2, "default");
    uint64_t again = rig_submit (rig, 2, 1, "q", "p");
    rig_settle (rig);
    assert_true (item_of (rig, 2, again)->existing);
    rig_access (rig, "other addr:10.0.0.7 operator\n");
    rig->peers[2].identity = "other";
    rig_link (rig, 2, "default");
    uint64_t foreign = rig_submit (rig, 2, 1, "q", "p");
    rig_settle (rig);
    assert_int_equal (item_of (rig, 2, foreign)->code, TMQ_CONFLICT);
    assert_int_equal (item_of (rig, 2, foreign)->status, 0); /* nothing about it */
}

static void a_key_names_its_task (void **state)
{
    rig_t *rig = *state;
    submit_key (rig, 0, 1, "k", "p");
    uint64_t same = submit_key (rig, 0, 2, "k", "p");
    uint64_t other = submit_key (rig, 0, 3, "k", "x");
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    uint64_t later = submit_key (rig, 0, 4, "k", "p");
    rig_settle (rig);
    assert_true (item_of (rig, 0, same)->existing);
    assert_id (&item_of (rig, 0, same)->task_id, 1);
    assert_int_equal (item_of (rig, 0, other)->code, TMQ_CONFLICT);
    assert_true (item_of (rig, 0, later)->existing);
    assert_id (&item_of (rig, 0, later)->task_id, 1);
}

static void keys_belong_to_owners_and_namespaces (void **state)
{
    rig_t *rig = *state;
    rig->peers[2].identity = "uid:77";
    rig_link (rig, 2, "default");
    rig_link (rig, 3, "other");
    submit_key (rig, 0, 1, "k", "p");
    uint64_t owner = submit_key (rig, 2, 2, "k", "p");
    uint64_t space = submit_key (rig, 3, 3, "k", "p");
    rig_settle (rig);
    assert_false (item_of (rig, 2, owner)->existing);
    assert_false (item_of (rig, 3, space)->existing);
}

static void an_id_and_a_key_of_different_tasks_are_a_conflict (void **state)
{
    rig_t *rig = *state;
    submit_key (rig, 0, 1, "k", "p");
    rig_submit (rig, 0, 2, "q", "p");
    uint64_t request = submit_key (rig, 0, 2, "k", "p");
    rig_settle (rig);
    assert_int_equal (item_of (rig, 0, request)->code, TMQ_CONFLICT);
}

/* Batches and verdicts. */

static void each_item_of_a_batch_has_its_own_answer (void **state)
{
    rig_t *rig = *state;
    tmq_id_t ids[3] = {rig_id (1), rig_id (2), rig_id (3)};
    Taskmq__TaskSpec specs[3] = {TASKMQ__TASK_SPEC__INIT, TASKMQ__TASK_SPEC__INIT,
                                 TASKMQ__TASK_SPEC__INIT};
    Taskmq__TaskSpec *tasks[3];
    verdict_t items[3] = {{TMQ_OK, NULL}, {TMQ_INVALID, "queue: bad"}, {TMQ_OK, NULL}};
    for (size_t i = 0; i < 3; i++) {
        tasks[i] = &specs[i];
        specs[i].task_id = (ProtobufCBinaryData){16, ids[i].bytes};
        specs[i].queue = (char *) "q";
        specs[i].payload_bytes = 2;
    }
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    submit.n_tasks = 3;
    submit.tasks = tasks;
    request.op_case = TASKMQ__REQUEST__OP_SUBMIT;
    request.submit = &submit;
    uint64_t id = rig_send_judged (rig, 0, &request, items, "aabbcc", 6);
    rig_settle (rig);
    const Taskmq__Submitted *answer = rig_reply (rig, 0, id)->reply->submitted;
    assert_int_equal (answer->n_items, 3);
    assert_int_equal (answer->items[0]->code, TMQ_OK);
    assert_int_equal (answer->items[1]->code, TMQ_INVALID);
    assert_string_equal (answer->items[1]->text, "queue: bad");
    assert_int_equal (answer->items[2]->code, TMQ_OK);
    uint64_t payload = rig_payload (rig, 0, 3);
    rig_settle (rig);
    assert_memory_equal (rig_reply (rig, 0, payload)->body, "cc",
                         2); /* its own, not its neighbour's */
}

static void the_texts_of_many_refusals_do_not_burst_the_envelope (void **state)
{
    rig_t *rig = *state;
    enum { ITEMS = TMQ_SUBMIT_ITEMS_MAX };
    static char text[500];
    static verdict_t items[ITEMS];
    static tmq_id_t ids[ITEMS];
    static Taskmq__TaskSpec specs[ITEMS];
    static Taskmq__TaskSpec *tasks[ITEMS];
    memset (text, 'x', sizeof (text) - 1);
    for (unsigned i = 0; i < ITEMS; i++) {
        ids[i] = rig_id (i + 1);
        items[i] = (verdict_t){TMQ_INVALID, text};
        specs[i] = (Taskmq__TaskSpec) TASKMQ__TASK_SPEC__INIT;
        specs[i].task_id = (ProtobufCBinaryData){16, ids[i].bytes};
        tasks[i] = &specs[i];
    }
    Taskmq__Submit submit = TASKMQ__SUBMIT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    submit.n_tasks = ITEMS;
    submit.tasks = tasks;
    request.op_case = TASKMQ__REQUEST__OP_SUBMIT;
    request.submit = &submit;
    uint64_t id = rig_send_judged (rig, 0, &request, items, NULL, 0);
    rig_settle (rig); /* the rig looks at the size of every envelope */
    const Taskmq__Submitted *answer = rig_reply (rig, 0, id)->reply->submitted;
    assert_int_equal (answer->n_items, ITEMS);
    assert_string_equal (answer->items[0]->text, text);
    assert_int_equal (answer->items[ITEMS - 1]->code, TMQ_INVALID);
}

static void assert_extra (const Taskmq__Extra *extra)
{
    assert_non_null (extra);
    assert_int_equal (extra->start_by, 1900000000000);
    assert_int_equal (extra->max_runtime_ms, 60000);
    assert_string_equal (extra->trace, "00-ab-cd-01");
}

static void cancel_saying (rig_t *rig, unsigned n, const char *message)
{
    tmq_id_t id = rig_id (n);
    uint8_t request_id[16] = {9};
    Taskmq__Cancel cancel = TASKMQ__CANCEL__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    cancel.task_id = (ProtobufCBinaryData){16, id.bytes};
    cancel.message = (char *) message;
    request.op_case = TASKMQ__REQUEST__OP_CANCEL;
    request.cancel = &cancel;
    request.request_id = (ProtobufCBinaryData){16, request_id};
    rig_send (rig, 0, &request, NULL, 0);
}

static void what_few_tasks_have_is_kept (void **state)
{
    rig_t *rig = *state;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    extra.start_by = 1900000000000;
    extra.max_runtime_ms = 60000;
    extra.trace = (char *) "00-ab-cd-01";
    spec.extra = &extra;
    size_t counted = rig->engine->tasks.texts_bytes;
    rig_submit_spec (rig, 0, 1, &spec, "p");
    rig_submit (rig, 0, 2, "q", "p");
    rig_run (rig);
    assert_true (rig->engine->tasks.texts_bytes > counted);
    assert_extra (rig_task (rig, 0, 1)->extra);
    assert_null (rig_task (rig, 0, 2)->extra);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_extra (rig_task (rig, 0, 1)->extra);
    rig_register (rig, 0, 1, "q", 2);
    rig_run (rig);
    assert_extra (rig_assignment (rig, 0, 0)->assignment->extra);
    assert_null (rig_assignment (rig, 0, 1)->assignment->extra);
    cancel_saying (rig, 1, "not needed");
    rig_settle (rig);
    assert_extra (rig_task (rig, 0, 1)->extra);
    assert_string_equal (rig_task (rig, 0, 1)->extra->cancel_message, "not needed");
    assert_null (rig_task (rig, 0, 2)->extra);
    uint64_t history = rig_history (rig, 0, 1);
    rig_settle (rig);
    const Taskmq__EventList *list = rig_reply (rig, 0, history)->reply->event_page->list;
    assert_int_equal (list->n_events, 2); /* of a page */
    for (size_t i = 0; i < list->n_events; i++)
        assert_string_equal (list->events[i]->trace, "00-ab-cd-01");
}

static void what_is_changed_of_an_extra_is_stored (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "p");
    rig_settle (rig);
    tasks_t *tasks = &rig->engine->tasks;
    size_t cursor = 0;
    task_t *task = map_each (&tasks->by_id, &cursor);
    size_t counted = tasks->texts_bytes;
    assert_int_equal (extras_of (task)->max_runtime_ms, 0);
    extra_set_text (&extras_edit (task)->trace, "one");
    extra_set_text (&extras_edit (task)->trace, "two");
    extras_changed (tasks, task);
    assert_true (extras_room (task) <= TMQ_EXTRA_BYTES_MAX - EXTRA_MARKS_BYTES);
    journal_touch (tasks, task);
    rig_run (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_string_equal (rig_task (rig, 0, 1)->extra->trace, "two");
    tasks = &rig->engine->tasks;
    cursor = 0;
    task = map_each (&tasks->by_id, &cursor);
    extra_set_text (&extras_edit (task)->trace, NULL);
    extras_changed (tasks, task);
    journal_touch (tasks, task);
    rig_settle (rig);
    assert_null (rig_task (rig, 0, 1)->extra);
    extras_drop (tasks, task);
    assert_int_equal (tasks->texts_bytes, counted);
}

static void a_task_keeps_what_it_was_given (void **state)
{
    rig_t *rig = *state;
    Taskmq__Label label = TASKMQ__LABEL__INIT;
    Taskmq__Label *labels[] = {&label};
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    label.key = (char *) "colour";
    label.value = (char *) "blue";
    spec.method = (char *) "tools/call";
    spec.session = (char *) "thread";
    spec.content_type = (char *) "application/json";
    spec.meta = (char *) "{\"a\":1}";
    spec.priority_plus_1 = 256;
    spec.max_attempts = 7;
    spec.lease_ms = 5000;
    spec.poll_interval_ms = 250;
    spec.ttl_never = true;
    spec.n_labels = 1;
    spec.labels = labels;
    rig_submit_spec (rig, 0, 1, &spec, "{}");
    rig_settle (rig);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_string_equal (task->method, "tools/call");
    assert_string_equal (task->session, "thread");
    assert_string_equal (task->content_type, "application/json");
    assert_string_equal (task->meta, "{\"a\":1}");
    assert_string_equal (task->owner, "uid:0");
    assert_string_equal (task->namespace_, "default");
    assert_int_equal (task->priority, 255);
    assert_int_equal (task->max_attempts, 7);
    assert_int_equal (task->poll_interval_ms, 250);
    assert_int_equal (task->expires_at, 0);
    assert_int_equal (task->payload_bytes, 2);
    assert_int_equal (task->n_labels, 1);
    assert_string_equal (task->labels[0]->key, "colour");
    assert_string_equal (task->labels[0]->value, "blue");
    assert_int_equal (task->created_at, rig->now.wall_ms);
    assert_int_equal (task->version, 1);
    assert_int_equal (task->seq, 2); /* its session was the first event */
}

/* Limits and overload. */

static void too_many_live_tasks_are_refused (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.live_tasks_max = 2;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    uint64_t third = rig_submit (rig, 0, 3, "q", "");
    uint64_t known = rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (item_of (rig, 0, third)->code, TMQ_LIMIT);
    assert_true (item_of (rig, 0, known)->existing);
    rig_free (rig);
}

static void overload_refuses_submits_and_takes_the_rest (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.dirty_tasks_soft = 3;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    for (unsigned n = 1; n <= 3; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_run (rig); /* durable, not written back */
    uint64_t submit = rig_submit (rig, 0, 4, "q", "");
    rig_outputs (rig); /* it leaves at once (A8) */
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OVERLOADED);
    assert_true (rig_reply (rig, 0, submit)->reply->retry_after_ms > 0);
    uint64_t cancel = rig_cancel (rig, 0, 1);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, cancel), TMQ_OK);
    rig_settle (rig);
    submit = rig_submit (rig, 0, 4, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OK);
    rig_free (rig);
}

static void a_full_disk_refuses_submits (void **state)
{
    rig_t *rig = *state;
    engine_set_full (rig->engine, true);
    uint64_t submit = rig_submit (rig, 0, 1, "q", "");
    rig_outputs (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_STORE_FULL);
    engine_set_full (rig->engine, false);
    submit = rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, submit), TMQ_OK);
}

static void payloads_beyond_the_cache_are_looked_up_again (void **state)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.payload_cache_bytes = 8;
    rig_t *rig = rig_new_with (&config);
    (void) state;
    rig_link (rig, 0, "default");
    for (unsigned n = 1; n <= 3; n++)
        rig_submit (rig, 0, n, "q", "12345");
    rig_settle (rig);
    size_t loads = rig->loads;
    rig_register (rig, 0, 100, "q", 3);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 0), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_memory_equal (rig_assignment (rig, 0, i)->body, "12345", 5);
    assert_int_equal (rig->loads - loads, 2); /* one was in memory */
    rig_free (rig);
}

/* Time to live. */

static void a_queued_task_past_its_time_fails (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 5000);
    rig_settle (rig);
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    rig_advance (rig, 4900);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    rig_advance (rig, 1500);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_EXPIRED);
    assert_false (task->dead);
    assert_int_equal (task->expires_at, task->finished_at + 5000); /* S10 */
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status, TMQ_STATUS_FAILED);
    rig_advance (rig, 5000);
    uint64_t get = rig_get (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_EXPIRED); /* swept or not */
}

static void an_expired_task_is_never_claimed (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 500);
    rig_settle (rig);
    rig->now.wall_ms += 501; /* the wheel has not turned yet */
    rig->now.mono_ms += 501;
    rig_register (rig, 1, 100, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
}

static void a_working_task_never_expires (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = 2000;
    spec.lease_ms = 600000;
    rig_submit_spec (rig, 0, 1, &spec, "");
    rig_register (rig, 1, 100, "q", 1);
    rig_settle (rig);
    rig_advance (rig, 20000);
    uint64_t complete = rig_complete (rig, 1, rig_assignment (rig, 1, 0)->assignment, "r");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_OK);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->expires_at, task->finished_at + 2000);
}

static void a_result_is_kept_a_day_at_most_by_itself (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, (uint64_t) 10 * DAY_MS);
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->expires_at, task->created_at + (uint64_t) 10 * DAY_MS);
    rig_use_request_id (2);
    submit_ttl (rig, 2, DAY_MS);
    rig_advance (rig, 3000);
    rig_cancel (rig, 0, 2);
    rig_settle (rig);
    task = rig_task (rig, 0, 2);
    assert_int_equal (task->expires_at, task->finished_at + DAY_MS);
}

static record_t *stored (const rig_t *rig, int64_t number)
{
    record_t copy = *rig->rows[number];
    copy.payload = copy.result = NULL;
    return record_new (&copy);
}

/* What the store would propose; takes the record. */
static size_t propose_record (rig_t *rig, record_t *record, uint64_t written)
{
    due_t due = {.records = calloc (1, sizeof (record_t *)), .count = 1, .written = written};
    due.records[0] = record;
    return engine_due (rig->engine, &due, rig->now);
}

/* … everything of this number. */
static size_t propose (rig_t *rig, int64_t number)
{
    return propose_record (rig, stored (rig, number), UINT64_MAX);
}

/* A reset forgets the removal while the tables still show the task: that is no news. */
static void nothing_is_removed_twice_while_rows_wait_for_space (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 2000);
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    rig_advance (rig, 2100);
    uint64_t written = rig->written;
    record_t *first = stored (rig, 1);
    record_t *second = stored (rig, 1);
    assert_int_equal (propose_record (rig, first, written), 1);
    rig_commit (rig);
    rig_submit (rig, 0, 2, "q", "p");
    uint64_t kept = rig_fail_commit_stalled (rig);
    assert_true (written < kept);
    assert_int_equal (propose_record (rig, second, written), 0);
}

static void removal_is_an_event_and_leaves_a_tombstone (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 2000);
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    propose (rig, 1); /* too early: the engine decides */
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_CANCELLED);
    rig_advance (rig, 2100);
    propose (rig, 1);
    propose (rig, 1); /* again, before it is written back */
    rig_commit (rig);
    assert_int_equal (rig->batches[rig->committed]->removals_count, 1);
    uint64_t early = rig_get (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, early), TMQ_EXPIRED);
    assert_null (rig->rows[1]);
    uint64_t get = rig_get (rig, 0, 1);
    uint64_t submit = rig_submit (rig, 0, 1, "q", "p");
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, get), TMQ_EXPIRED);
    assert_int_equal (item_of (rig, 0, submit)->code, TMQ_EXPIRED);
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->code, TMQ_EXPIRED);
}

static void a_key_is_free_when_its_task_is_over (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.dedup_key = (char *) "k";
    spec.ttl_ms = 2000;
    rig_submit_spec (rig, 0, 1, &spec, "p");
    rig_settle (rig);
    rig_cancel (rig, 0, 1);
    rig_advance (rig, 2100);
    uint64_t submit = submit_key (rig, 0, 2, "k", "p");
    rig_commit (rig);
    assert_int_equal (rig->batches[rig->committed]->removals_count, 1);
    rig_settle (rig);
    assert_false (item_of (rig, 0, submit)->existing);
    assert_id (&item_of (rig, 0, submit)->task_id, 2);
}

/* Clocks (S20). */

static void a_wall_clock_set_back_does_not_turn_times_back (void **state)
{
    rig_t *rig = *state;
    int64_t before = rig->now.wall_ms;
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    rig->now.wall_ms -= 3600000;
    rig_submit (rig, 0, 2, "q", "");
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, 2)->created_at, before);
}

static void a_backoff_does_not_wait_for_a_clock_set_back (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_register (rig, 1, 100, "q", 1);
    rig_settle (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, false);
    rig_settle (rig);
    rig->now.wall_ms -= 3600000;
    rig_advance (rig, 1500);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_backoff_does_not_wait_for_a_clock_that_came_back (void **state)
{
    rig_t *rig = *state;
    rig->now.wall_ms += DAY_MS;
    rig_submit (rig, 0, 1, "q", "");
    rig_register (rig, 1, 100, "q", 1);
    rig_settle (rig);
    rig_fail (rig, 1, rig_assignment (rig, 1, 0)->assignment, 1, false);
    rig_settle (rig);
    int64_t newest_ms = rig->now.wall_ms;
    rig->now.wall_ms -= DAY_MS;
    rig_restart_at (rig, newest_ms);
    rig_link (rig, 0, "default");
    rig_advance (rig, 1500);
    assert_int_equal (rig_task (rig, 0, 1)->phase, TMQ_PHASE_READY);
}

static void a_leap_forward_holds_expiry_for_a_while (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 60000);
    rig_settle (rig);
    rig->now.wall_ms += DAY_MS;
    rig_advance (rig, 5000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    rig_advance (rig, 62000); /* its own minute is over, leap or not */
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
    submit_ttl (rig, 2, 3600000);
    rig_settle (rig);
    rig->now.wall_ms += 2 * 3600000;
    rig_advance (rig, 9 * 60000);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_QUEUED);
    rig_advance (rig, 2 * 60000); /* ten minutes later the leap counts */
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_FAILED);
}

static clocks_step_t clock_news (rig_t *rig)
{
    int64_t ms;
    return engine_clock_news (rig->engine, &ms);
}

#define EIGHTY_YEARS_MS (INT64_C (80) * 365 * DAY_MS)

/* Eighty years ahead with a commit in it, for so long; then back. */
static void blip (rig_t *rig, unsigned task, int64_t ms)
{
    rig->now.wall_ms += EIGHTY_YEARS_MS;
    submit_ttl (rig, task, 60000);
    rig_settle (rig);
    rig_advance (rig, ms);
    assert_int_equal (clock_news (rig), CLOCKS_LEAPT);
    rig->now.wall_ms -= EIGHTY_YEARS_MS;
    rig_advance (rig, 1000);
    assert_int_equal (clock_news (rig), CLOCKS_BACK);
    assert_int_equal (clock_news (rig), CLOCKS_STEADY);
}

static void assert_time_goes_on (rig_t *rig, unsigned task)
{
    submit_ttl (rig, task, 60000);
    rig_settle (rig);
    assert_int_equal (rig_task (rig, 0, task)->created_at, rig->now.wall_ms);
    rig_advance (rig, 58000);
    assert_int_equal (rig_status (rig, 0, task), TMQ_STATUS_QUEUED);
    rig_advance (rig, 6000);
    assert_int_equal (rig_status (rig, 0, task), TMQ_STATUS_FAILED);
}

static void a_blip_of_the_future_freezes_nothing (void **state)
{
    rig_t *rig = *state;
    blip (rig, 1, 1000);
    assert_time_goes_on (rig, 2);
    blip (rig, 3, 11 * 60000); /* long enough to be believed */
    assert_time_goes_on (rig, 4);
}

static void what_waits_survives_a_blip (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 5 * 60000);
    rig_settle (rig);
    blip (rig, 2, 2 * 60000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    rig_advance (rig, 3 * 60000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
    assert_true (rig_task (rig, 0, 1)->finished_at <= (uint64_t) rig->now.wall_ms);
}

static void a_start_after_a_blip_follows_the_clock (void **state)
{
    rig_t *rig = *state;
    rig_restart_at (rig, rig->now.wall_ms + EIGHTY_YEARS_MS);
    assert_int_equal (clock_news (rig), CLOCKS_BACK);
    rig_link (rig, 0, "default");
    assert_time_goes_on (rig, 1);
}

static void a_start_far_ahead_holds_expiry_for_a_while (void **state)
{
    rig_t *rig = *state;
    submit_ttl (rig, 1, 3600000);
    submit_ttl (rig, 2, 3600000);
    rig_cancel (rig, 0, 2);
    rig_settle (rig);
    int64_t newest_ms = rig->now.wall_ms;
    rig->now.wall_ms += INT64_C (30) * DAY_MS;
    rig_restart_at (rig, newest_ms);
    assert_int_equal (clock_news (rig), CLOCKS_LEAPT);
    rig_link (rig, 0, "default");
    rig_advance (rig, 9 * 60000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_QUEUED);
    assert_int_equal (rig_status (rig, 0, 2), TMQ_STATUS_CANCELLED);
    assert_int_equal (propose (rig, 2), 0);
    rig_advance (rig, 2 * 60000);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
    assert_int_equal (propose (rig, 2), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

/* A finished task whose row is damaged is neither unknown nor free to be submitted again. */
static void what_is_damaged_is_answered_internal (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig_link (rig, 0, "default");
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = "q";
    spec.dedup_key = "key";
    rig_submit_spec (rig, 0, 1, &spec, "a");
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig->damaged = true;
    uint64_t requests[] = {rig_get (rig, 0, 1), rig_result (rig, 0, 1), rig_payload (rig, 0, 1),
                           rig_cancel (rig, 0, 1), rig_history (rig, 0, 1)};
    uint64_t by_id = rig_submit (rig, 0, 1, "q", "a");
    uint64_t by_key = rig_submit_spec (rig, 0, 2, &spec, "a");
    rig_settle (rig);
    for (size_t i = 0; i < sizeof (requests) / sizeof (requests[0]); i++)
        assert_int_equal (rig_code (rig, 0, requests[i]), TMQ_INTERNAL);
    assert_int_equal (item_of (rig, 0, by_id)->code, TMQ_INTERNAL);
    assert_int_equal (item_of (rig, 0, by_key)->code, TMQ_INTERNAL);
    rig_free (rig);
}

/* A queued task whose payload is lost does not stand before the others. */
static void a_lost_payload_fails_its_task (void **state)
{
    (void) state;
    rig_t *rig = rig_new ();
    rig_link (rig, 0, "default");
    rig_submit (rig, 0, 1, "q", "lost");
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig->damaged = true;
    rig_submit (rig, 0, 2, "q", "b");
    rig_register (rig, 1, 1, "q", 5);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    rig->damaged = false;
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_DAMAGED);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_is_damaged_is_answered_internal),
        cmocka_unit_test (a_lost_payload_fails_its_task),
        TEST (the_same_submit_finds_its_task),
        TEST (a_new_id_is_not_looked_up_and_one_that_left_is),
        TEST (other_content_under_the_same_id_is_a_conflict),
        TEST (an_id_belongs_to_its_owner_where_there_are_several),
        TEST (a_key_names_its_task),
        TEST (keys_belong_to_owners_and_namespaces),
        TEST (an_id_and_a_key_of_different_tasks_are_a_conflict),
        TEST (each_item_of_a_batch_has_its_own_answer),
        TEST (the_texts_of_many_refusals_do_not_burst_the_envelope),
        TEST (a_task_keeps_what_it_was_given),
        TEST (what_few_tasks_have_is_kept),
        TEST (what_is_changed_of_an_extra_is_stored),
        cmocka_unit_test (too_many_live_tasks_are_refused),
        cmocka_unit_test (overload_refuses_submits_and_takes_the_rest),
        TEST (a_full_disk_refuses_submits),
        cmocka_unit_test (payloads_beyond_the_cache_are_looked_up_again),
        TEST (a_queued_task_past_its_time_fails),
        TEST (an_expired_task_is_never_claimed),
        TEST (a_working_task_never_expires),
        TEST (a_result_is_kept_a_day_at_most_by_itself),
        TEST (nothing_is_removed_twice_while_rows_wait_for_space),
        TEST (removal_is_an_event_and_leaves_a_tombstone),
        TEST (a_key_is_free_when_its_task_is_over),
        TEST (a_wall_clock_set_back_does_not_turn_times_back),
        TEST (a_backoff_does_not_wait_for_a_clock_set_back),
        TEST (a_backoff_does_not_wait_for_a_clock_that_came_back),
        TEST (a_leap_forward_holds_expiry_for_a_while),
        TEST (a_blip_of_the_future_freezes_nothing),
        TEST (what_waits_survives_a_blip),
        TEST (a_start_after_a_blip_follows_the_clock),
        TEST (a_start_far_ahead_holds_expiry_for_a_while),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
