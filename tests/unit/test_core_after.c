/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Tasks that wait for others. */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"
#include "ids.h"

enum { OWNER = 0, WORKER = 1, FAN = 10, SLICE = 3 };

/* Submits task n, which depends on these, each with its policy. */
static uint64_t submit_after (rig_t *rig, unsigned n, const unsigned *after, size_t count,
                              const unsigned *policies)
{
    tmq_id_t ids[TMQ_AFTER_MAX];
    Taskmq__Dependency entries[TMQ_AFTER_MAX];
    Taskmq__Dependency *list[TMQ_AFTER_MAX];
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    assert_in_range (count, 1, TMQ_AFTER_MAX);
    for (size_t i = 0; i < count; i++) {
        ids[i] = rig_id (after[i]);
        taskmq__dependency__init (&entries[i]);
        entries[i].task_id = (ProtobufCBinaryData){sizeof (ids[i]), ids[i].bytes};
        entries[i].policy = policies == NULL ? TMQ_AFTER_FAIL : policies[i];
        list[i] = &entries[i];
    }
    extra.n_after = count;
    extra.after = list;
    spec.extra = &extra;
    return rig_submit_spec (rig, OWNER, n, &spec, "");
}

static uint64_t submit_after_one (rig_t *rig, unsigned n, unsigned after, unsigned policy)
{
    return submit_after (rig, n, &after, 1, &policy);
}

/* The code of the item of a submit that was sent. */
static unsigned item_code (rig_t *rig, uint64_t request)
{
    rig_run (rig);
    const Taskmq__Reply *reply = rig_reply (rig, OWNER, request)->reply;
    assert_int_equal (reply->code, TMQ_OK);
    return reply->submitted->items[0]->code;
}

static void expect_phase (rig_t *rig, unsigned n, unsigned phase)
{
    const Taskmq__Task *task = rig_task (rig, OWNER, n);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->phase, phase);
}

static void expect_dependency_failed (rig_t *rig, unsigned n, unsigned after, const char *status)
{
    char id[ID_TEXT_SIZE];
    char data[96];
    tmq_id_t awaited = rig_id (after);
    const Taskmq__Task *task = rig_task (rig, OWNER, n);
    id_format (&awaited, id);
    snprintf (data, sizeof (data), "{\"task_id\":\"%s\",\"status\":\"%s\"}", id, status);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_DEPENDENCY);
    assert_non_null (strstr (task->error->message, id));
    assert_string_equal (task->error->data, data);
    assert_false (task->dead);
}

/* The worker completes, or fails for good, what it gets until there is nothing left. */
static const Taskmq__Assignment *next_assignment (rig_t *rig)
{
    rig_run (rig);
    size_t count = rig_assignments (rig, WORKER);
    return count == 0 ? NULL : rig_assignment (rig, WORKER, count - 1)->assignment;
}

static void expect_assigned (const Taskmq__Assignment *assignment, unsigned n)
{
    tmq_id_t id = rig_id (n);
    assert_non_null (assignment);
    assert_memory_equal (assignment->task_id.data, id.bytes, sizeof (id));
}

static void finish (rig_t *rig, unsigned n, bool well)
{
    const Taskmq__Assignment *assignment = next_assignment (rig);
    expect_assigned (assignment, n);
    if (well)
        rig_complete (rig, WORKER, assignment, "done");
    else
        rig_fail (rig, WORKER, assignment, 7, true);
    rig_worker_credit (rig, WORKER, 1, assignment->number, 1);
    rig_run (rig);
}

static rig_t *new_rig (const engine_config_t *config)
{
    rig_t *rig = rig_new_with (config);
    rig_link (rig, OWNER, "default");
    rig_link (rig, WORKER, "default");
    return rig;
}

static rig_t *plain_rig (void)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    return new_rig (&config);
}

/* What it is. */

static void a_task_waits_until_all_have_ended (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    rig_submit (rig, OWNER, 2, "q", "");
    uint64_t request = submit_after (rig, 3, (unsigned[]){1, 2}, 2, NULL);
    assert_int_equal (item_code (rig, request), TMQ_OK);
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, true);
    expect_phase (rig, 3, TMQ_PHASE_BLOCKED);
    uint64_t version = rig_task (rig, OWNER, 3)->version;
    finish (rig, 2, true);
    const Taskmq__Assignment *assignment = next_assignment (rig);
    expect_assigned (assignment, 3);
    assert_int_equal (rig_task (rig, OWNER, 3)->version, version + 2); /* unblocked, claimed */
    assert_int_equal (assignment->extra->n_after, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal (assignment->extra->after[i]->status, TMQ_STATUS_COMPLETED);
    rig_free (rig);
}

static void a_failure_goes_down_the_chain (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    for (unsigned n = 2; n <= 5; n++)
        submit_after_one (rig, n, n - 1, TMQ_AFTER_FAIL);
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, false);
    for (unsigned n = 2; n <= 5; n++)
        expect_dependency_failed (rig, n, n - 1, "failed");
    rig_free (rig);
}

static void one_failure_is_enough (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    rig_submit (rig, OWNER, 2, "elsewhere", "");
    submit_after (rig, 3, (unsigned[]){1, 2}, 2, NULL);
    rig_register (rig, WORKER, 1, "q", 1);
    rig_run (rig);
    rig_cancel (rig, OWNER, 1);
    rig_run (rig);
    expect_dependency_failed (rig, 3, 1, "cancelled");
    rig_cancel (rig, OWNER, 2); /* nobody waits for it any more */
    rig_run (rig);
    expect_dependency_failed (rig, 3, 1, "cancelled");
    rig_free (rig);
}

static void continue_tells_of_the_end_and_ignore_does_not (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "elsewhere", "");
    rig_submit (rig, OWNER, 2, "elsewhere", "");
    submit_after (rig, 3, (unsigned[]){1, 2}, 2,
                  (unsigned[]){TMQ_AFTER_IGNORE, TMQ_AFTER_CONTINUE});
    rig_register (rig, WORKER, 1, "q", 1);
    rig_cancel (rig, OWNER, 1);
    rig_run (rig);
    expect_phase (rig, 3, TMQ_PHASE_BLOCKED);
    assert_int_equal (rig_task (rig, OWNER, 3)->extra->n_after, 1);
    rig_cancel (rig, OWNER, 2);
    const Taskmq__Assignment *assignment = next_assignment (rig);
    expect_assigned (assignment, 3);
    tmq_id_t second = rig_id (2);
    assert_int_equal (assignment->extra->n_after, 1);
    assert_memory_equal (assignment->extra->after[0]->task_id.data, second.bytes, sizeof (second));
    assert_int_equal (assignment->extra->after[0]->status, TMQ_STATUS_CANCELLED);
    rig_free (rig);
}

/* Those that ended before. */

static void an_earlier_end_is_known_at_once (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    for (unsigned n = 1; n <= 2; n++)
        rig_submit (rig, OWNER, n, "q", "");
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, true);
    finish (rig, 2, false);
    rig_settle (rig); /* only the tables have them */
    submit_after_one (rig, 3, 1, TMQ_AFTER_FAIL);
    finish (rig, 3, true);
    uint64_t request = submit_after (rig, 4, (unsigned[]){1, 2}, 2, NULL);
    assert_int_equal (item_code (rig, request), TMQ_OK);
    expect_dependency_failed (rig, 4, 2, "failed");
    submit_after_one (rig, 5, 2, TMQ_AFTER_CONTINUE);
    finish (rig, 5, true);
    rig_free (rig);
}

static void what_is_left_of_a_removed_task_counts_as_failed (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = 1000;
    rig_submit_spec (rig, OWNER, 1, &spec, "");
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, true);
    rig_settle (rig);
    rig_advance (rig, 3000);
    submit_after_one (rig, 2, 1, TMQ_AFTER_FAIL);
    rig_run (rig);
    expect_dependency_failed (rig, 2, 1, "failed");
    rig_free (rig);
}

static void an_unknown_one_is_refused (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    uint64_t request = submit_after (rig, 2, (unsigned[]){1, 99}, 2, NULL);
    assert_int_equal (item_code (rig, request), TMQ_NOT_FOUND);
    const Taskmq__SubmittedItem *item = rig_reply (rig, OWNER, request)->reply->submitted->items[0];
    char id[ID_TEXT_SIZE];
    tmq_id_t unknown = rig_id (99);
    id_format (&unknown, id);
    assert_non_null (strstr (item->text, id));
    uint64_t get = rig_get (rig, OWNER, 2);
    rig_run (rig);
    assert_int_equal (rig_code (rig, OWNER, get), TMQ_NOT_FOUND);
    rig_free (rig);
}

static void one_that_the_submitter_may_not_see_is_unknown (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig->peers[OWNER].identity = "me";
    rig->peers[2].identity = "other";
    rig_access (rig, "me uid:1 client(default/q)\nother uid:2 client(default/q)\n");
    rig_link (rig, OWNER, "default");
    rig_link (rig, 2, "default");
    rig_submit (rig, 2, 1, "q", "");
    rig_run (rig);
    uint64_t request = submit_after_one (rig, 2, 1, TMQ_AFTER_FAIL);
    assert_int_equal (item_code (rig, request), TMQ_NOT_FOUND);
    rig_free (rig);
}

static void there_is_a_limit (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.dependencies_max = 3;
    rig_t *rig = new_rig (&config);
    rig_submit (rig, OWNER, 1, "q", "");
    rig_submit (rig, OWNER, 2, "q", "");
    submit_after (rig, 3, (unsigned[]){1, 2}, 2, NULL);
    uint64_t request = submit_after (rig, 4, (unsigned[]){1, 2}, 2, NULL);
    assert_int_equal (item_code (rig, request), TMQ_LIMIT);
    rig_cancel (rig, OWNER, 3); /* there is room again */
    request = submit_after (rig, 5, (unsigned[]){1, 2}, 2, NULL);
    assert_int_equal (item_code (rig, request), TMQ_OK);
    rig_free (rig);
}

/* A blocked task lives like a queued one. */

static void a_blocked_task_can_be_cancelled (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    submit_after_one (rig, 2, 1, TMQ_AFTER_FAIL);
    rig_cancel (rig, OWNER, 2);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, OWNER, 2), TMQ_STATUS_CANCELLED);
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, true);
    assert_int_equal (rig_status (rig, OWNER, 2), TMQ_STATUS_CANCELLED);
    rig_free (rig);
}

static void a_blocked_task_expires (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    Taskmq__Dependency entry = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *list = &entry;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    tmq_id_t first = rig_id (1);
    rig_submit (rig, OWNER, 1, "q", "");
    entry.task_id = (ProtobufCBinaryData){sizeof (first), first.bytes};
    extra.n_after = 1;
    extra.after = &list;
    spec.extra = &extra;
    spec.ttl_ms = 5000;
    rig_submit_spec (rig, OWNER, 2, &spec, "");
    submit_after_one (rig, 3, 2, TMQ_AFTER_FAIL);
    rig_advance (rig, 4000);
    expect_phase (rig, 2, TMQ_PHASE_BLOCKED);
    rig_advance (rig, 4000);
    const Taskmq__Task *task = rig_task (rig, OWNER, 2);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_EXPIRED);
    expect_dependency_failed (rig, 3, 2, "failed");
    rig_free (rig);
}

/* Restarts. */

static void a_blocked_task_waits_on_after_a_restart (void **state)
{
    (void) state;
    bool *fails = *state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    submit_after_one (rig, 2, 1, TMQ_AFTER_FAIL);
    rig_commit (rig);
    if (fails != NULL)
        rig_fail_commit (rig);
    else
        rig_restart (rig);
    rig_link (rig, OWNER, "default");
    rig_link (rig, WORKER, "default");
    expect_phase (rig, 2, TMQ_PHASE_BLOCKED);
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, true);
    finish (rig, 2, true);
    rig_free (rig);
}

static void a_blocked_task_waits_on_after_a_failed_commit (void **state)
{
    bool fails = true;
    void *mine = &fails;
    (void) state;
    a_blocked_task_waits_on_after_a_restart (&mine);
}

static size_t count_failed (rig_t *rig, unsigned first, unsigned count)
{
    size_t failed = 0;
    for (unsigned n = first; n < first + count; n++)
        failed += rig_status (rig, OWNER, n) == TMQ_STATUS_FAILED;
    return failed;
}

static rig_t *fan_rig (void)
{
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.dependents = SLICE;
    rig_t *rig = new_rig (&config);
    rig_submit (rig, OWNER, 1, "q", "");
    for (unsigned n = 2; n < 2 + FAN; n++)
        submit_after_one (rig, n, 1, TMQ_AFTER_FAIL);
    rig_run (rig);
    return rig;
}

static bool round_leaves_more (rig_t *rig)
{
    engine_round (rig->engine);
    int64_t next = engine_tick (rig->engine, rig->now, rig->now.mono_ms, 0);
    rig_commit (rig);
    rig_outputs (rig);
    return next <= rig->now.mono_ms;
}

static void many_are_told_in_rounds (void **state)
{
    (void) state;
    rig_t *rig = fan_rig ();
    rig_cancel (rig, OWNER, 1);
    rig_commit (rig); /* the first slice is in the batch of the end */
    for (size_t told = SLICE; told < FAN; told += SLICE)
        assert_true (round_leaves_more (rig) == (told + SLICE < FAN));
    assert_int_equal (count_failed (rig, 2, FAN), FAN);
    rig_free (rig);
}

static void who_was_not_told_before_a_crash_is_told_after_it (void **state)
{
    (void) state;
    rig_t *rig = fan_rig ();
    rig_cancel (rig, OWNER, 1);
    rig_commit (rig);
    rig_write (rig);
    rig_restart (rig);
    rig_link (rig, OWNER, "default");
    rig_settle (rig);
    for (unsigned n = 2; n < 2 + FAN; n++)
        expect_dependency_failed (rig, n, 1, "cancelled");
    rig_free (rig);
}

/* It was down for so long that the first task is due to be removed: its end still counts. */
static void an_end_counts_as_long_as_somebody_waits (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.round.dependents = SLICE;
    rig_t *rig = new_rig (&config);
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.ttl_ms = 10000;
    rig_submit_spec (rig, OWNER, 1, &spec, "");
    for (unsigned n = 2; n < 2 + FAN; n++)
        submit_after_one (rig, n, 1, TMQ_AFTER_FAIL);
    rig_register (rig, WORKER, 1, "q", 1);
    rig_run (rig);
    rig_complete (rig, WORKER, next_assignment (rig), "done");
    rig_commit (rig);
    rig_write (rig);
    rig->now.wall_ms += 20000;
    rig_restart (rig);
    rig_link (rig, OWNER, "default");
    rig_settle (rig);
    assert_int_equal (count_failed (rig, 2, FAN), 0);
    for (unsigned n = 2; n < 2 + FAN; n++)
        assert_int_not_equal (rig_task (rig, OWNER, n)->phase, TMQ_PHASE_BLOCKED);
    rig_free (rig);
}

/* Retries. */

static void retry (rig_t *rig, unsigned n)
{
    tmq_id_t id = rig_id (n);
    uint8_t request_id[16] = {7, (uint8_t) n, (uint8_t) rig->committed};
    ProtobufCBinaryData ids[] = {{sizeof (id), id.bytes}};
    Taskmq__Retry body = TASKMQ__RETRY__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    body.n_task_ids = 1;
    body.task_ids = ids;
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.op_case = TASKMQ__REQUEST__OP_RETRY;
    request.retry = &body;
    rig_send (rig, OWNER, &request, NULL, 0);
    rig_settle (rig);
}

static void a_retried_task_is_judged_anew (void **state)
{
    (void) state;
    rig_t *rig = plain_rig ();
    rig_submit (rig, OWNER, 1, "q", "");
    submit_after_one (rig, 2, 1, TMQ_AFTER_FAIL);
    rig_register (rig, WORKER, 1, "q", 1);
    finish (rig, 1, false);
    rig_settle (rig);
    retry (rig, 2); /* what it depends on has failed all the same */
    expect_dependency_failed (rig, 2, 1, "failed");
    retry (rig, 1);
    retry (rig, 2);
    expect_phase (rig, 2, TMQ_PHASE_BLOCKED);
    finish (rig, 1, true);
    finish (rig, 2, true);
    assert_int_equal (rig_status (rig, OWNER, 2), TMQ_STATUS_COMPLETED);
    rig_free (rig);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_task_waits_until_all_have_ended),
        cmocka_unit_test (a_failure_goes_down_the_chain),
        cmocka_unit_test (one_failure_is_enough),
        cmocka_unit_test (continue_tells_of_the_end_and_ignore_does_not),
        cmocka_unit_test (an_earlier_end_is_known_at_once),
        cmocka_unit_test (what_is_left_of_a_removed_task_counts_as_failed),
        cmocka_unit_test (an_unknown_one_is_refused),
        cmocka_unit_test (one_that_the_submitter_may_not_see_is_unknown),
        cmocka_unit_test (there_is_a_limit),
        cmocka_unit_test (a_blocked_task_can_be_cancelled),
        cmocka_unit_test (a_blocked_task_expires),
        cmocka_unit_test (a_blocked_task_waits_on_after_a_restart),
        cmocka_unit_test (a_blocked_task_waits_on_after_a_failed_commit),
        cmocka_unit_test (many_are_told_in_rounds),
        cmocka_unit_test (who_was_not_told_before_a_crash_is_told_after_it),
        cmocka_unit_test (an_end_counts_as_long_as_somebody_waits),
        cmocka_unit_test (a_retried_task_is_judged_anew),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
