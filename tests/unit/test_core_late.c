/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Successes that came too late: kept, shown with the attempts, adopted (S35). */
#include <stdio.h>
#include <string.h>

#include "core_rig.h"

enum { SUBJECT = 1, WORKER = 100, LEASE_MS = 30000, DAY_MS = 86400000 };

static ProtobufCBinaryData id_of (const tmq_id_t *id)
{
    return (ProtobufCBinaryData){sizeof (*id), (uint8_t *) (uintptr_t) id->bytes};
}

static uint64_t adopt (rig_t *rig, size_t peer, unsigned n, uint32_t attempt, unsigned by)
{
    Taskmq__Adopt adopt = TASKMQ__ADOPT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    uint8_t request_id[16] = {(uint8_t) by};
    request.request_id = (ProtobufCBinaryData){sizeof (request_id), request_id};
    request.op_case = TASKMQ__REQUEST__OP_ADOPT;
    request.adopt = &adopt;
    adopt.task_id = id_of (&id);
    adopt.attempt = attempt;
    return rig_send (rig, peer, &request, NULL, 0);
}

/* The page of a task's attempts, from the tables. */
static const Taskmq__AttemptPage *attempts_from (rig_t *rig, unsigned n, uint32_t after,
                                                 uint32_t limit)
{
    Taskmq__Attempts attempts = TASKMQ__ATTEMPTS__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    tmq_id_t id = rig_id (n);
    request.op_case = TASKMQ__REQUEST__OP_ATTEMPTS;
    request.attempts = &attempts;
    attempts.task_id = id_of (&id);
    attempts.after = after;
    attempts.limit = limit;
    uint64_t number = rig_send (rig, 0, &request, NULL, 0);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, number);
    assert_non_null (item);
    assert_int_equal (item->reply->code, TMQ_OK);
    return item->reply->attempt_page;
}

static const Taskmq__AttemptPage *attempts (rig_t *rig, unsigned n)
{
    return attempts_from (rig, n, 0, 0);
}

static void assert_refused (rig_t *rig, uint64_t request, tmq_code_t code, const char *text)
{
    rig_run (rig);
    const Taskmq__Reply *reply = rig_reply (rig, 0, request)->reply;
    assert_int_equal (reply->code, code);
    if (strstr (reply->text, text) == NULL)
        fail_msg ("%s", reply->text);
}

/* The worker takes one task, and no other until the next claim. */
static const Taskmq__Assignment *claim (rig_t *rig)
{
    size_t before = rig_assignments (rig, 1);
    if (before == 0)
        rig_register (rig, 1, WORKER, "q", 1);
    else
        rig_worker_credit (rig, 1, WORKER, before, 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), before + 1);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, before)->assignment;
    assert_int_equal (assignment->number, before + 1);
    rig_started (rig, 1, assignment);
    rig_worker_credit (rig, 1, WORKER, assignment->number, 0);
    rig_run (rig);
    return assignment;
}

/* A started attempt whose lease has ended. */
static const Taskmq__Assignment *lose (rig_t *rig, unsigned n)
{
    rig_submit (rig, 0, n, "q", "payload");
    rig_run (rig);
    const Taskmq__Assignment *assignment = claim (rig);
    rig_advance (rig, LEASE_MS + 1000);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, n), TMQ_STATUS_QUEUED);
    return assignment;
}

static void assert_late (rig_t *rig, uint64_t request, bool kept)
{
    rig_run (rig);
    const Taskmq__Reply *reply = rig_reply (rig, 1, request)->reply;
    assert_int_equal (reply->code, TMQ_STALE_LEASE);
    bool says_kept = strstr (reply->text, "kept") != NULL;
    if (says_kept != kept)
        fail_msg ("%s", reply->text);
}

static void assert_result (rig_t *rig, unsigned n, const char *result)
{
    uint64_t request = rig_result (rig, 0, n);
    rig_run (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->body_bytes, strlen (result));
    assert_memory_equal (item->body, result, strlen (result));
}

static size_t rows_of (const rig_t *rig, row_kind_t kind)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        count += rig->kind_rows.rows[i].kind == kind;
    return count;
}

/* How many are kept, as the tables say it. */
static size_t kept (rig_t *rig)
{
    rig_settle (rig);
    assert_int_equal (rows_of (rig, ROW_KIND_LATE), rows_of (rig, ROW_KIND_QUARANTINE));
    return rows_of (rig, ROW_KIND_LATE);
}

/* To be kept. */

static void a_late_success_is_kept (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    const Taskmq__Task *before = rig_task (rig, 0, SUBJECT);
    uint64_t seq = before->seq;
    int64_t at = rig->now.wall_ms;
    assert_late (rig, rig_complete (rig, 1, first, "late"), true);
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->status, TMQ_STATUS_QUEUED);
    assert_int_equal (task->attempt, 1);
    assert_int_equal (task->outcome, TMQ_OUTCOME_NONE);
    assert_int_equal (task->seq, seq + 1);
    const Taskmq__AttemptPage *page = attempts (rig, SUBJECT);
    assert_int_equal (page->n_attempts, 1);
    assert_int_equal (page->next, 0);
    const Taskmq__AttemptInfo *info = page->attempts[0];
    assert_int_equal (info->attempt, 1);
    assert_int_equal (info->how, TMQ_EVENT_LEASE_LOST);
    assert_int_equal (info->error->code, TMQ_TASK_ERROR_LEASE_LOST);
    assert_true (info->started_at > 0 && info->ended_at > info->started_at);
    assert_true (info->kept);
    assert_int_equal (info->kept_bytes, 4);
    assert_int_equal (info->kept_at, at);
    assert_int_equal (info->kept_until, at + 7 * (int64_t) DAY_MS);
    /* Said again, it is kept already, and no event follows. */
    assert_late (rig, rig_complete (rig, 1, first, "late"), true);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->seq, seq + 1);
    assert_int_equal (kept (rig), 1);
}

static void nothing_else_is_kept (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    uint8_t secret[16] = {0};
    Taskmq__Assignment liar = *first;
    liar.secret = (ProtobufCBinaryData){sizeof (secret), secret};
    assert_late (rig, rig_complete (rig, 1, &liar, "a lie"), false);
    assert_late (rig, rig_fail (rig, 1, first, 5, false), false);
    assert_late (rig, rig_release (rig, 1, first, true), false);
    assert_int_equal (kept (rig), 0);
    /* The next attempt completes the task: then nothing is of use any more. */
    const Taskmq__Assignment *second = claim (rig);
    rig_complete (rig, 1, second, "done");
    rig_settle (rig);
    assert_late (rig, rig_complete (rig, 1, first, "late"), false);
    assert_int_equal (kept (rig), 0);
    assert_result (rig, SUBJECT, "done");
}

static void what_was_cancelled_does_not_count (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    rig_cancel_ack (rig, 1, first);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, SUBJECT, 1);
    rig_run (rig);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
    assert_late (rig, rig_complete (rig, 1, first, "late"), false);
    rig_settle (rig);
    assert_late (rig, rig_complete (rig, 1, first, "late"), false);
    assert_int_equal (kept (rig), 0);
}

static void after_max_runtime_it_is_kept (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    spec.queue = "q";
    spec.extra = &extra;
    extra.max_runtime_ms = 5000;
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    rig_advance (rig, 6000);
    rig_settle (rig);
    assert_late (rig, rig_complete (rig, 1, first, "late"), true);
    const Taskmq__AttemptInfo *info = attempts (rig, SUBJECT)->attempts[0];
    assert_int_equal (info->how, TMQ_EVENT_ATTEMPT_FAILED);
    assert_int_equal (info->error->code, TMQ_TASK_ERROR_MAX_RUNTIME);
    assert_true (info->kept);
}

/* A task that failed for good is in the tables alone. */
static void of_a_failed_task_it_is_kept (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = "q";
    spec.max_attempts = 1;
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    rig_advance (rig, LEASE_MS + 1000);
    rig_settle (rig);
    const Taskmq__Task *failed = rig_task (rig, 0, SUBJECT);
    assert_int_equal (failed->status, TMQ_STATUS_FAILED);
    assert_true (failed->dead);
    uint64_t expires_at = failed->expires_at;
    assert_late (rig, rig_complete (rig, 1, first, "late"), true);
    rig_settle (rig);
    failed = rig_task (rig, 0, SUBJECT);
    assert_int_equal (failed->status, TMQ_STATUS_FAILED);
    assert_int_equal (failed->expires_at, expires_at);
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_false (task->dead);
    assert_null (task->error);
    assert_result (rig, SUBJECT, "late");
    assert_int_equal (kept (rig), 0);
}

/* Limits. */

/* Attempt after attempt is lost, and each brings its success too late. */
static void a_task_has_few_of_them (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = "q";
    spec.max_attempts = 10;
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_run (rig);
    const Taskmq__Assignment *first = NULL;
    for (unsigned n = 1; n <= TMQ_KEPT_TASK_MAX + 1; n++) {
        const Taskmq__Assignment *assignment = claim (rig);
        first = n == 1 ? assignment : first;
        rig_advance (rig, LEASE_MS + 1000);
        assert_late (rig, rig_complete (rig, 1, assignment, "late"), true);
        rig_advance (rig, 60000); /* the backoff */
    }
    claim (rig);
    assert_int_equal (kept (rig), TMQ_KEPT_TASK_MAX);
    const Taskmq__AttemptPage *page = attempts (rig, SUBJECT);
    assert_int_equal (page->n_attempts, TMQ_KEPT_TASK_MAX + 2);
    assert_false (page->attempts[0]->kept);                         /* the oldest went */
    assert_late (rig, rig_complete (rig, 1, first, "late"), false); /* and does not come back */
    assert_int_equal (kept (rig), TMQ_KEPT_TASK_MAX);
    page = attempts (rig, SUBJECT);
    for (size_t i = 1; i <= TMQ_KEPT_TASK_MAX; i++)
        assert_true (page->attempts[i]->kept);
    const Taskmq__AttemptInfo *running = page->attempts[TMQ_KEPT_TASK_MAX + 1];
    assert_int_equal (running->how, TMQ_EVENT_NONE);
    assert_int_equal (running->ended_at, 0);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 1, 1), TMQ_NOT_FOUND,
                    "no late success of attempt 1 is kept");
}

static void a_namespace_has_few_bytes_of_them (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_kept_bytes_max = 10;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= 3; n++) {
        assert_late (rig, rig_complete (rig, 1, lose (rig, n), "late"), true);
        rig_cancel (rig, 0, n); /* the worker shall get the next one; what is kept stays */
        rig_run (rig);
    }
    assert_int_equal (kept (rig), 2);
    assert_false (attempts (rig, 1)->attempts[0]->kept);
    assert_true (attempts (rig, 2)->attempts[0]->kept);
    assert_true (attempts (rig, 3)->attempts[0]->kept);
    rig_free (rig);
}

static void a_namespace_has_few_of_them (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.space_kept_max = 1;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    for (unsigned n = 1; n <= 2; n++) {
        assert_late (rig, rig_complete (rig, 1, lose (rig, n), ""), true);
        rig_cancel (rig, 0, n);
        rig_run (rig);
    }
    assert_int_equal (kept (rig), 1);
    assert_true (attempts (rig, 2)->attempts[0]->kept);
    rig_free (rig);
}

static void after_a_week_it_is_gone (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    spec.queue = "q";
    spec.ttl_never = true;
    rig_submit_spec (rig, 0, SUBJECT, &spec, "p");
    rig_run (rig);
    const Taskmq__Assignment *first = claim (rig);
    rig_advance (rig, LEASE_MS + 1000);
    assert_late (rig, rig_complete (rig, 1, first, "late"), true);
    rig_settle (rig);
    for (unsigned hour = 0; hour < 7 * 24; hour++) { /* as a clock goes, not a leap */
        rig_advance (rig, 3600000);
        rig_link (rig, 0, "default");
    }
    assert_false (attempts (rig, SUBJECT)->attempts[0]->kept);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 1, 1), TMQ_NOT_FOUND, "is kept");
}

/* Adoption. */

static void a_waiting_task_is_completed_by_it (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    rig_complete (rig, 1, first, "late");
    rig_settle (rig);
    uint64_t wait = rig_wait (rig, 0, SUBJECT, 1, 0);
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 1);
    rig_outputs (rig);
    assert_null (rig_reply (rig, 0, request)); /* not before it is durable */
    rig_run (rig);
    const Taskmq__Task *task = rig_reply (rig, 0, request)->reply->task;
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_int_equal (task->attempt, 2);
    assert_int_equal (task->extra->adopted_from, 1);
    assert_int_equal (task->outcome, TMQ_OUTCOME_RESULT);
    assert_string_equal (task->result_type, "text/plain");
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status,
                      TMQ_STATUS_COMPLETED);
    assert_result (rig, SUBJECT, "late");
    rig_settle (rig);
    assert_result (rig, SUBJECT, "late");
    assert_int_equal (kept (rig), 0);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 1);
    const Taskmq__AttemptPage *page = attempts (rig, SUBJECT);
    assert_int_equal (page->n_attempts, 2);
    assert_int_equal (page->attempts[1]->how, TMQ_EVENT_COMPLETED);
    assert_false (page->attempts[0]->kept);
}

static void a_repeat_of_the_adoption_succeeds (void **state)
{
    rig_t *rig = *state;
    rig_complete (rig, 1, lose (rig, SUBJECT), "late");
    uint64_t first = adopt (rig, 0, SUBJECT, 1, 1);
    uint64_t again = adopt (rig, 0, SUBJECT, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, first), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, again), TMQ_OK);
    again = adopt (rig, 0, SUBJECT, 1, 1); /* it is in the tables alone */
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, again), TMQ_OK);
    assert_int_equal (rig_task (rig, 0, SUBJECT)->attempt, 2);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 1, 2), TMQ_WRONG_STATUS,
                    "no attempt can be adopted: the task is completed");
    rig_restart (rig);
    rig_link (rig, 0, "default");
    again = adopt (rig, 0, SUBJECT, 1, 1);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, again), TMQ_OK);
}

static void who_works_meanwhile_has_lost_it (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    rig_complete (rig, 1, first, "late");
    const Taskmq__Assignment *second = claim (rig);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 2, 1), TMQ_WRONG_STATUS,
                    "attempt 2 is still running");
    size_t items = rig->peers[1].count;
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 2);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    const Taskmq__CancelNotice *notice = NULL;
    for (size_t i = items; i < rig->peers[1].count; i++)
        if (rig->peers[1].items[i].cancel != NULL)
            notice = rig->peers[1].items[i].cancel;
    assert_non_null (notice);
    assert_int_equal (notice->attempt, 2);
    assert_int_equal (notice->code, TMQ_TASK_ERROR_SUPERSEDED);
    assert_late (rig, rig_complete (rig, 1, second, "the other"), false);
    uint64_t renew = rig_renew (rig, 1, WORKER, second);
    rig_run (rig);
    assert_int_equal (rig_reply (rig, 1, renew)->reply->renewed->leases[0]->code, TMQ_STALE_LEASE);
    rig_settle (rig);
    assert_result (rig, SUBJECT, "late");
    const Taskmq__AttemptPage *page = attempts (rig, SUBJECT);
    assert_int_equal (page->n_attempts, 3);
    assert_int_equal (page->attempts[1]->how, TMQ_EVENT_CANCELLED);
    assert_int_equal (page->attempts[2]->how, TMQ_EVENT_COMPLETED);
    /* Its place is free again. */
    rig_submit (rig, 0, 2, "q", "p");
    claim (rig);
}

static void a_question_is_no_obstacle (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    rig_complete (rig, 1, first, "late");
    const Taskmq__Assignment *second = claim (rig);
    rig_ask (rig, 1, second, "colour", "{}");
    rig_run (rig);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_INPUT_REQUIRED);
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    assert_result (rig, SUBJECT, "late");
    assert_int_equal (rows_of (rig, ROW_KIND_QUESTION), 0);
}

static void what_cannot_be_adopted_is_refused (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 1, 1), TMQ_NOT_FOUND,
                    "no late success of attempt 1 is kept");
    assert_refused (rig, adopt (rig, 0, SUBJECT, 7, 2), TMQ_NOT_FOUND,
                    "the task has had 1 attempts, not 7");
    assert_refused (rig, adopt (rig, 0, 77, 1, 3), TMQ_NOT_FOUND, "no such task");
    rig_complete (rig, 1, first, "late");
    rig_cancel (rig, 0, SUBJECT);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 1, 5), TMQ_WRONG_STATUS,
                    "no attempt can be adopted: the task is cancelled");
    /* What is kept stays, for when it is queued again. */
    rig_change (rig, 0, TASKMQ__REQUEST__OP_RETRY, SUBJECT, 1);
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 6);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
}

static void its_dependents_go_on (void **state)
{
    rig_t *rig = *state;
    Taskmq__TaskSpec spec = TASKMQ__TASK_SPEC__INIT;
    Taskmq__Extra extra = TASKMQ__EXTRA__INIT;
    Taskmq__Dependency after = TASKMQ__DEPENDENCY__INIT;
    Taskmq__Dependency *list[] = {&after};
    tmq_id_t parent = rig_id (SUBJECT);
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    spec.queue = "q";
    spec.extra = &extra;
    extra.after = list;
    extra.n_after = 1;
    after.task_id = id_of (&parent);
    rig_submit_spec (rig, 0, 2, &spec, "p");
    rig_run (rig);
    assert_int_equal (rig_task (rig, 0, 2)->phase, TMQ_PHASE_BLOCKED);
    rig_complete (rig, 1, first, "late");
    adopt (rig, 0, SUBJECT, 1, 1);
    rig_run (rig);
    assert_int_equal (rig_task (rig, 0, 2)->phase, TMQ_PHASE_READY);
}

/* Durability. */

static void a_failed_commit_takes_it_back (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *first = lose (rig, SUBJECT);
    rig_complete (rig, 1, first, "late");
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    assert_int_equal (kept (rig), 0);
    assert_refused (rig, adopt (rig, 0, SUBJECT, 1, 1), TMQ_NOT_FOUND, "is kept");
    assert_late (rig, rig_complete (rig, 1, first, "late"), true);
    rig_settle (rig);
    adopt (rig, 0, SUBJECT, 1, 2);
    rig_fail_commit (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
    assert_int_equal (kept (rig), 1);
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 2);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
}

static void a_restart_keeps_it (void **state)
{
    rig_t *rig = *state;
    rig_complete (rig, 1, lose (rig, SUBJECT), "late");
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    uint64_t request = adopt (rig, 0, SUBJECT, 1, 1);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, request), TMQ_OK);
    assert_result (rig, SUBJECT, "late");
}

static void it_goes_with_its_task (void **state)
{
    rig_t *rig = *state;
    rig_complete (rig, 1, lose (rig, SUBJECT), "late");
    rig_cancel (rig, 0, SUBJECT);
    assert_int_equal (kept (rig), 1);
    rig_change (rig, 0, TASKMQ__REQUEST__OP_PURGE, SUBJECT, 1);
    assert_int_equal (kept (rig), 0);
}

/* Attempts. */

static void attempts_come_in_pages (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    for (unsigned n = 0; n < 5; n++) {
        rig_release (rig, 1, claim (rig), true);
        rig_advance (rig, 300000);
    }
    claim (rig);
    uint32_t after = 0;
    for (uint32_t seen = 0; seen < 6;) {
        const Taskmq__AttemptPage *page = attempts_from (rig, SUBJECT, after, 2);
        assert_true (page->n_attempts >= 1);
        for (size_t i = 0; i < page->n_attempts; i++)
            assert_int_equal (page->attempts[i]->attempt, ++seen);
        after = page->next;
        assert_true (seen == 6 ? after == 0 : after == seen);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_late_success_is_kept),
        TEST (nothing_else_is_kept),
        TEST (what_was_cancelled_does_not_count),
        TEST (after_max_runtime_it_is_kept),
        TEST (of_a_failed_task_it_is_kept),
        TEST (a_task_has_few_of_them),
        cmocka_unit_test (a_namespace_has_few_bytes_of_them),
        cmocka_unit_test (a_namespace_has_few_of_them),
        TEST (after_a_week_it_is_gone),
        TEST (a_waiting_task_is_completed_by_it),
        TEST (a_repeat_of_the_adoption_succeeds),
        TEST (who_works_meanwhile_has_lost_it),
        TEST (a_question_is_no_obstacle),
        TEST (what_cannot_be_adopted_is_refused),
        TEST (its_dependents_go_on),
        TEST (a_failed_commit_takes_it_back),
        TEST (a_restart_keeps_it),
        TEST (it_goes_with_its_task),
        TEST (attempts_come_in_pages),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
