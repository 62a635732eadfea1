/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* The life of a task through the engine: submitted, claimed, finished, in all ways, and who is told
 * when. */
#include <string.h>

#include "core_rig.h"

static int setup (void **state)
{
    *state = rig_new ();
    rig_link (*state, 0, "default");
    rig_link (*state, 1, "default");
    rig_use_request_id (1);
    return 0;
}

static int teardown (void **state)
{
    rig_free (*state);
    return 0;
}

static void a_task_is_submitted_worked_on_and_fetched (void **state)
{
    rig_t *rig = *state;
    uint64_t submit = rig_submit (rig, 0, 1, "q", "hello");
    rig_outputs (rig);
    assert_null (rig_reply (rig, 0, submit)); /* not before it is durable */
    rig_run (rig);
    const rig_item_t *item = rig_reply (rig, 0, submit);
    assert_non_null (item);
    assert_int_equal (item->reply->submitted->n_items, 1);
    assert_int_equal (item->reply->submitted->items[0]->code, TMQ_OK);
    assert_int_equal (item->reply->submitted->items[0]->status, TMQ_STATUS_QUEUED);
    rig_register (rig, 1, 100, "q", 1);
    rig_run (rig);
    const rig_item_t *assigned = rig_assignment (rig, 1, 0);
    assert_non_null (assigned);
    assert_int_equal (assigned->body_bytes, 5);
    assert_memory_equal (assigned->body, "hello", 5);
    assert_int_equal (assigned->assignment->attempt, 1);
    assert_int_equal (assigned->assignment->number, 1);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    rig_started (rig, 1, assigned->assignment);
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    rig_run (rig);
    assert_null (rig_reply (rig, 0, wait));
    uint64_t complete = rig_complete (rig, 1, assigned->assignment, "world");
    rig_outputs (rig);
    assert_null (rig_reply (rig, 1, complete));
    assert_null (rig_reply (rig, 0, wait));
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, complete), TMQ_OK);
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status,
                      TMQ_STATUS_COMPLETED);
    rig_settle (rig); /* out of memory now, into the tables */
    uint64_t result = rig_result (rig, 0, 1);
    rig_run (rig);
    item = rig_reply (rig, 0, result);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->body_bytes, 5);
    assert_memory_equal (item->body, "world", 5);
    assert_string_equal (item->reply->task->result_type, "text/plain");
    uint64_t record = rig_get_record (rig, 0, 1); /* the same without bytes */
    rig_run (rig);
    item = rig_reply (rig, 0, record);
    assert_int_equal (item->reply->code, TMQ_OK);
    assert_int_equal (item->body_bytes, 0);
    assert_int_equal (item->reply->task->body, 0);
    assert_int_equal (item->reply->task->result_bytes, 5);
    assert_int_equal (item->reply->task->status, TMQ_STATUS_COMPLETED);
}

/* Each report in each status. */

enum { SUBJECT = 1, WORKER = 100 };

/* Brings task SUBJECT into a state; returns the assignment that was made, or NULL. */
static const Taskmq__Assignment *bring_to (rig_t *rig, const char *where)
{
    rig_submit (rig, 0, SUBJECT, "q", "p");
    rig_run (rig);
    if (strcmp (where, "queued") == 0)
        return NULL;
    rig_register (rig, 1, WORKER, "q", 1);
    rig_run (rig);
    const Taskmq__Assignment *assignment = rig_assignment (rig, 1, 0)->assignment;
    rig_use_request_id (50);
    if (strcmp (where, "completed") == 0)
        rig_complete (rig, 1, assignment, "r");
    else if (strcmp (where, "failed") == 0)
        rig_fail (rig, 1, assignment, 5, true);
    else if (strncmp (where, "cancelled", 9) == 0)
        rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    if (strcmp (where, "cancelled, acknowledged") == 0)
        rig_cancel_ack (rig, 1, assignment);
    rig_settle (rig);
    return assignment;
}

typedef struct expectation {
    const char *where;
    unsigned complete, fail, release, started, cancel_ack; /* from the holder */
    unsigned cancel, result;                               /* from a client */
} expectation_t;

static const expectation_t EXPECTATIONS[] = {
    {"working", TMQ_OK, TMQ_OK, TMQ_OK, TMQ_OK, TMQ_WRONG_STATUS, TMQ_OK, TMQ_WRONG_STATUS},
    {"completed", TMQ_OK, TMQ_STALE_LEASE, TMQ_STALE_LEASE, TMQ_STALE_LEASE, TMQ_STALE_LEASE,
     TMQ_WRONG_STATUS, TMQ_OK},
    {"failed", TMQ_STALE_LEASE, TMQ_STALE_LEASE, TMQ_STALE_LEASE, TMQ_STALE_LEASE, TMQ_STALE_LEASE,
     TMQ_WRONG_STATUS, TMQ_OK},
    {"cancelled", TMQ_WRONG_STATUS, TMQ_WRONG_STATUS, TMQ_WRONG_STATUS, TMQ_WRONG_STATUS, TMQ_OK,
     TMQ_OK, TMQ_OK},
    {"cancelled, acknowledged", TMQ_WRONG_STATUS, TMQ_WRONG_STATUS, TMQ_WRONG_STATUS,
     TMQ_STALE_LEASE, TMQ_OK, TMQ_OK, TMQ_OK},
};

static unsigned report (rig_t *rig, unsigned which, const Taskmq__Assignment *assignment)
{
    rig_use_request_id (60); /* not the one that ended the task */
    switch (which) {
    case 0: return (unsigned) rig_complete (rig, 1, assignment, "other");
    case 1: return (unsigned) rig_fail (rig, 1, assignment, 5, true);
    case 2: return (unsigned) rig_release (rig, 1, assignment, true);
    case 3: return (unsigned) rig_started (rig, 1, assignment);
    default: return (unsigned) rig_cancel_ack (rig, 1, assignment);
    }
}

static void each_report_is_answered_by_the_status (void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof (EXPECTATIONS) / sizeof (EXPECTATIONS[0]); i++) {
        const expectation_t *row = &EXPECTATIONS[i];
        const unsigned codes[] = {row->complete, row->fail, row->release, row->started,
                                  row->cancel_ack};
        for (unsigned which = 0; which < 5; which++) {
            void *fresh = NULL;
            setup (&fresh);
            rig_t *rig = fresh;
            const Taskmq__Assignment *assignment = bring_to (rig, row->where);
            unsigned request = report (rig, which, assignment);
            rig_settle (rig);
            if (rig_code (rig, 1, request) != codes[which])
                fail_msg ("%s: report %u is answered %u", row->where, which,
                          rig_code (rig, 1, request));
            teardown (&fresh);
        }
    }
}

static void each_question_is_answered_by_the_status (void **state)
{
    (void) state;
    for (size_t i = 0; i < sizeof (EXPECTATIONS) / sizeof (EXPECTATIONS[0]); i++) {
        void *fresh = NULL;
        setup (&fresh);
        rig_t *rig = fresh;
        bring_to (rig, EXPECTATIONS[i].where);
        uint64_t result = rig_result (rig, 0, SUBJECT);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, 0, result), EXPECTATIONS[i].result);
        uint64_t cancel = rig_cancel (rig, 0, SUBJECT);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, 0, cancel), EXPECTATIONS[i].cancel);
        teardown (&fresh);
    }
}

static void a_queued_task_has_no_lease_to_report_with (void **state)
{
    rig_t *rig = *state;
    bring_to (rig, "queued");
    Taskmq__Assignment forged = TASKMQ__ASSIGNMENT__INIT;
    uint8_t secret[16] = {0};
    tmq_id_t id = rig_id (SUBJECT);
    forged.task_id = (ProtobufCBinaryData){16, id.bytes};
    forged.secret = (ProtobufCBinaryData){16, secret};
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        forged.attempt = attempt;
        for (unsigned which = 0; which < 5; which++) {
            unsigned request = report (rig, which, &forged);
            rig_settle (rig);
            assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
        }
    }
    uint64_t result = rig_result (rig, 0, SUBJECT);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, result), TMQ_WRONG_STATUS);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_QUEUED);
}

static void a_wrong_secret_is_stale (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = bring_to (rig, "working");
    Taskmq__Assignment forged = *assignment;
    uint8_t secret[16] = {1};
    forged.secret.data = secret;
    uint64_t request = rig_complete (rig, 1, &forged, "x");
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_STALE_LEASE);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_WORKING);
}

/* Repeats (A45). */

/* Repeats a report, before and after it is written back; both times the first answer comes. */
static void repeat (rig_t *rig, unsigned which, const Taskmq__Assignment *assignment)
{
    unsigned first = report (rig, which, assignment);
    unsigned again = report (rig, which, assignment);
    rig_run (rig);
    unsigned later = report (rig, which, assignment);
    rig_settle (rig);
    unsigned last = report (rig, which, assignment);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, first), TMQ_OK);
    assert_int_equal (rig_code (rig, 1, again), TMQ_OK);
    assert_int_equal (rig_code (rig, 1, later), TMQ_OK);
    assert_int_equal (rig_code (rig, 1, last), TMQ_OK);
}

static void a_repeated_completion_gets_the_stored_answer (void **state)
{
    rig_t *rig = *state;
    repeat (rig, 0, bring_to (rig, "working"));
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->status, TMQ_STATUS_COMPLETED);
    assert_int_equal (task->version, 3); /* submitted, claimed, completed */
}

static void a_repeated_failure_gets_the_stored_answer (void **state)
{
    rig_t *rig = *state;
    repeat (rig, 1, bring_to (rig, "working"));
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_FAILED);
}

static void a_repeated_release_gets_the_stored_answer (void **state)
{
    rig_t *rig = *state;
    repeat (rig, 2, bring_to (rig, "working"));
    assert_int_equal (rig_task (rig, 0, SUBJECT)->attempt, 2); /* claimed again by then */
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_repeated_push_makes_no_second_event (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = bring_to (rig, "working");
    rig_use_request_id (70);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t push = rig_push (rig, 1, assignment, "half way", 5.5);
        rig_settle (rig);
        assert_int_equal (rig_code (rig, 1, push), TMQ_OK);
    }
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_string_equal (task->status_message, "half way");
    assert_true (task->progress->done == 5.5);
    assert_int_equal (task->seq, 3);
}

/* Outcomes. */

static void a_result_that_is_not_text_has_another_type (void **state)
{
    rig_t *rig = *state;
    rig_complete (rig, 1, bring_to (rig, "working"), "\xff\xfe");
    rig_settle (rig);
    assert_string_equal (rig_task (rig, 0, SUBJECT)->result_type, "application/octet-stream");
}

static void a_failure_with_bytes_is_a_tool_error (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = bring_to (rig, "working");
    rig_fail_with (rig, 1, assignment, 3, true, "it said this");
    rig_settle (rig);
    uint64_t request = rig_result (rig, 0, SUBJECT);
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, 0, request);
    assert_int_equal (item->reply->task->outcome, TMQ_OUTCOME_TOOL_ERROR);
    assert_int_equal (item->reply->task->error->code, 3);
    assert_memory_equal (item->body, "it said this", item->body_bytes);
    assert_false (item->reply->task->dead); /* it was final, its attempts were not used up */
}

static void the_brokers_own_codes_are_refused (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = bring_to (rig, "working");
    uint64_t request = rig_fail (rig, 1, assignment, TMQ_TASK_ERROR_LEASE_LOST, false);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 1, request), TMQ_INVALID);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_WORKING);
}

static void attempts_are_used_up_with_growing_pauses (void **state)
{
    rig_t *rig = *state;
    bring_to (rig, "working");
    int64_t pauses[2] = {0};
    for (unsigned attempt = 1; attempt <= 3; attempt++) {
        const rig_item_t *item = rig_assignment (rig, 1, attempt - 1);
        assert_non_null (item);
        assert_int_equal (item->assignment->attempt, attempt);
        rig_fail (rig, 1, item->assignment, 9, false);
        rig_settle (rig);
        int64_t start = rig->now.mono_ms;
        while (attempt < 3 && rig_assignments (rig, 1) == attempt)
            rig_advance (rig, 10);
        if (attempt < 3)
            pauses[attempt - 1] = rig->now.mono_ms - start;
    }
    assert_in_range (pauses[0], 800, 1230); /* 1 s and 2 s, 20 % of jitter, a slot of the wheel */
    assert_in_range (pauses[1], 1600, 2430);
    const Taskmq__Task *task = rig_task (rig, 0, SUBJECT);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_true (task->dead);
    assert_int_equal (task->error->code, 9);
    assert_string_equal (task->error->message, "it broke");
}

/* Cancel. */

static void a_cancelled_task_is_told_to_its_worker_and_keeps_its_credit (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = bring_to (rig, "working");
    rig_submit (rig, 0, 2, "q", "");
    uint64_t cancel = rig_cancel (rig, 0, SUBJECT);
    uint64_t again = rig_cancel (rig, 0, SUBJECT);
    rig_run (rig);
    assert_int_equal (rig_code (rig, 0, cancel), TMQ_OK);
    assert_int_equal (rig_code (rig, 0, again), TMQ_OK);
    size_t notices = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        notices += rig->peers[1].items[i].cancel != NULL;
    assert_int_equal (notices, 1);
    assert_int_equal (rig_assignments (rig, 1), 1); /* the credit is still taken */
    uint64_t renew = rig_renew (rig, 1, WORKER, assignment);
    rig_run (rig);
    assert_int_equal (rig_reply (rig, 1, renew)->reply->renewed->leases[0]->code, TMQ_CANCELLED);
    rig_cancel_ack (rig, 1, assignment);
    rig_run (rig);
    assert_int_equal (rig_assignments (rig, 1), 2);
}

static void a_cancelled_queued_task_is_never_claimed (void **state)
{
    rig_t *rig = *state;
    bring_to (rig, "queued");
    rig_cancel (rig, 0, SUBJECT);
    rig_settle (rig);
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    assert_int_equal (rig_assignments (rig, 1), 0);
    assert_int_equal (rig_status (rig, 0, SUBJECT), TMQ_STATUS_CANCELLED);
}

/* Images: one per task and batch, each body once. */

static void a_submit_and_its_claim_make_one_image (void **state)
{
    rig_t *rig = *state;
    rig_register (rig, 1, WORKER, "q", 1);
    rig_settle (rig);
    rig_submit (rig, 0, SUBJECT, "q", "payload");
    rig_commit (rig);
    const batch_t *batch = rig->batches[rig->committed];
    assert_int_equal (batch->records_count, 1);
    assert_int_equal (batch->inputs, 1);
    assert_int_equal (batch->blocks_count, 1);
    assert_int_equal (batch->blocks[0].first_seq, 1);
    assert_int_equal (batch->blocks[0].first_pos, 1);
    assert_int_equal (batch->blocks[0].count, 2);
    assert_int_equal (batch->records[0]->status, TMQ_STATUS_WORKING);
    assert_int_equal (batch->records[0]->version, 2);
    assert_int_equal (buf_length (batch->records[0]->payload), 7);
    rig_outputs (rig);
    rig_complete (rig, 1, rig_assignment (rig, 1, 0)->assignment, "result");
    rig_commit (rig);
    batch = rig->batches[rig->committed];
    assert_int_equal (batch->records_count, 1);
    assert_null (batch->records[0]->payload); /* it was in the first image */
    assert_int_equal (buf_length (batch->records[0]->result), 6);
    assert_int_equal (batch->blocks[0].first_pos, 3);
}

static void started_is_stored_within_five_seconds (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = bring_to (rig, "working");
    rig_started (rig, 1, assignment);
    uint64_t committed = rig->committed;
    rig_advance (rig, 4900);
    assert_int_equal (rig->committed, committed);
    rig_advance (rig, 200);
    assert_int_equal (rig->committed, committed + 1);
    assert_true (rig->rows[1]->lease_started);
    /* As an event, so that tasks.jsonl and other followers see it. */
    assert_int_equal (rig->batches[rig->committed]->blocks_count, 1);
    assert_int_equal (rig->batches[rig->committed]->blocks[0].count, 1);
    assert_int_equal (rig->batches[rig->committed]->records[0]->version, 3);
    assert_int_equal (rig->batches[rig->committed]->records[0]->last_seq, 3);
}

static void unknown_ids_are_said_to_be_unknown (void **state)
{
    rig_t *rig = *state;
    uint64_t requests[] = {rig_get (rig, 0, 9), rig_result (rig, 0, 9), rig_payload (rig, 0, 9),
                           rig_cancel (rig, 0, 9)};
    rig_run (rig);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal (rig_code (rig, 0, requests[i]), TMQ_NOT_FOUND);
}

/* Waits. */

static void a_wait_answers_each_id_once (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    rig_submit (rig, 0, 2, "q", "");
    rig_run (rig);
    uint64_t wait = rig_wait (rig, 0, 1, 3, 0); /* the third does not exist */
    rig_run (rig);
    assert_int_equal (rig_replies (rig, 0, wait), 1);
    const Taskmq__Reply *first = rig_reply (rig, 0, wait)->reply;
    assert_int_equal (first->waited->n_items, 1);
    assert_int_equal (first->waited->items[0]->code, TMQ_NOT_FOUND);
    assert_true (first->more);
    rig_cancel (rig, 0, 2);
    rig_run (rig);
    assert_int_equal (rig_replies (rig, 0, wait), 2);
    assert_true (rig_reply (rig, 0, wait)->reply->more);
    rig_cancel (rig, 0, 1);
    rig_run (rig);
    assert_int_equal (rig_replies (rig, 0, wait), 3);
    assert_false (rig_reply (rig, 0, wait)->reply->more);
    assert_int_equal (rig_reply (rig, 0, wait)->reply->waited->items[0]->status,
                      TMQ_STATUS_CANCELLED);
}

static void a_wait_ends_with_its_deadline (void **state)
{
    rig_t *rig = *state;
    rig_submit (rig, 0, 1, "q", "");
    uint64_t wait = rig_wait (rig, 0, 1, 1, 500);
    rig_advance (rig, 600);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_replies (rig, 0, wait), 0);
}

static void too_many_waits_are_refused (void **state)
{
    rig_t *rig = *state;
    for (unsigned n = 1; n <= 1000; n++)
        rig_submit (rig, 0, n, "q", "");
    rig_settle (rig);
    for (unsigned i = 0; i < 10; i++)
        rig_wait (rig, 0, 1, 1000, 0);
    uint64_t wait = rig_wait (rig, 0, 1, 1, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, wait), TMQ_LIMIT);
}

static void too_many_waits_of_all_links_are_refused (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.waits_max = 2;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_use_request_id (1);
    rig_submit (rig, 0, 1, "q", "");
    rig_settle (rig);
    rig_wait (rig, 0, 1, 1, 0);
    uint64_t last = rig_wait (rig, 0, 1, 1, 0);
    uint64_t refused = rig_wait (rig, 1, 1, 1, 0);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 1, refused), TMQ_LIMIT);
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_code (rig, 0, last), TMQ_OK);
    rig_wait (rig, 1, 1, 1, 0); /* they make room when they are answered */
    rig_settle (rig);
    rig_free (rig);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_task_is_submitted_worked_on_and_fetched),
        TEST (each_report_is_answered_by_the_status),
        TEST (each_question_is_answered_by_the_status),
        TEST (a_queued_task_has_no_lease_to_report_with),
        TEST (a_wrong_secret_is_stale),
        TEST (a_repeated_completion_gets_the_stored_answer),
        TEST (a_repeated_failure_gets_the_stored_answer),
        TEST (a_repeated_release_gets_the_stored_answer),
        TEST (a_repeated_push_makes_no_second_event),
        TEST (a_result_that_is_not_text_has_another_type),
        TEST (a_failure_with_bytes_is_a_tool_error),
        TEST (the_brokers_own_codes_are_refused),
        TEST (attempts_are_used_up_with_growing_pauses),
        TEST (a_cancelled_task_is_told_to_its_worker_and_keeps_its_credit),
        TEST (a_cancelled_queued_task_is_never_claimed),
        TEST (a_submit_and_its_claim_make_one_image),
        TEST (started_is_stored_within_five_seconds),
        TEST (unknown_ids_are_said_to_be_unknown),
        TEST (a_wait_answers_each_id_once),
        TEST (a_wait_ends_with_its_deadline),
        TEST (too_many_waits_are_refused),
        cmocka_unit_test (too_many_waits_of_all_links_are_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
