/* This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0.
 * If a copy of the MPL was not distributed with this file, You can obtain one at
 * https://mozilla.org/MPL/2.0/. */

/* Questions and answers: what they do to a task, who is told, deadlines, repeats, restarts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_rig.h"

enum { WORKER = 100 };

/* The task's n-th attempt, started by peer 1. */
static const Taskmq__Assignment *assigned (rig_t *rig, size_t n)
{
    rig_settle (rig);
    const rig_item_t *item = rig_assignment (rig, 1, n);
    assert_non_null (item);
    rig_started (rig, 1, item->assignment);
    rig_settle (rig);
    return item->assignment;
}

static const Taskmq__Assignment *claimed (rig_t *rig)
{
    rig_submit (rig, 0, 1, "q", "p");
    rig_register (rig, 1, WORKER, "q", 1);
    return assigned (rig, 0);
}

static const Taskmq__Reply *reply (rig_t *rig, size_t peer, uint64_t request)
{
    rig_settle (rig);
    const rig_item_t *item = rig_reply (rig, peer, request);
    assert_non_null (item);
    return item->reply;
}

/* The code of the only item of an answer. */
static unsigned answered (rig_t *rig, uint64_t request)
{
    const Taskmq__Reply *got = reply (rig, 0, request);
    assert_int_equal (got->code, TMQ_OK);
    assert_int_equal (got->answered->n_items, 1);
    return got->answered->items[0]->code;
}

/* The key that the holder is given as the n-th answer behind `seen`, checked for its content. */
static void takes (rig_t *rig, const Taskmq__Assignment *assignment, uint64_t seen, const char *key,
                   const char *content)
{
    uint64_t request = rig_take_answers (rig, 1, assignment, seen);
    const Taskmq__Reply *got = reply (rig, 1, request);
    assert_int_equal (got->code, TMQ_OK);
    assert_int_equal (got->answer_page->n_answers, 1);
    const Taskmq__GivenAnswer *answer = got->answer_page->answers[0];
    assert_string_equal (answer->key, key);
    assert_int_equal (answer->number, seen + 1);
    assert_int_equal (answer->bytes, strlen (content));
    assert_memory_equal (rig_reply (rig, 1, request)->body, content, strlen (content));
}

static const Taskmq__InboxPage *inbox (rig_t *rig, Taskmq__Inbox *wanted)
{
    const Taskmq__Reply *got = reply (rig, 0, rig_inbox (rig, 0, wanted));
    assert_int_equal (got->code, TMQ_OK);
    return got->inbox_page;
}

static size_t open_questions (rig_t *rig)
{
    Taskmq__Inbox all = TASKMQ__INBOX__INIT;
    return inbox (rig, &all)->n_questions;
}

/* Notices of answers that peer 1 got. */
static size_t told (const rig_t *rig)
{
    size_t count = 0;
    for (size_t i = 0; i < rig->peers[1].count; i++)
        count += rig->peers[1].items[i].answers != NULL;
    return count;
}

static void heartbeat (rig_t *rig, size_t peer)
{
    Taskmq__Heartbeat beat = TASKMQ__HEARTBEAT__INIT;
    Taskmq__Request request = TASKMQ__REQUEST__INIT;
    request.op_case = TASKMQ__REQUEST__OP_HEARTBEAT;
    request.heartbeat = &beat;
    rig_send (rig, peer, &request, NULL, 0);
}

/* Time goes by while these peers are alive, and the lease, if there is one, is renewed. */
static void live (rig_t *rig, int64_t ms, const Taskmq__Assignment *assignment)
{
    for (; ms > 0; ms -= 1000) {
        heartbeat (rig, 0);
        heartbeat (rig, 1);
        if (assignment != NULL)
            rig_renew (rig, 1, WORKER, assignment);
        rig_advance (rig, ms < 1000 ? ms : 1000);
        rig_forget (rig, 0);
    }
}

/* What an ask does. */

static void a_question_waits_for_its_answer (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    const Taskmq__Reply *asked =
        reply (rig, 1, rig_ask (rig, 1, assignment, "colour", "{\"text\":\"which?\"}"));
    assert_int_equal (asked->code, TMQ_OK);
    assert_false (asked->asked->existing);
    assert_true (asked->asked->deadline > (uint64_t) rig->now.wall_ms);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "colour", "\"red\"")), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    assert_int_equal (told (rig), 1);
    takes (rig, assignment, 0, "colour", "\"red\"");
    uint64_t done = rig_complete (rig, 1, assignment, "ok");
    assert_int_equal (reply (rig, 1, done)->code, TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_COMPLETED);
}

static void several_are_answered_one_by_one (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_ask (rig, 1, assignment, "b", "2");
    rig_settle (rig);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "b", "2")), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    takes (rig, assignment, 0, "b", "2");
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    takes (rig, assignment, 1, "a", "1");
}

static void a_repeated_question_is_the_first (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "", "1");
    const Taskmq__Reply *again = reply (rig, 1, rig_ask (rig, 1, assignment, "input", "1"));
    assert_int_equal (again->code, TMQ_OK);
    assert_true (again->asked->existing);
    assert_false (again->asked->answered);
    assert_int_equal (reply (rig, 1, rig_ask (rig, 1, assignment, "", "2"))->code, TMQ_CONFLICT);
    assert_int_equal (open_questions (rig), 1);
    answered (rig, rig_answer (rig, 0, 1, "", "1"));
    again = reply (rig, 1, rig_ask (rig, 1, assignment, "", "1"));
    assert_true (again->asked->existing && again->asked->answered);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

static void who_does_not_hold_the_lease_asks_nothing (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_fail (rig, 1, assignment, 1, false);
    rig_settle (rig);
    uint64_t ask = rig_ask (rig, 1, assignment, "", "1");
    assert_int_equal (reply (rig, 1, ask)->code, TMQ_STALE_LEASE);
    ask = rig_take_answers (rig, 1, assignment, 0);
    assert_int_equal (reply (rig, 1, ask)->code, TMQ_STALE_LEASE);
    assert_int_equal (open_questions (rig), 0);
}

static void as_many_as_there_may_be (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    char key[16];
    for (unsigned i = 0; i <= TMQ_QUESTIONS_OPEN_MAX; i++) {
        snprintf (key, sizeof (key), "k%u", i);
        uint64_t ask = rig_ask (rig, 1, assignment, key, "1");
        unsigned code = i < TMQ_QUESTIONS_OPEN_MAX ? TMQ_OK : TMQ_LIMIT;
        assert_int_equal (reply (rig, 1, ask)->code, code);
    }
    assert_non_null (strstr (reply (rig, 1, rig_ask (rig, 1, assignment, key, "1"))->text, "64"));
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "k0", "1")), TMQ_OK);
    assert_int_equal (reply (rig, 1, rig_ask (rig, 1, assignment, key, "1"))->code, TMQ_OK);
}

static void no_more_than_its_life_allows (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    char key[16];
    for (unsigned i = 0; i < TMQ_QUESTIONS_MAX; i++) {
        snprintf (key, sizeof (key), "k%u", i);
        rig_ask (rig, 1, assignment, key, "1");
        assert_int_equal (answered (rig, rig_answer (rig, 0, 1, key, "1")), TMQ_OK);
        rig_forget (rig, 0);
    }
    uint64_t ask = rig_ask (rig, 1, assignment, "last", "1");
    assert_int_equal (reply (rig, 1, ask)->code, TMQ_LIMIT);
}

static void memory_for_questions_has_a_bound (void **state)
{
    (void) state;
    engine_config_t config = ENGINE_CONFIG_INIT;
    config.questions_bytes_max = 2000;
    rig_t *rig = rig_new_with (&config);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    rig_use_request_id (1);
    const Taskmq__Assignment *assignment = claimed (rig);
    uint64_t ask = rig_ask (rig, 1, assignment, "a", "1");
    assert_int_equal (reply (rig, 1, ask)->code, TMQ_OK);
    char *large = calloc (1, 2001);
    memset (large, '1', 2000);
    uint64_t answer = rig_answer (rig, 0, 1, "a", large);
    assert_int_equal (answered (rig, answer), TMQ_LIMIT);
    const Taskmq__AnsweredItem *refused = reply (rig, 0, answer)->answered->items[0];
    assert_true (refused->retry_after_ms > 0);
    assert_string_equal (refused->text,
                         "bytes of questions and answers: 2000, as many as there may be");
    ask = rig_ask (rig, 1, assignment, "b", large);
    assert_int_equal (reply (rig, 1, ask)->code, TMQ_LIMIT);
    free (large);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_OK);
    rig_complete (rig, 1, assignment, "ok");
    rig_settle (rig);
    rig_free (rig);
}

/* Answers. */

static void an_answer_counts_once (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "\"x\"")), TMQ_OK);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "\"x\"")), TMQ_OK);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "\"y\"")), TMQ_CONFLICT);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "b", "1")), TMQ_NOT_FOUND);
    assert_int_equal (told (rig), 1);
    takes (rig, assignment, 0, "a", "\"x\"");
}

static void an_answer_that_is_no_json_is_refused (void **state)
{
    rig_t *rig = *state;
    rig_ask (rig, 1, claimed (rig), "a", "1");
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "red")), TMQ_INVALID);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "\"\xff\"")), TMQ_INVALID);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
}

static void an_answer_after_the_end_changes_nothing (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_complete (rig, 1, assignment, "guessed");
    uint64_t answer = rig_answer (rig, 0, 1, "a", "1");
    assert_int_equal (reply (rig, 0, answer)->code, TMQ_WRONG_STATUS);
    assert_int_equal (open_questions (rig), 0);
    answer = rig_answer (rig, 0, 2, "a", "1");
    assert_int_equal (reply (rig, 0, answer)->code, TMQ_NOT_FOUND);
}

/* Its first answer was lost, and the task has ended meanwhile; a start lies between, too. */
static void a_repeated_answer_after_the_end_gets_the_first_one (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_use_request_id (5);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_OK);
    rig_complete (rig, 1, assignment, "done");
    rig_settle (rig);
    uint64_t again = rig_answer (rig, 0, 1, "a", "1");
    assert_int_equal (answered (rig, again), TMQ_OK);
    assert_string_equal (reply (rig, 0, again)->answered->items[0]->key, "a");
    assert_int_equal (reply (rig, 0, again)->answered->status, TMQ_STATUS_COMPLETED);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_OK);
    rig_use_request_id (6);
    assert_int_equal (reply (rig, 0, rig_answer (rig, 0, 1, "a", "1"))->code, TMQ_WRONG_STATUS);
}

/* What is asked already stays; its repeat needs no space. */
static void nothing_is_asked_on_a_full_disk (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_settle (rig);
    engine_set_full (rig->engine, true);
    assert_int_equal (reply (rig, 1, rig_ask (rig, 1, assignment, "a", "1"))->code, TMQ_OK);
    const Taskmq__Reply *refused = reply (rig, 1, rig_ask (rig, 1, assignment, "b", "1"));
    assert_int_equal (refused->code, TMQ_STORE_FULL);
    assert_true (refused->retry_after_ms > 0);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")),
                      TMQ_OK); /* ends what waits */
    engine_set_full (rig->engine, false);
    assert_int_equal (reply (rig, 1, rig_ask (rig, 1, assignment, "b", "1"))->code, TMQ_OK);
}

static void a_cancel_takes_the_questions_along (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_cancel (rig, 0, 1);
    rig_settle (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_CANCELLED);
    assert_int_equal (open_questions (rig), 0);
    uint64_t ask = rig_ask (rig, 1, assignment, "b", "1");
    assert_int_equal (reply (rig, 1, ask)->code, TMQ_WRONG_STATUS);
    for (size_t i = 0; i < rig->kind_rows.count; i++)
        assert_int_not_equal (rig->kind_rows.rows[i].kind, ROW_KIND_QUESTION);
}

/* The lease. */

static void a_released_task_waits_for_its_answer (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_release (rig, 1, assignment, false);
    live (rig, 10000, NULL);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (rig_assignments (rig, 1), 1);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "\"x\"")), TMQ_OK);
    assignment = assigned (rig, 1);
    assert_int_equal (assignment->attempt, 2);
    assert_int_equal (assignment->answers, 1);
    takes (rig, assignment, 0, "a", "\"x\"");
    assert_int_equal (rig_task (rig, 0, 1)->failures, 0);
}

static void a_lost_lease_leaves_the_question (void **state)
{
    rig_t *rig = *state;
    rig_ask (rig, 1, claimed (rig), "a", "1");
    live (rig, 40000, NULL);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->failures, 0);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_OK);
    assert_int_equal (assigned (rig, 1)->answers, 1);
}

static void a_failed_attempt_leaves_the_question (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_fail (rig, 1, assignment, 1, false);
    live (rig, 5000, NULL);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (rig_task (rig, 0, 1)->failures, 1);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_OK);
    assert_int_equal (assigned (rig, 1)->attempt, 2);
}

static void asking_again_and_again_is_no_failure (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    char key[16];
    for (unsigned i = 0; i < 2 * TMQ_UNCOUNTED_COUNT_FROM; i++) {
        snprintf (key, sizeof (key), "k%u", i);
        rig_ask (rig, 1, assignment, key, "1");
        rig_release (rig, 1, assignment, false);
        assert_int_equal (answered (rig, rig_answer (rig, 0, 1, key, "1")), TMQ_OK);
        assignment = assigned (rig, i + 1);
        assert_int_equal (assignment->answers, i + 1);
    }
    assert_int_equal (rig_task (rig, 0, 1)->failures, 0);
}

static void a_renewal_tells_until_it_is_taken (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    answered (rig, rig_answer (rig, 0, 1, "a", "1"));
    for (unsigned i = 0; i < 2; i++) {
        const Taskmq__Reply *renewed = reply (rig, 1, rig_renew (rig, 1, WORKER, assignment));
        assert_int_equal (renewed->renewed->leases[0]->answers, 1);
    }
    rig_take_answers (rig, 1, assignment, 1);
    const Taskmq__Reply *renewed = reply (rig, 1, rig_renew (rig, 1, WORKER, assignment));
    assert_int_equal (renewed->renewed->leases[0]->answers, 0);
}

/* Deadlines. */

static void ask_for (rig_t *rig, const Taskmq__Assignment *assignment, uint64_t ms,
                     const char *fallback)
{
    Taskmq__Ask ask = TASKMQ__ASK__INIT;
    ask.key = (char *) "a";
    ask.request = (char *) "1";
    ask.deadline_ms = ms;
    ask.has_default = fallback != NULL;
    ask.default_text = fallback != NULL;
    if (fallback != NULL)
        ask.default_answer = (char *) fallback;
    assert_int_equal (reply (rig, 1, rig_ask_as (rig, 1, assignment, &ask))->code, TMQ_OK);
}

static void a_default_answers_at_the_deadline (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    ask_for (rig, assignment, 60000, "whatever");
    live (rig, 58000, assignment);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    live (rig, 4000, assignment);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    assert_int_equal (told (rig), 1);
    takes (rig, assignment, 0, "a", "whatever");
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "1")), TMQ_CONFLICT);
}

static void without_a_default_the_task_fails (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    ask_for (rig, assignment, 60000, NULL);
    live (rig, 62000, assignment);
    const Taskmq__Task *task = rig_task (rig, 0, 1);
    assert_int_equal (task->status, TMQ_STATUS_FAILED);
    assert_int_equal (task->error->code, TMQ_TASK_ERROR_ANSWER_DEADLINE);
    assert_non_null (strstr (task->error->message, ": a"));
}

static void a_deadline_passes_while_nobody_holds_the_task (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    ask_for (rig, assignment, 60000, "whatever");
    rig_release (rig, 1, assignment, false);
    live (rig, 62000, NULL);
    takes (rig, assigned (rig, 1), 0, "a", "whatever");
}

static void a_deadline_outlives_a_restart (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    ask_for (rig, assignment, 60000, NULL);
    rig_release (rig, 1, assignment, false);
    rig_settle (rig);
    rig_restart (rig);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
    live (rig, 50000, NULL);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    live (rig, 12000, NULL);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_FAILED);
}

/* Nothing is lost. */

static void link_again (rig_t *rig)
{
    rig_forget (rig, 0);
    rig_forget (rig, 1);
    rig_link (rig, 0, "default");
    rig_link (rig, 1, "default");
}

static void questions_and_answers_outlive_a_restart (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_ask (rig, 1, assignment, "b", "2");
    answered (rig, rig_answer (rig, 0, 1, "a", "\"x\""));
    rig_restart (rig);
    link_again (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (open_questions (rig), 1);
    const Taskmq__Reply *back =
        reply (rig, 1, rig_register_with (rig, 1, WORKER, "q", 1, assignment));
    assert_int_equal (back->registered->leases[0]->code, TMQ_OK);
    assert_int_equal (back->registered->leases[0]->answers, 1);
    takes (rig, assignment, 0, "a", "\"x\"");
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "\"y\"")), TMQ_CONFLICT);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "b", "2")), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
    takes (rig, assignment, 1, "b", "2");
}

static void a_failed_commit_takes_an_answer_back (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    rig_ask (rig, 1, assignment, "a", "1");
    rig_settle (rig);
    uint64_t answer = rig_answer (rig, 0, 1, "a", "1");
    rig_fail_commit (rig);
    assert_null (rig_reply (rig, 0, answer));
    link_again (rig);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (answered (rig, rig_answer (rig, 0, 1, "a", "2")), TMQ_OK);
    assert_int_equal (rig_status (rig, 0, 1), TMQ_STATUS_WORKING);
}

/* The inbox. */

static void an_inbox_has_pages (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    char key[16];
    for (unsigned i = 0; i < 10; i++) {
        snprintf (key, sizeof (key), "k%u", i);
        rig_ask (rig, 1, assignment, key, "1");
    }
    answered (rig, rig_answer (rig, 0, 1, "k3", "1"));
    Taskmq__Inbox wanted = TASKMQ__INBOX__INIT;
    wanted.limit = 4;
    size_t seen = 0;
    do {
        const Taskmq__InboxPage *page = inbox (rig, &wanted);
        assert_true (page->n_questions <= 4);
        for (size_t i = 0; i < page->n_questions; i++, seen++) {
            snprintf (key, sizeof (key), "k%zu", seen < 3 ? seen : seen + 1);
            assert_string_equal (page->questions[i]->key, key);
        }
        wanted.after = page->next;
    } while (wanted.after != 0);
    assert_int_equal (seen, 9);
}

static void the_questions_of_a_task_keep_their_order (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    const char *const keys[] = {"c", "a", "d", "b"};
    for (size_t i = 0; i < 4; i++)
        rig_ask (rig, 1, assignment, keys[i], "1");
    rig_settle (rig);
    rig_restart (rig); /* the rows come back as a, b, c, d */
    rig_link (rig, 0, "default");
    tmq_id_t id = rig_id (1);
    Taskmq__Inbox wanted = TASKMQ__INBOX__INIT;
    wanted.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    wanted.limit = 1;
    for (size_t i = 0; i < 4; i++) {
        const Taskmq__InboxPage *page = inbox (rig, &wanted);
        assert_int_equal (page->n_questions, 1);
        assert_string_equal (page->questions[0]->key, keys[i]);
        wanted.after = page->next;
    }
    assert_int_equal (wanted.after, 0);
}

static void an_inbox_page_fits_into_an_envelope (void **state)
{
    rig_t *rig = *state;
    const Taskmq__Assignment *assignment = claimed (rig);
    char *large = calloc (1, TMQ_QUESTION_BYTES_MAX + 1);
    memset (large, '1', TMQ_QUESTION_BYTES_MAX);
    char key[16];
    for (unsigned i = 0; i < 10; i++) {
        snprintf (key, sizeof (key), "k%u", i);
        rig_ask (rig, 1, assignment, key, large);
    }
    Taskmq__Inbox wanted = TASKMQ__INBOX__INIT;
    size_t seen = 0;
    do {
        const Taskmq__InboxPage *page = inbox (rig, &wanted);
        assert_true (page->n_questions > 0);
        seen += page->n_questions;
        wanted.after = page->next;
    } while (wanted.after != 0);
    assert_int_equal (seen, 10);
    free (large);
}

static void an_inbox_is_of_a_queue_a_session_or_a_task (void **state)
{
    rig_t *rig = *state;
    rig_ask (rig, 1, claimed (rig), "a", "1");
    rig_settle (rig);
    Taskmq__Inbox wanted = TASKMQ__INBOX__INIT;
    char *queues[] = {(char *) "q"};
    wanted.queues = queues;
    wanted.n_queues = 1;
    assert_int_equal (inbox (rig, &wanted)->n_questions, 1);
    queues[0] = (char *) "other";
    assert_int_equal (inbox (rig, &wanted)->n_questions, 0);
    wanted.n_queues = 0;
    wanted.sessions = queues;
    wanted.n_sessions = 1;
    assert_int_equal (inbox (rig, &wanted)->n_questions, 0);
    wanted.n_sessions = 0;
    tmq_id_t id = rig_id (1);
    wanted.task_id = (ProtobufCBinaryData){sizeof (id), id.bytes};
    assert_int_equal (inbox (rig, &wanted)->n_questions, 1);
    id = rig_id (2);
    assert_int_equal (reply (rig, 0, rig_inbox (rig, 0, &wanted))->code, TMQ_NOT_FOUND);
}

/* Events. */

static void events_say_what_was_asked_and_who_answered (void **state)
{
    rig_t *rig = *state;
    rig_ask (rig, 1, claimed (rig), "colour", "1");
    answered (rig, rig_answer (rig, 0, 1, "colour", "1"));
    const Taskmq__Reply *history = reply (rig, 0, rig_history (rig, 0, 1));
    const Taskmq__EventList *list = history->event_page->list;
    const Taskmq__Event *last = list->events[list->n_events - 1];
    const Taskmq__Event *before = list->events[list->n_events - 2];
    assert_int_equal (before->kind, TMQ_EVENT_ASKED);
    assert_string_equal (before->message, "colour");
    assert_int_equal (before->status, TMQ_STATUS_INPUT_REQUIRED);
    assert_int_equal (last->kind, TMQ_EVENT_ANSWERED);
    assert_string_equal (last->message, "colour");
    assert_string_equal (last->actor, "uid:0");
    assert_int_equal (last->status, TMQ_STATUS_WORKING);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, rig_setup, rig_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_question_waits_for_its_answer),
        TEST (several_are_answered_one_by_one),
        TEST (a_repeated_question_is_the_first),
        TEST (who_does_not_hold_the_lease_asks_nothing),
        TEST (as_many_as_there_may_be),
        TEST (no_more_than_its_life_allows),
        cmocka_unit_test (memory_for_questions_has_a_bound),
        TEST (an_answer_counts_once),
        TEST (an_answer_that_is_no_json_is_refused),
        TEST (an_answer_after_the_end_changes_nothing),
        TEST (a_repeated_answer_after_the_end_gets_the_first_one),
        TEST (nothing_is_asked_on_a_full_disk),
        TEST (a_cancel_takes_the_questions_along),
        TEST (a_released_task_waits_for_its_answer),
        TEST (a_lost_lease_leaves_the_question),
        TEST (a_failed_attempt_leaves_the_question),
        TEST (asking_again_and_again_is_no_failure),
        TEST (a_renewal_tells_until_it_is_taken),
        TEST (a_default_answers_at_the_deadline),
        TEST (without_a_default_the_task_fails),
        TEST (a_deadline_passes_while_nobody_holds_the_task),
        TEST (a_deadline_outlives_a_restart),
        TEST (questions_and_answers_outlive_a_restart),
        TEST (a_failed_commit_takes_an_answer_back),
        TEST (an_inbox_has_pages),
        TEST (the_questions_of_a_task_keep_their_order),
        TEST (an_inbox_page_fits_into_an_envelope),
        TEST (an_inbox_is_of_a_queue_a_session_or_a_task),
        TEST (events_say_what_was_asked_and_who_answered),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
